"""The words for what interrupts a training, and for one that becomes slower."""

import pytest
from run_verdicts import answered

from pipeprof.report.answer import interruptions
from pipeprof.report.answer.screen import height, lines
from pipeprof.report.sections.run import whole_run_section
from pipeprof.report.words import training
from pipeprof.verdict.run_account import ONCE, RECURRING

S = 1_000_000_000
PART = {"rep": 0, "rank": 0, "part": "checkpoint", "detail": "", "cause": "", "count": 5, "dur_ns": 4 * S, "share": 0.2,
        "loop_share": 0.4, "loop_ns": 10 * S}  # fmt: skip
LATE = {"rep": 0, "rank": 0, "verdict": "step", "steps": 100, "at_step": 50, "at_ns": 7 * S, "late_steps": 50,
        "before_ns": 1e7, "after_ns": 3e7, "phase": "work", "causes": ["neighbour"], "cost_share": 0.5}  # fmt: skip
RUN = {"path": "r", "state": "complete", "reason": None, "source": "collect", "command": ["python", "train.py"],
       "workdir": None, "git": None, "reps": []}  # fmt: skip


def answer(part=PART, late=None, pipelines=(), **found):
    account = {"parts": [], "large": [part] if part else [], "leading": part, "slower": late}
    diagnosis = {"process": None, "verdict": "not_measured", "network": None, "data_wait_share": None, **found}
    pipeline = {"pipelines": list(pipelines)}
    return answered({"run": RUN, "diagnosis": diagnosis, "run_account": account, "pipeline": pipeline})


@pytest.mark.parametrize(
    ("more", "begin"),
    [
        ({}, "Writing checkpoints takes 40 % of the training loop's time (steps and interruptions)."),
        ({"part": "evaluation"}, "Evaluation takes 40 %"),
        ({"part": "callback", "detail": "Watcher"}, "The callback `Watcher` takes 40 %"),
        ({"part": "epoch_gap"}, "The gaps between epochs take 40 %"),
        (
            {"part": "recompile", "detail": "Net", "cause": "short_batch"},
            (
                "Graphs are compiled again in the middle of the training, because the last batch is shorter: that "
                "takes 40 % of the training loop's time (steps and interruptions)."
            ),
        ),
    ],
)
def test_the_first_sentence_names_the_part_and_its_share(more, begin):
    assert answer(PART | more).sentence.startswith(begin)


def test_between_epochs_the_workers_of_a_loader_are_let_live_on_where_that_is_advised():
    gains = {"gain": 2.5, "gain_low": 2.0, "gain_high": 3.0}
    advice = [{"code": "loader_persistent", "action": "let the workers live on", "place": "train.py:7", **gains}]
    given = answer(PART | {"part": "epoch_gap"}, suggestions=advice)
    assert (given.action, given.place) == ("Let the workers live on.", "train.py:7")
    assert given.gain.startswith("The training would run about 2.5 times as fast (2.00 to 3.00)")
    assert answer(PART | {"part": "epoch_gap"}).action.startswith("Make one iterator")
    assert "checkpoints" in answer(suggestions=advice).action


def test_where_a_part_is_called_is_its_place():
    assert answer(PART | {"site": "/home/me/train.py:31"}).place == "/home/me/train.py:31"
    assert answer().place == ""


def test_an_evaluation_in_a_loop_of_ones_own_has_the_line_of_its_data():
    train, valid = {"role": "train", "site": "train.py:5"}, {"role": "eval", "site": "train.py:9"}
    evaluation = PART | {"part": "evaluation"}
    assert answer(evaluation, pipelines=[train, valid]).place == "its data: train.py:9"
    assert answer(evaluation, pipelines=[train, valid, valid | {"site": "train.py:12"}]).place == ""
    assert answer(evaluation | {"site": "train.py:40"}, pipelines=[valid]).place == "train.py:40"


def test_a_callback_that_mindspore_calls_has_the_line_of_its_class():
    looks = {"name": "Watcher.on_train_step_end", "site": None, "code": None}
    part = PART | {"part": "callback", "detail": "Watcher", "site": "train.py:36"}
    assert answer(part, loop_calls=[looks]).place == "train.py:36"
    assert answer(part, loop_calls=[looks | {"code": "train.py:40"}]).place.endswith("at `train.py:40`")


def test_numbers_gain_and_action_follow():
    given = answer(PART | {"part": "recompile", "detail": "Net", "cause": "short_batch", "count": 1})
    assert given.cause == "Graphs compiled again (the last batch is shorter) `Net`: 1 time, 4.00 s in all, of 10.0 s."
    assert "drop_remainder=True" in given.action
    assert given.gain == "The training would run about 1.67 times as fast if this took no time"
    assert height(lines(given, "r: 64 training steps.", "More: --full.")) <= 20


def test_what_can_be_done_less_often_brings_half_of_it_first():
    given = answer(PART | {"part": "checkpoint", "count": 4})
    assert given.gain == (
        "Half as often, the training would run about 1.25 times as fast; without it about 1.67 times as fast"
    )
    assert answer(PART | {"part": "checkpoint", "count": 1}).gain.endswith("if this took no time")


def test_a_graph_that_is_compiled_once_is_not_advised_to_be_compiled_once():
    again = answer(PART | {"part": "compile_eval", "detail": "Net", "count": 2}).action
    assert "one network object and one batch size" in again
    once = answer(PART | {"part": "compile_eval", "detail": "Net", "count": 1}).action
    assert once.startswith("It is compiled only once")


def test_slower_steps_are_the_answer_with_what_changed():
    given = answer(None, LATE)
    assert given.sentence.startswith("The training gets slower as it runs: the steps become slower at about step 50, ")
    assert "other programs take more CPU" in given.sentence
    assert (given.confidence, answer(None, LATE | {"causes": []}).confidence) == ("medium", "low")
    assert answer(PART, LATE | {"cost_share": 0.6}).sentence == given.sentence
    assert answer(PART, LATE).sentence.startswith("Writing checkpoints")  # which is as long, and surer


def test_every_part_has_words():
    assert {*ONCE, *RECURRING, "training", "not_recorded"} == set(training.PARTS)
    for part in (*RECURRING, "ending"):
        row = PART | {"part": part}
        assert training.sentence(row, "40 %")
        assert training.advice(row)


def test_the_section_lists_the_parts_in_order_and_their_sum():
    rows = [PART | {"part": "training", "start_ns": 5}, PART | {"part": "import", "start_ns": 1}]
    content = {"run": {}, "run_account": {"parts": rows, "large": [PART], "leading": None, "slower": None}}
    section = whole_run_section(content, (0, 0))
    assert [row[0] for row in section.blocks[0].rows] == ["import of the framework", "training steps", "the whole run"]
    assert section.blocks[0].rows[-1][2] == "8.00 s"
    assert section.notes[0].startswith(
        "Checkpoints: 20.0 % of the run (5 times, 4.00 s in all, 800 ms on average). Write"
    )


def test_a_call_brings_about_its_share_and_at_most_what_chance_may_hide():
    assert interruptions._without(0.39, 1.83) == "about 1.64 times as fast without it, at most 1.83 times"
    assert interruptions._without(0.96, 67.6) == "at most 67.6 times as fast without it"
