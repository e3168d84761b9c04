"""What two runs handed out: the same, the same rows in another order, or something else; and what tune does with it."""

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tune_fake import COMMAND, SITE, FakeBench, column, epoch, pipeline, slow_map, with_a_cache, workers_of

from pipeprof.errors import RunError, WorkloadError
from pipeprof.experiment.tune.rows import acceptable, compared_columns, compared_epochs, epochs_of, worse
from pipeprof.experiment.tune.search import TuneWish
from pipeprof.experiment.tune.state import new_state
from pipeprof.experiment.tune.trial import is_proven
from pipeprof.record.settings_file import OperatorSetting, Settings
from pipeprof.verdict.candidate import Recorded

changed = msgspec.structs.replace
WHOLE, CUT = epoch(), epoch(whole=False)
MOVED, OTHER = epoch("another order"), epoch("another order", "other rows")
LONGER = changed(epoch("more", "more rows", whole=False), batches=13)


@pytest.mark.parametrize(
    ("plain", "new", "expected"),
    [
        ([WHOLE], [WHOLE], "same"), ([WHOLE], [MOVED], "permuted"), ([WHOLE], [OTHER], "other"),
        ([WHOLE], [epoch("another order", number=95)], "other"), ([WHOLE, WHOLE], [WHOLE, OTHER], "other"),
        ([WHOLE, WHOLE], [WHOLE, MOVED], "permuted"), ([WHOLE, WHOLE], [WHOLE], "same"),  # one that runs for a time
        ([CUT], [CUT], "same"), ([CUT], [changed(MOVED, whole=False)], "permuted"),
        ([CUT], [changed(OTHER, whole=False)], "other"), ([CUT], [LONGER], "not_seen"),
        # It went on where the original ended, or ended where that went on.
        ([WHOLE], [LONGER], "other"), ([CUT], [changed(epoch("fewer", "fewer rows", 64), batches=8)], "other"),
        ([], [WHOLE], "not_seen"),
    ],
)  # fmt: skip
def test_epochs_are_compared_one_by_one(plain, new, expected):
    word, why = compared_epochs(plain, new)
    assert word == expected
    assert bool(why) == (word == "other")


def test_with_leave_for_another_order_epochs_that_nobody_read_to_their_end_say_nothing():
    plain, new = ([epoch(order, order, whole=False)] for order in ("one", "another"))
    assert compared_epochs(plain, new, order=True) == ("not_seen", "")


def test_the_epochs_of_a_place_come_in_their_order():
    facts = {"batches": 1, "rows": 4, "ordered": "o", "whole": True}
    events = [
        facts | {"number": number, "epoch": at, "site": site, "sum": f"{number}.{at}"}
        for number, at, site in [(3, 0, "a"), (1, 1, "a"), (1, 0, "a"), (2, 0, "b")]
    ]
    assert [one.sum for one in epochs_of(events, "a")] == ["1.0", "1.1", "3.0"]
    assert len(epochs_of(events, None)) == 4


ORDER = ["not_seen", "same", "permuted", "random", "not_reproducible", "other"]


@given(st.lists(st.sampled_from(ORDER), min_size=1))
def test_one_bad_comparison_outweighs_all_others(words):
    found = "not_seen"
    for word in words:
        found = worse(found, word)
    assert found == max(words, key=ORDER.index)


def augmented(drawn, label="", **more):
    """An epoch of pictures that were drawn at random, and of labels."""
    columns = [column("image", drawn), column("label", label, **more)]
    return epoch(f"{drawn}{label}{more}", f"{drawn}{label}", columns=columns)


PLAIN, SEEDED = [augmented("one")], [augmented("two")]
DRAWN = [column("image", "three"), column("label")]


