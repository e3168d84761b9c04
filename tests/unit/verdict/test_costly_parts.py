"""Which part of a run costs much, and when it is the answer."""

import pytest
from typed_rows import of_dicts

from pipeprof.verdict import run_account
from pipeprof.verdict.run_account import costly_drift, costly_parts, drift_share

judge_run, training_share = of_dicts(run_account.judge_run), of_dicts(run_account.training_share)

S = 1_000_000_000


def part(name, seconds, detail="", cause="", rep=0, rank=0, site=""):
    return {"rep": rep, "rank": rank, "part": name, "detail": detail, "cause": cause, "site": site, "count": 1,
            "start_ns": 0, "dur_ns": int(seconds * S), "share": None}  # fmt: skip


def test_parts_above_a_tenth_are_told_largest_first_with_their_line_of_the_rank_that_spends_most():
    rows = [part("import", 3), part("training", 10), part("evaluation", 5), part("checkpoint", 1)]
    found = judge_run(rows)
    assert [(one["part"], one["detail"], one["cause"]) for one in found] == [("evaluation", "", ""), ("import", "", "")]
    assert (found[0]["share"], found[0]["loop_share"]) == (pytest.approx(5 / 19), pytest.approx(5 / 16))
    assert judge_run([part("training", 0.4), part("evaluation", 0.29)]) == [], "little time, whatever its share"
    rows = [part("training", 10, rank=rank, rep=rep) for rep in range(3) for rank in range(2)]
    rows += [part("checkpoint", length, rank=1, rep=rep) for rep, length in enumerate((5, 0.1, 7))]
    (found,) = judge_run(rows)
    assert (found["rep"], found["rank"], found["dur_ns"]) == (0, 1, 5 * S)
    rows = [part("training", 10), part("checkpoint", 2, site="a.py:1"), part("checkpoint", 4, site="a.py:9"),
            part("callback", 5, "W", site="b.py:3")]  # fmt: skip
    found = {one["part"]: (one["site"], one["dur_ns"]) for one in judge_run(rows)}
    assert found == {"checkpoint": ("a.py:9", 6 * S), "callback": ("b.py:3", 5 * S)}


@pytest.mark.parametrize(
    ("rows", "costly", "training"),
    [
        ([part("import", 30), part("compile", 20), part("training", 10)], [], 1.0),  # they happen once
        ([part("import", 30), part("training", 10), part("checkpoint", 3)], ["checkpoint"], 10 / 13),
        ([part("training", 10), part("callback", 0.9, "LossMonitor")], [], 10 / 10.9),
        # what follows the last step costs where it is long
        ([part("training", 10), part("ending", 9.9)], [], 1.0),
        ([part("training", 10), part("ending", 11)], ["ending"], 10 / 21),
        ([part("training", 40), part("ending", 11)], [], 1.0),
        # what the pipeline goes on for costs from a tenth on, and the end behind it does not
        ([part("training", 10), part("ending", 1.0, cause="rest_of_epoch"), part("ending", 3)], [], 10 / 11),
        ([part("training", 10), part("ending", 1.2, cause="rest_of_epoch"), part("ending", 3)], ["ending"], 10 / 11.2),
        ([part("ending", 20, cause="rest_of_epoch")], [], None),
        (
            [part("training", 6), part("evaluation", 3), part("checkpoint", 1), part("import", 30)],
            ["evaluation", "checkpoint"],
            0.6,
        ),
        ([], [], 1.0),
    ],
)
def test_what_recurs_costs_and_the_training_steps_are_a_part_of_what_interrupts_them(rows, costly, training):
    assert [found["part"] for found in costly_parts(judge_run(rows))] == costly
    assert training is None or training_share(rows) == pytest.approx(training)


def course(verdict="step", **more):
    return {"rep": 0, "rank": 0, "verdict": verdict, "steps": 100, "at_step": 50, "late_steps": 50,
            "before_ns": 10, "after_ns": 30, "causes": []} | more  # fmt: skip


def test_what_slower_steps_cost_in_long_trainings_of_which_every_repetition_has_them():
    assert drift_share(course()) == drift_share(course("drift")) == pytest.approx(0.5)
    assert drift_share(course("steady")) == 0.0
    assert drift_share(course(at_step=150)) == pytest.approx(0.5), "a step's number counts others, whose time does not"
    assert costly_drift([course()], {(0, 0): 11 * S})["cost_share"] == pytest.approx(0.5)
    assert costly_drift([course()], {(0, 0): 9 * S}) is None
    assert costly_drift([course(late_steps=2)], {(0, 0): 11 * S}) is None
    assert costly_drift([course(), course("steady", rep=1)], {(0, 0): 11 * S, (1, 0): 11 * S}) is None
