"""Several repetitions: one step time on every screen, details of the least disturbed one, operators added up."""

import json
from pathlib import Path

import pytest
from archive import unpack
from click.testing import CliRunner

from pipeprof.cli import cli
from pipeprof.errors import UsageError
from pipeprof.query.engine import Engine
from pipeprof.read.spool.finish import open_run
from pipeprof.record.listing import runs_in
from pipeprof.report import runs
from pipeprof.report.answer.shape import measured
from pipeprof.report.build import build
from pipeprof.report.ops.question import of_repetition
from pipeprof.report.sections.block import focus_of
from pipeprof.report.summary import in_detail, median_step_ns, three_lines
from pipeprof.units import format_ns

DOCS = Path(__file__).resolve().parents[2] / "docs" / "captures"


def step(rep, rank, median, kind="train"):
    return {"rep": rep, "rank": rank, "kind": kind, "steps": 10, "median_ns": median, "mean_ns": median}


DISTURBED = [step(rep, rank, median + rank) for rep, median in enumerate((70e6, 109e6, 69e6)) for rank in (0, 1)]


def test_a_step_of_several_repetitions_is_their_geometric_mean():
    whole = median_step_ns([*DISTURBED, step(3, 0, 99e9, "warmup")])
    assert whole == pytest.approx((70_000_001 * 109_000_001 * 69_000_001) ** (1 / 3), rel=1e-12)  # of the slowest ranks
    assert median_step_ns([]) is None
    assert measured({"steps": {"summary": DISTURBED}}).endswith("mean slowest median 80.7 ms")
    assert measured({"steps": {"summary": DISTURBED[:2]}}).endswith("2 ranks, slowest median 70.0 ms")


def asked(*words):
    return CliRunner().invoke(cli, list(map(str, words)))


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("repetitions")
    for name in ("slow", "fast"):
        unpack(DOCS / f"{name}.tar.xz", folder / name)
    return folder


@pytest.mark.parametrize("name", ["slow", "fast"])
def test_collect_report_compare_and_lists_say_one_step_time_of_five_repetitions(stored, name):
    run = open_run(stored / name)
    with Engine.open(run) as engine:
        each = engine.rows("compare/rep_step")
        summary = [row for row in engine.rows("step/summary") if row["kind"] == "train"]
    assert [row["median_ns"] for row in each] == [row["median_ns"] for row in summary]
    assert len(each) == 5
    step_ns = median_step_ns(summary)
    done = asked("compare", stored / "slow", stored / "fast", "--format", "json")
    metrics = {one["name"]: one for one in json.loads(done.output)["metrics"]}
    assert metrics["step_time_median"]["base" if name == "slow" else "new"] == pytest.approx(step_ns, rel=1e-9)
    said = f"mean median {format_ns(step_ns)}"
    assert said in measured(build(run))
    assert said.replace("median", "median step") in three_lines(run)[0]
    (row,) = [row for row in runs.rows_of(list(runs_in(stored))) if row["path"].endswith(name)]
    assert row["step_ns"] == pytest.approx(step_ns, rel=1e-9)


@pytest.mark.parametrize(("words", "most"), [(["ops", "--top", "5"], 20), (["memory"], 60)])
def test_several_repetitions_do_not_multiply_the_lines(stored, words, most):
    done, one = (asked(words[0], stored / "slow", *words[1:], *more) for more in ((), ("--rep", "0")))
    assert done.exit_code == 0
    assert 5 < len(done.output.splitlines()) < most
    assert len(done.output.splitlines()) <= len(one.output.splitlines()) + 2


def test_details_are_those_of_the_least_disturbed_repetition_or_the_verdicts_and_its_slowest_rank():
    assert in_detail(DISTURBED) == (2, 1)
    assert in_detail([step(0, 0, 5.0, "warmup"), step(1, 0, 9.0)]) == (1, 0)
    assert in_detail([]) is None
    for rep, focus in ((None, (2, 1)), (0, (0, 1)), (7, (2, 1))):
        assert focus_of({"steps": {"summary": DISTURBED}, "diagnosis": {"rep": rep}}) == focus


def op(rep, rank=0, **more):
    return {"rep": rep, "rank": rank, "position": 1, "type": "Add", "phase": "forward", "count": 2, "steps": 3,
            "total_ns": 10, "self_ns": 8, "mean_ns": 5.0, "max_ns": 6, "share": 1.0} | more  # fmt: skip


def test_operators_of_all_repetitions_are_added_up_for_each_rank():
    rows, (note,) = of_repetition([op(0), op(1, max_ns=9, phase="backward"), op(1, rank=1), op(1, type="Mul")], None)
    found = {(row["rank"], row["type"]): row for row in rows}
    assert set(found) == {(0, "Add"), (1, "Add"), (0, "Mul")}
    both = found[0, "Add"]
    assert (both["count"], both["total_ns"], both["self_ns"], both["max_ns"]) == (4, 20, 16, 9)
    assert (both["mean_ns"], both["share"], both["phase"]) == (None, None, "mixed")
    assert note == "of 2 repetitions together; --rep N shows one"
    unknown, _ = of_repetition([op(0, memory_bytes=None), op(1, memory_bytes=None)], None)
    assert unknown[0]["memory_bytes"] is None


def test_one_repetition_alone_is_as_it_was_recorded():
    rows = [op(0), op(1, count=7)]
    assert of_repetition(rows, 1) == ([rows[1]], [])
    assert of_repetition(rows[:1], None) == (rows[:1], [])
    with pytest.raises(UsageError, match="repetition 4"):
        of_repetition(rows, 4)