@pytest.mark.parametrize(
    ("new", "order", "expected"),
    [
        (augmented("three"), False, "random"), (augmented("one"), False, "random"),
        (augmented("three", "other"), False, "other"),
        (augmented("three", order="another order"), False, "other"),
        (augmented("three", order="another order"), True, "random"),
        (augmented("three", form="float64"), True, "other"),
        (epoch("x", "y", columns=[column("image", "three", form="smaller"), column("label")]), False, "other"),
        (epoch("x", "y", columns=DRAWN[1:]), False, "other"),
        (epoch("x", "y", number=95, columns=DRAWN), False, "other"),
        (epoch("x", "y", whole=False, columns=DRAWN), False, "random"),
    ],
)  # fmt: skip
def test_where_some_columns_are_random_the_others_are_compared(new, order, expected):
    word, why = compared_columns(PLAIN, SEEDED, [new], order=order)
    assert word == expected
    assert why.startswith("random operations draw other numbers in column `image`;") is (expected == "random")
    assert why


ONLY = {drawn: [epoch("x", drawn, columns=[column("image", drawn)])] for drawn in "123"}
CUT_SHORT = [changed(PLAIN[0], whole=False)]


@pytest.mark.parametrize(
    ("plain", "seeded", "new", "order", "expected", "why"),
    [
        # columns that stand beside other ones are other rows whatever is allowed
        (PLAIN, PLAIN, [changed(PLAIN[0], ordered="moved", sum="others")], True, "other", "beside each other"),
        (PLAIN, PLAIN, [changed(PLAIN[0], ordered="moved")], True, "random", ""),
        (ONLY["1"], ONLY["2"], ONLY["3"], False, "not_reproducible", "in every column"),  # nothing to hold on to
        ([], ONLY["2"], ONLY["3"], False, "not_seen", ""),
        (CUT_SHORT, SEEDED, [changed(augmented("three"), batches=8, rows=64)], True, "other", "64 rows"),  # ends early
    ],
)
def test_where_columns_are_random_other_rows_are_told_from_those_that_say_nothing(
    plain, seeded, new, order, expected, why
):
    word, told = compared_columns(plain, seeded, new, order=order)
    assert (word, bool(told), why in told) == (expected, bool(why), True)


def test_an_epoch_that_drops_other_rows_under_another_seed_is_like_it():
    """`.shuffle()` and `drop_remainder`: most labels, or numbers of rows, are still there."""

    def of(first, drawn=""):
        return changed(column("id", drawn), least=tuple(f"{number:03d}" for number in range(first, first + 32)))

    assert of(20).is_like(of(24, "seeded"))
    assert not of(20).is_like(of(60))


def reading(op_type="TFReaderOp", **given):
    """A training that waits for a reader of files, node 2."""
    loop = pipeline(6, 6, 40, consumer=100.0)
    stages = tuple(replace(one, op_type=op_type, is_python=False) if one.op_id == 2 else one for one in loop.stages)
    bench = FakeBench(replace(loop, stages=stages), **given)
    seen = bench._seen
    bench._seen = lambda settings: replace(seen(settings), recorded=Recorded(readers=frozenset({2})))
    return bench


def of_the_reader(state):
    return [one for one in state.trials if one.key.startswith("2:workers") and "+" not in one.key]


def more(settings):
    """Whether the reader has more workers."""
    return workers_of(settings, 2) > 1


# The same rows, in an order of their own in every run.
BY_THEMSELVES = {
    "whole": lambda _settings, number: [epoch(f"order {number}")],
    "handed": lambda _settings, number: (f"order {number}",),
}


def test_another_order_is_not_tried_unasked_and_counted(tune):
    bench = reading()
    state = tune(bench)
    assert (of_the_reader(state), more(state.settings), bench.compared) == ([], False, [])
    assert state.seen[-1]["permuting"]


def test_a_reader_that_keeps_the_order_needs_no_leave(tune):
    state = tune(reading("MindRecordOp"))
    assert more(state.settings)
    assert (state.final.batches, state.final.rows_compared, tune.word()) == ("same", True, "proven")


def test_with_leave_the_same_rows_in_another_order_are_taken(tune):
    bench = reading(
        whole=lambda settings, _number: [epoch("another order") if more(settings) else epoch()],
        handed=lambda settings, _number: ("two", "one") if more(settings) else ("one", "two"),
    )
    state = tune(bench, allow_order=True)
    accepted = next(one for one in of_the_reader(state) if one.verdict == "accepted")
    assert accepted.batches == state.final.batches == "permuted"
    assert (is_proven(state), tune.word()) == (True, "proven")
    assert state.final.ratio == pytest.approx(4.0, rel=0.05)


