"""Logs of load_and_run in each generation, and tables of its options."""

import pytest
from stored_rows import rows

from pipeprof.errors import SourceError
from pipeprof.experiment.compare import compare_sides
from pipeprof.query.measure import measure
from pipeprof.read.foreign import import_path
from pipeprof.read.megengine.load_and_run import parse_log, read_log

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
    assert (log.load_ns, log.unknown_lines, log.complete) == (198_030_000, 1, True)
    (test,) = log.tests
    assert (test.number, test.configure_ns, test.warmup_ns) == (0, 5_846_000, [581_284_000])
    assert test.iterations == [245_185_000, 236_911_000]
    assert test.mean_ns == test.printed.mean_ns == 241_048_000
    assert test.deviation_ns == pytest.approx(test.printed.deviation_ns, abs=1000)


@pytest.mark.parametrize("nan", ["nan", "-nan"])
def test_the_second_generation_and_a_single_iteration(nan):
    log = parse_log(MIDDLE.replace("nan", nan).splitlines())
    (test,) = log.tests
    assert (log.complete, log.unknown_lines) == (True, 0)
    assert test.iterations == [141_249_000]
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
    path = tmp_path / "train.log"
    path.write_text("epoch 1\niter 3/10: loss=0.5 (245 ms)\nload model: done\n", encoding="utf-8")
    for file, said in ((path, "no line of load_and_run"), (tmp_path / "absent", "cannot read")):
        with pytest.raises(SourceError, match=said):
            read_log(file)
    with pytest.raises(SourceError, match="of a kind that is not known"):
        import_path(path, tmp_path / "run")


def logs(folder, *texts):
    folder.mkdir()
    for number, text in enumerate(texts):
        (folder / f"{number}.log").write_text(text)
    return folder


@pytest.fixture
def imported(tmp_path):
    return lambda *texts: import_path(logs(tmp_path / "logs", *texts), tmp_path / "run")


def test_a_log_is_a_repetition_with_stages_and_steps(imported):
    run = imported(OLD, MIDDLE, CURRENT)
    assert [rep.rep for rep in run.manifest.reps] == [0, 1, 2]
    steps = rows(run, "step", "rep", "kind", "kind_step", "start_ns", "end_ns")
    assert steps[:3] == [
        (0, "warmup", 0, 203_876_000, 785_160_000), (0, "train", 1, 785_160_000, 1_030_345_000),
        (0, "train", 2, 1_030_345_000, 1_267_256_000),
    ]  # fmt: skip
    assert rows(run, "stage", "rep", "stage", "dur_ns")[:4] == [
        (0, "build", 198_030_000), (0, "compile", 5_846_000), (0, "warmup", 581_284_000), (0, "steady", 482_096_000),
    ]  # fmt: skip
    assert [kind for rep, kind, *_ in steps if rep == 2] == ["warmup", "warmup", "train", "train", "warmup", "train"]


def test_what_is_printed_is_held_against_the_iterations(imported):
    wrong = OLD.replace("sd=5.851ms", "sd=7.000ms")
    run = imported(OLD, wrong)
    first, second = run.manifest.options["load_and_run"]
    assert first["deviation_ns"] == pytest.approx(first["printed_deviation_ns"], abs=1000)
    assert second["printed_deviation_ns"] == 7_000_000
    said = [(warning.rep, warning.message) for warning in run.manifest.warnings]
    assert (0, "left out 1 time: line that is not of load_and_run") in said
    assert [rep for rep, text in said if "not that of the iterations" in text] == [1]


def test_a_log_that_ends_early_makes_the_run_partial(imported):
    run = imported(CURRENT)
    assert (run.manifest.state, run.manifest.tables["step"]) == ("partial", 6)
    assert "0.log` ends before its test case does" in run.manifest.reason


def test_imported_logs_can_be_compared(tmp_path):
    texts = {
        f"{name}-{factor}": [OLD.replace("245.185ms", f"{factor * (240 + number)}.185ms") for number in range(4)]
        for name, factor in (("base", 1), ("new", 2))
    }
    sides = [measure(import_path(logs(tmp_path / name, *of), tmp_path / f"{name}-run")) for name, of in texts.items()]
    assert [len(side.values["step_time_median"]) for side in sides] == [4, 4]
    content = compare_sides(*sides)
    assert (content["verdict"], "job" in content["metrics"][0]["reason"]) == ("inconclusive", True)
