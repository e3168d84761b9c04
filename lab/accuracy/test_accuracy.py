"""The diagnosis against the labels of all stored captures. The targets are those that docs/accuracy.md is measured by."""

import json

import pytest
import whatif
from imported import score_imported
from score import CAPTURES, TARGETS, contradicted, report, score_all

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found():
    return report(score_all())


def test_there_are_captures_of_every_sort(found):
    kinds = {row["kind"] for row in found["captures"]}
    assert kinds == {"wait", "cpu", "gil", "burst", "poll", None}
    assert found["summary"]["all"]["captures"] >= 60
    assert found["summary"]["all"]["false_input_bound"]["of"] >= 15


def test_every_capture_has_a_label_and_a_label_a_capture(found):
    stored = {path.name.removesuffix(".tar.xz") for path in CAPTURES.glob("*.tar.xz")}
    entries = json.loads((CAPTURES / "truth.json").read_text())["captures"]
    left_out = {name for name, entry in entries.items() if contradicted(entry)}
    assert stored == {row["name"] for row in found["captures"]} | left_out
    assert len(left_out) <= 0.02 * len(stored)


def test_at_least_half_of_them_were_drawn(found):
    groups = found["summary"]
    assert groups["drawn"]["captures"] >= groups["designed"]["captures"]


def test_the_right_stage_is_named(found):
    wrong = [(row["name"], row["accepted"], row["answer"]["stages"]) for row in found["captures"] if not row["right"]]
    assert found["summary"]["all"]["top1"]["share"] >= TARGETS["top1"], wrong


def test_the_right_stage_is_among_two(found):
    assert found["summary"]["all"]["top2"]["share"] >= TARGETS["top2"]


def test_high_confidence_is_right_and_usual(found):
    figures = found["summary"]["all"]
    assert figures["confidence"]["high"]["share"] >= TARGETS["high_right"]
    assert figures["high_share"]["share"] >= TARGETS["high_share"]


def test_a_slow_loop_is_never_called_input_bound(found):
    assert found["summary"]["all"]["false_input_bound"]["right"] == 0


def test_the_first_10_steps_are_nearly_enough(found):
    assert found["summary"]["all"]["first_top1"]["share"] >= TARGETS["first_top1"]


def test_the_kind_is_right(found):
    wrong = [(row["name"], row["kinds"], row["answer"]["kind"]) for row in found["captures"]]
    assert found["summary"]["all"]["kind"]["share"] >= TARGETS["kind"], wrong


def test_no_other_rule_is_better(found):
    figures = found["summary"]["all"]
    assert set(figures["theirs"]) == {"mindinsight", "mindspore", "autotune", "prose", "drop"}
    assert max(other["share"] for other in figures["theirs"].values()) <= figures["top1"]["share"]


@pytest.fixture(scope="module")
def imported():
    return score_imported()


@pytest.mark.parametrize("sort", ["raw", "sink"])
def test_imported_files_are_judged_as_well(imported, sort):
    wrong = [row for row in imported[sort] if not row["right"]]
    assert len(imported[sort]) >= 10
    assert len(wrong) <= 0.1 * len(imported[sort]), wrong


@pytest.fixture(scope="module")
def predicted():
    return whatif.score()


def test_predictions_of_stages_that_wait_are_close(predicted):
    figures = whatif.summary(predicted)
    assert figures["waiting"] >= 25
    assert figures["median_error"] <= 0.05
    assert figures["p90_error"] <= 0.15


def test_intervals_of_stages_that_compute_hold_what_came_out(predicted):
    figures = whatif.summary(predicted)
    assert figures["intervals"] >= 12
    assert figures["covered"] >= 0.9 * figures["intervals"]
    assert figures["widest"] <= 1.8


def test_no_promised_gain_became_a_loss(predicted):
    assert whatif.summary(predicted)["losses"] == []