@pytest.mark.parametrize("op_type", ["TFReaderOp", "MindRecordOp"])
def test_with_leave_an_order_that_differs_between_unchanged_runs_is_fine(tune, op_type):
    bench = reading(op_type, **BY_THEMSELVES)
    state = tune(bench, allow_order=True)
    assert more(state.settings)
    assert (state.reproducible, state.final.batches, tune.word()) == ("permuted", "permuted", "proven")
    assert bench.compared.count(Settings(site=SITE)) == 2  # once more than the original: asked once


def test_without_leave_such_an_order_cannot_be_compared(tune):
    state = tune(reading("MindRecordOp", **BY_THEMSELVES))
    assert state.settings.is_empty
    assert "unchecked" in {one.verdict for one in of_the_reader(state)}


@pytest.mark.parametrize(
    ("batches", "plain", "with_order", "unchecked"),
    [
        ("same", True, True, True), ("permuted", False, True, False), ("other", False, False, False),
        ("not_reproducible", False, False, True), ("not_seen", False, False, True),
    ],
)  # fmt: skip
def test_what_may_be_taken(batches, plain, with_order, unchecked):
    assert acceptable(batches, order=False) == plain
    assert acceptable(batches, order=True) == with_order
    assert acceptable(batches, order=False, unchecked=True) == unchecked


@pytest.mark.parametrize(
    ("change", "allowed"),
    [
        ({"workers": 2}, {*ORDER} - {"other"}),
        ({"maps_after": 1}, {"same", "permuted"}),  # with a batch a function may do something else
        ({"cache": 9}, {"same"}),  # of each epoch, though nothing is drawn or shuffled any more
    ],
)
def test_not_every_change_has_the_leave_that_was_given(tmp_path, change, allowed):
    state = new_state(TuneWish(COMMAND, tmp_path, allow_order=True, allow_random=True))
    settings = Settings(operators=(OperatorSetting(node=0, op_type="MapOp", **change),))
    assert {one for one in ORDER if state.may_take(one, settings, unchecked=True)} == allowed
    assert state.may_take("not_seen", settings, so_far=True)


@pytest.mark.parametrize(
    ("plain", "new", "batches"),
    [
        ([WHOLE, WHOLE], [WHOLE, epoch("x", "other")], "other"),  # the last, short batch, or a source that changes
        ([WHOLE], [epoch("late")], "permuted"),  # another order that only whole epochs show needs leave
        ([CUT], [epoch("x", "other", whole=False)], "other"),  # of so many steps: more than the first is compared
    ],
)
def test_rows_that_differ_late_are_found_although_the_first_batches_are_the_same(tune, plain, new, batches):
    state = tune(slow_map(whole=lambda settings, _number: new if settings.operators else plain))
    assert state.trials[0].verdict == "accepted"
    assert (state.final.batches, state.final.a, tune.word()) == (batches, [], "not_judged")
    assert not is_proven(state, allow_unchecked=True)


def breaking(settings, _number):
    if settings.operators:
        raise WorkloadError("it ran out of files")
    return [epoch()]


@pytest.mark.parametrize(
    ("whole", "verdict", "why", "compared"),
    [
        (lambda settings, _number: [epoch("x", "o") if more(settings) else epoch()], "other_data", "epoch 1 has", None),
        (lambda _settings, number: [epoch(f"{number}", f"random {number}")], "unchecked", "", 3),  # compared once
        (lambda settings, _number: [epoch(f"{workers_of(settings, 2)}", whole=False)], "unchecked", "", None),
        (breaking, "failed", "it ran out of files", None),
    ],
)  # fmt: skip
def test_with_leave_rows_that_are_others_or_cannot_be_told_are_refused_before_any_pair(
    tune, whole, verdict, why, compared
):
    bench = reading(whole=whole)
    state = tune(bench, allow_order=True)
    assert {(one.verdict, len(one.a)) for one in of_the_reader(state)} == {(verdict, 0)}
    assert all(why in one.error for one in of_the_reader(state))
    assert not more(state.settings)
    assert compared is None or (len(bench.compared) == compared and len(of_the_reader(state)) > 1)


