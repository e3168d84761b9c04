"""Which part of a run costs much, and when it is the answer."""

import pytest
from typed_rows import of_dicts

from pipeprof.verdict import run_account
from pipeprof.verdict.run_account import costly_drift, costly_parts, drift_share

judge_run, training_share = of_dicts(run_account.judge_run), of_dicts(run_account.training_share)

S = 1_000_000_000


def part(name, seconds, detail="", cause="", rep=0, rank=0, count=1, site=""):
    return {"rep": rep, "rank": rank, "part": name, "detail": detail, "cause": cause, "site": site, "count": count,
            "start_ns": 0, "dur_ns": int(seconds * S), "share": None}  # fmt: skip


def named(rows):
    return [(one["part"], one["detail"], one["cause"]) for one in judge_run(rows)]


def test_parts_above_a_tenth_are_told_largest_first():
    rows = [part("import", 3), part("training", 10), part("evaluation", 5), part("checkpoint", 1)]
    assert named(rows) == [("evaluation", "", ""), ("import", "", "")]
    found = judge_run(rows)[0]
    assert (found["share"], found["loop_share"]) == (pytest.approx(5 / 19), pytest.approx(5 / 16))


def test_little_time_is_nothing_whatever_its_share():
    assert named([part("training", 0.4), part("evaluation", 0.29)]) == []


def test_the_rank_that_spends_most_counts_and_the_repetition_in_the_middle():
    rows = [part("training", 10, rank=rank, rep=rep) for rep in range(3) for rank in range(2)]
    rows += [part("checkpoint", length, rank=1, rep=rep) for rep, length in enumerate((5, 0.1, 7))]
    (found,) = judge_run(rows)
    assert (found["rep"], found["rank"], found["dur_ns"]) == (0, 1, 5 * S)


def test_the_line_that_takes_most_of_a_part_is_its_place():
    rows = [
        part("training", 10),
        part("checkpoint", 2, site="a.py:1"),
        part("checkpoint", 4, site="a.py:9"),
        part("callback", 5, "W", site="b.py:3"),
    ]
    assert {one["part"]: (one["site"], one["dur_ns"]) for one in judge_run(rows)} == {
        "checkpoint": ("a.py:9", 6 * S), "callback": ("b.py:3", 5 * S),
    }  # fmt: skip


def costly(rows):
    return [found["part"] for found in costly_parts(judge_run(rows))]


def test_what_recurs_costs_and_what_happens_once_does_not():
    assert costly([part("import", 30), part("compile", 20), part("training", 10)]) == []
    assert costly([part("import", 30), part("training", 10), part("checkpoint", 3)]) == ["checkpoint"]
    assert costly([part("training", 10), part("callback", 0.9, "LossMonitor")]) == []


@pytest.mark.parametrize(("seconds", "found"), [(9.9, []), (11, ["ending"])])
def test_what_follows_the_last_step_costs_where_it_is_long(seconds, found):
    rows = [part("training", 10), part("ending", seconds)]
    assert costly(rows) == found
    assert costly([part("training", 40), part("ending", 11)]) == []
    assert training_share(rows) == pytest.approx(10 / 21 if found else 1.0)


@pytest.mark.parametrize(("seconds", "found"), [(1.0, []), (1.2, ["ending"])])
def test_what_the_pipeline_goes_on_for_costs_from_a_tenth_on_and_the_end_behind_it_does_not(seconds, found):
    rows = [part("training", 10), part("ending", seconds, cause="rest_of_epoch"), part("ending", 3)]
    assert costly(rows) == found
    assert training_share(rows) == pytest.approx(10 / (10 + seconds))
    assert costly([part("ending", 20, cause="rest_of_epoch")]) == []


def test_the_training_steps_are_a_part_of_what_interrupts_them():
    rows = [part("training", 6), part("evaluation", 3), part("checkpoint", 1), part("import", 30)]
    assert training_share(rows) == pytest.approx(0.6)
    assert training_share([]) == 1.0


def course(verdict="step", **more):
    return {"rep": 0, "rank": 0, "verdict": verdict, "steps": 100, "at_step": 50, "late_steps": 50,
            "before_ns": 10, "after_ns": 30, "causes": []} | more  # fmt: skip


def test_what_slower_steps_cost():
    assert drift_share(course()) == pytest.approx(0.5)
    assert drift_share(course("drift")) == pytest.approx(0.5)
    assert drift_share(course("steady")) == 0.0
    assert drift_share(course(at_step=150)) == pytest.approx(0.5), "a step's number counts others, whose time does not"


def test_slower_steps_cost_in_long_trainings_of_which_every_repetition_has_them():
    assert costly_drift([course()], {(0, 0): 11 * S})["cost_share"] == pytest.approx(0.5)
    assert costly_drift([course()], {(0, 0): 9 * S}) is None
    assert costly_drift([course(late_steps=2)], {(0, 0): 11 * S}) is None
    both = {(0, 0): 11 * S, (1, 0): 11 * S}
    assert costly_drift([course(), course("steady", rep=1)], both) is None
