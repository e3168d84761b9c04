"""What was run, and its warnings."""

import pytest

from pipeprof.report.sections.run import run_section


def content(warnings, reps):
    run = {"path": "r", "state": "complete", "reason": None, "command": [], "fingerprint": {}, "warnings": warnings,
           "reps": [{"rep": rep, "ranks": [{"rank": rank} for rank in ranks]} for rep, ranks in enumerate(reps)]}  # fmt: skip
    return {"run": run, "steps": {"summary": []}}


def warned(warnings, reps):
    section = run_section(content([{"code": "x", **row} for row in warnings], reps), (0, 0))
    return [note.removeprefix("warning: ") for note in section.notes if note.startswith("warning")]


@pytest.mark.parametrize(
    ("reps", "expected"),
    [
        ([[0]], ["late"]),
        ([[0, 1, 2]], ["late (ranks 0, 2)"]),
        ([[0], [0]], ["late (repetition 0)"]),
        ([[0, 2], [0, 2]], ["late (repetition 0; ranks 0, 2)"]),
    ],
)
def test_a_warning_of_several_ranks_is_said_once_and_names_them(reps, expected):
    assert warned([{"message": "late", "rep": 0, "rank": rank} for rank in (2, 0)], reps) == expected


def test_of_an_unknown_machine_nothing_is_said():
    assert run_section(content([], [[0]]), (0, 0)).notes == []


@pytest.mark.parametrize(
    ("used", "said"),
    [(["compiled"], ["hooks in C"]), (["python", "compiled", None], ["hooks in C, hooks in Python"]), (["else"], [])],
)
def test_which_hooks_were_used_is_said(used, said):
    shown = content([], [range(len(used))])
    for rank, hooks in zip(shown["run"]["reps"][0]["ranks"], used, strict=True):
        rank["hooks"] = hooks
    assert run_section(shown, (0, 0)).notes == said


def test_a_warning_of_the_whole_run_names_nobody():
    assert warned([{"message": "late"}, {"message": "other", "rep": 0, "rank": 1}], [[0, 1]]) == [
        "late",
        "other (rank 1)",
    ]


def test_of_very_many_ranks_the_first_are_named():
    rows = [{"message": "late", "rep": 0, "rank": rank} for rank in range(20)]
    assert warned(rows, [list(range(20))]) == ["late (ranks 0, 1, 2, 3, 4, 5, 6, 7, ...)"]