def drawing(**given):
    """A map in C++ whose random numbers depend on how many workers it has."""

    def drawn(settings):
        return f"drawn by {workers_of(settings, 1)}"

    facts = {
        "handed": lambda settings, _number: (drawn(settings),),
        "whole": lambda settings, _number: [augmented(drawn(settings))],
        "reseeded": lambda _settings: [augmented("seeded")],
    }
    return slow_map(**(facts | given))


def test_random_numbers_of_another_number_of_workers_need_leave(tune):
    state = tune(drawing())
    assert (state.settings.is_empty, state.trials[0].verdict) == (True, "other_data")
    bench = drawing()
    state = tune(bench, folder="allowed", allow_random=True)
    assert workers_of(state.settings, 1) >= 4
    assert (state.final.batches, "in column `image`;" in state.final.why) == ("random", True)
    assert all(one.error == "" for one in state.trials if one.verdict == "accepted")
    assert (is_proven(state), tune.word()) == (True, "proven")
    assert bench.compared.count(Settings(site=SITE)) == 2  # as it is, and with other seeds: asked once


def frozen(settings, _number):
    """What is drawn for the rows, where nobody sees that it is: behind a cache every epoch gets that of the first."""
    return "the first" if settings.keeps_rows else "new ones"


def unlike(_settings, number):
    return f"that of run {number}"


@pytest.mark.parametrize(
    ("drawn", "leave", "came"), [(frozen, "allow_random", "other_data"), (unlike, "allow_unchecked", "unchecked")]
)
def test_no_leave_lets_every_epoch_have_the_random_numbers_of_the_first(tune, drawn, leave, came):
    def keeping():
        return with_a_cache(
            epochs=2,
            handed=lambda settings, number: (drawn(settings, number),),
            whole=lambda settings, number: [augmented(drawn(settings, number))],
            reseeded=lambda _settings: [augmented("seeded")],
        )

    state = tune(keeping(), **{leave: True})
    assert [one.verdict for one in state.trials if "cache" in one.key] == [came]
    assert state.settings.is_empty
    bench = keeping()
    assert tune(bench, **{leave: True}).trials == state.trials
    assert bench.runs == []  # nor is it tried again and again
    assert not tune.content(unchecked=True)["lacks_time"]


def test_with_that_leave_labels_that_move_are_still_other_batches(tune):
    def whole(settings, _number):
        return [augmented(f"by {workers_of(settings, 1)}", order="in order" if settings.is_empty else "moved")]

    state = tune(drawing(whole=whole), allow_random=True)
    first = state.trials[0]
    assert (first.verdict, first.batches, state.settings.is_empty) == ("other_data", "other", True)
    assert "column `label`" in first.error


def test_with_that_leave_a_change_without_a_gain_is_not_called_other_data(tune):
    state = tune(drawing(truth=lambda _settings: 20.0), allow_random=True)
    tried = [one.verdict for one in state.trials if workers_of(one.settings, 1) > 1]
    assert tried
    assert set(tried) <= {"no_gain", "undecided", "hopeless"}


def test_leave_makes_it_another_tuning(tune):
    tune(reading())
    tune.refused(RunError, "option or version", reading(), allow_order=True)


def test_a_run_that_fingerprints_all_rows_may_take_as_long_as_the_originals(tune):
    """Which many small rows take far longer for than a run that is timed."""
    bench, limits = slow_map(), []
    rows = bench.rows

    def slow(settings, folder, longest_s, **more):
        limits.append(longest_s)
        bench.clock += 300.0
        return rows(settings, folder, longest_s, **more)

    bench.rows = slow
    tune(bench)
    assert limits[0] is None
    assert limits[1] > 4 * 300.0


def test_nothing_is_proven_without_time_to_compare_all_rows(tune):
    budget_s = tune(slow_map()).spent_s + 900.0
    tune.edit(state="open", final=None, rows_s=500.0)
    assert tune(slow_map(), budget_s).final.a == []
    content = tune.content()
    assert (content["verdict"], content["lacks_time"]) == ("undecided", True)
    assert content["next_budget_s"] > budget_s
    tune(slow_map(), content["next_budget_s"])
    assert tune.word() == "proven"
