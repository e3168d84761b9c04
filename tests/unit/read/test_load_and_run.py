"""Logs of load_and_run in each generation, and tables of its options."""

from __future__ import annotations

import pytest

from pipeprof.errors import SourceError
from pipeprof.read.megengine.load_and_run import Iteration, parse_log, read_log
from pipeprof.read.megengine.option_table import read_option_table, speedups

OLD = """./load_and_run ./a.mge --iter 2
[19 00:26:10 from_argv@mgblar.cpp:1169][warn] enable nchw44 optimization
load model: 198.030ms
=== prepare: 5.846ms; going to warmup
warmup 0: 581.284ms
=== going to run input for 2 times
iter 0/2: 245.185ms (exec=10.574,device=242.226)
iter 1/2: 236.911ms (exec=6.375,device=235.615)
=== finished test #0: time=482.096ms avg_time=241.048ms sd=5.851ms minmax=236.911,245.185

=== total time: 482.096ms
surprise
"""
MIDDLE = """[15 12:16:26 @:121][WARN] run testcase: 0
=== prepare: 1.509ms; going to warmup

warm up 0  355.658ms
warm up 1  100.5ms
iter 0/1: 141.249 ms (exec=1.066 ms)

=== finished test #0: time=141.249 ms avg_time=141.249 ms sexec=nan ms min=141.249 ms max=141.249 ms
"""
CURRENT = """load model: 1ms
run testcase: 0
=== prepare: 3.000ms; going to warmup
warm up 0  9.000ms
=== prepare: 1.000ms; going to warmup
warm up 1  8.000ms
iter 0/2: e2e=1.234 ms (host=0.123 ms)
iter 1/2: e2e=2.234 ms (host=0.123 ms)
=== finished test #0: time=3.468 ms avg_time=1.734 ms standard_deviation=0.707 ms min=1.234 ms max=2.234 ms
run testcase: 1
=== prepare: 4.000ms; going to warmup
warm up 0  7.000ms
iter 0/2: e2e=5.000 ms (host=0.123 ms)
"""


def test_the_first_generation():
    log = parse_log(OLD.splitlines())
    assert (log.load_ns, log.total_ns, log.messages, log.unknown_lines, log.complete) == (
        198_030_000,
        482_096_000,
        1,
        1,
        True,
    )
    (test,) = log.tests
    assert (test.number, test.wanted, test.configure_ns, test.warmup_ns) == (0, 2, 5_846_000, [581_284_000])
    assert test.iterations[0] == Iteration(245_185_000, 10_574_000, 242_226_000)
    assert test.mean_ns == test.printed.mean_ns == 241_048_000
    assert test.deviation_ns == pytest.approx(test.printed.deviation_ns, abs=1000)
    assert (test.printed.min_ns, test.printed.max_ns) == (236_911_000, 245_185_000)


def test_the_second_generation_and_a_single_iteration():
    (test,) = parse_log(MIDDLE.splitlines()).tests
    assert test.iterations == [Iteration(141_249_000, 1_066_000)]
    assert test.warmup_ns == [355_658_000, 100_500_000]
    assert test.deviation_ns is test.printed.deviation_ns is None


def test_the_current_generation_ends_in_its_second_test_case():
    log = parse_log(CURRENT.splitlines())
    first, second = log.tests
    assert not log.complete
    assert (first.configure_ns, first.warmup_ns) == (3_000_000, [9_000_000, 8_000_000])
    assert first.printed.deviation_ns == 707_000
    assert (second.number, second.configure_ns, len(second.iterations), second.printed) == (1, 4_000_000, 1, None)


def test_a_log_that_ends_while_warming_up_has_what_came_before():
    (test,) = parse_log(["=== prepare: 1.0ms; going to warmup", "warmup 0: 2.5ms"]).tests
    assert (test.configure_ns, test.warmup_ns, test.mean_ns) == (1_000_000, [2_500_000], None)


def test_a_text_of_something_else_is_an_error(tmp_path):
    path = tmp_path / "log.txt"
    path.write_text("hello\n", encoding="utf-8")
    with pytest.raises(SourceError, match="no line of load_and_run"):
        read_log(path)
    with pytest.raises(SourceError, match="cannot read"):
        read_log(tmp_path / "absent")


HEAD = "table_id,row_in_table,variant,options,is_baseline,configure_ms,warmup_first_ms,warmup_second_ms,inference_ms,note\n"


def test_variants_are_compared_within_their_table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(HEAD + "a,1,chwn4,--x,0,1.5,2,,4,n\na,2,baseline,,1,1,1,,8,\nb,1,chwn4,,0,,,,,\n", encoding="utf-8")
    rows = read_option_table(path)
    assert (rows[0].name, rows[0].configure_ms, rows[0].warmup_second_ms, rows[0].facts) == (
        "chwn4",
        1.5,
        None,
        {"note": "n"},
    )
    assert speedups(rows) == {("a", 1): 2.0, ("a", 2): 1.0}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "no column table_id"),
        (HEAD + "a,x,v,,0,,,,1,\n", "line 2"),
        (HEAD + "a,1,v,,0,,,,one,\n", "line 2"),
        ("", "nothing"),
    ],
)
def test_a_damaged_table_is_an_error_with_its_place(tmp_path, text, said):
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SourceError, match=said):
        read_option_table(path)
