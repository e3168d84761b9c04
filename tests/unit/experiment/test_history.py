"""What a history is made of: its measurements, the conditions they had, and the commits between them."""

from __future__ import annotations

from pipeprof.experiment import history
from pipeprof.record.history import Entry
from pipeprof.report.document import text
from pipeprof.report.history.rows import document


def entry(number, fingerprint="one", machine="box", **facts):
    of = {
        "created_at": f"2026-11-{number + 1:02}T10:00:00+00:00", "workload": "net", "machine": machine, "tag": None,
        "fingerprint_hash": fingerprint, "revision": None, "dirty": False, "label": "run", "reps": 1,
        "medians": {"step_time_median": 4e7}, "conditions": {"mindspore": fingerprint},
    }  # fmt: skip
    return Entry(**of | facts)


def test_a_url_is_shown_without_its_secrets(monkeypatch):
    monkeypatch.setattr(history, "stored_entries", lambda _url, _say: ([entry(0)], []))
    content = history.history_of("s3://me:hush-hush@bucket/runs?region=x", "", lambda _text: None)
    assert content["source"] == "s3://bucket/runs"
    assert "hush-hush" not in text(document(content), "html")
