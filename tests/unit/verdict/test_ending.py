"""Whether a limit of CPU time ended a command."""

import signal

import pytest

from pipeprof.verdict.hang import NEAR_LIMIT, ran_out_of_cpu


@pytest.mark.parametrize("code", [-signal.SIGXCPU, 128 + signal.SIGXCPU])
def test_the_signal_of_the_limit_says_it_whatever_was_used(code):
    assert ran_out_of_cpu(code, [])


@pytest.mark.parametrize("code", [-signal.SIGKILL, 128 + signal.SIGKILL])
def test_a_kill_is_the_limits_where_a_process_had_used_it_up(code):
    assert ran_out_of_cpu(code, [(1.0, 100), (NEAR_LIMIT * 2, 2)])
    assert not ran_out_of_cpu(code, [(NEAR_LIMIT * 2 - 0.01, 2)])
    assert not ran_out_of_cpu(code, [])


@pytest.mark.parametrize("code", [None, 0, 1, -signal.SIGSEGV])
def test_nothing_else_is(code):
    assert not ran_out_of_cpu(code, [(2.0, 2)])
