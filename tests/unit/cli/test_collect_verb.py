"""The verb `collect`: what it refuses, and how it ends."""

from __future__ import annotations


def test_where_no_signal_can_end_us_the_exit_code_is_a_shells(verb, monkeypatch):
    """As process 1 of a container."""
    monkeypatch.setattr("pipeprof.collect.launch.die_like", lambda _status: None)
    code, _, _ = verb("collect", "-o", "run", "-q", "--", "sh", "-c", "kill -9 $$")
    assert code == 128 + 9
