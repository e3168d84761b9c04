"""What two runs handed out: the same, the same rows in another order, or something else; and what tune does with it."""

import json
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tune_fake import COMMAND, SITE, FakeBench, by_workers, column, epoch, pipeline, with_a_cache, workers_of

from pipeprof.errors import RunError, WorkloadError
from pipeprof.experiment.journal import SESSION
from pipeprof.experiment.tune.patch import content_of
from pipeprof.experiment.tune.rows import acceptable, compared_columns, compared_epochs, epochs_of, worse
from pipeprof.experiment.tune.search import TuneWish, run_tune
from pipeprof.experiment.tune.state import new_state
from pipeprof.experiment.tune.trial import is_proven
from pipeprof.record.settings_file import OperatorSetting, Settings
from pipeprof.verdict.candidate import Recorded


@pytest.mark.parametrize(
    ("plain", "changed", "expected"),
    [
        ([epoch()], [epoch()], "same"),
        ([epoch()], [epoch("another order")], "permuted"),
        ([epoch()], [epoch("another order", "other rows")], "other"),
        ([epoch()], [epoch("another order", number=95)], "other"),
        ([epoch(), epoch()], [epoch(), epoch("another order", "other rows")], "other"),
        ([epoch(), epoch()], [epoch(), epoch("another order")], "permuted"),
        ([epoch(), epoch()], [epoch()], "same"),  # a training that runs for a time
        ([epoch(whole=False)], [epoch(whole=False)], "same"),
        ([epoch(whole=False)], [epoch("another order", whole=False)], "permuted"),
        ([epoch(whole=False)], [epoch("another order", "other rows", whole=False)], "other"),
        (
            [epoch(whole=False)],
            [msgspec.structs.replace(epoch("more", "more rows", whole=False), batches=13)],
            "not_seen",
        ),
        # It went on where the original ended, or ended where that went on.
        ([epoch()], [msgspec.structs.replace(epoch("more", "more rows", whole=False), batches=13)], "other"),
        ([epoch(whole=False)], [msgspec.structs.replace(epoch("fewer", "fewer rows", 64), batches=8)], "other"),
        ([], [epoch()], "not_seen"),
    ],
)
def test_epochs_are_compared_one_by_one(plain, changed, expected):
    word, why = compared_epochs(plain, changed)
    assert word == expected
    assert bool(why) == (word == "other")


def test_the_epochs_of_a_place_come_in_their_order():
    facts = {"batches": 1, "rows": 4, "ordered": "o", "whole": True}
    events = [
        facts | {"number": number, "epoch": at, "site": site, "sum": f"{number}.{at}"}
        for number, at, site in [(3, 0, "a"), (1, 1, "a"), (1, 0, "a"), (2, 0, "b")]
    ]
    assert [one.sum for one in epochs_of(events, "a")] == ["1.0", "1.1", "3.0"]
    assert len(epochs_of(events, None)) == 4


@given(st.lists(st.sampled_from(["same", "permuted", "random", "not_reproducible", "other", "not_seen"]), min_size=1))
def test_one_bad_comparison_outweighs_all_others(words):
    found = "not_seen"
    for word in words:
        found = worse(found, word)
    order = ["not_seen", "same", "permuted", "random", "not_reproducible", "other"]
    assert found == max(words, key=order.index)


replaced = msgspec.structs.replace


def augmented(drawn, label="", **more):
    """An epoch of pictures that were drawn at random, and of labels."""
    return epoch(
        f"{drawn}{label}{more}", f"{drawn}{label}", columns=[column("image", drawn), column("label", label, **more)]
    )


PLAIN, SEEDED = [augmented("one")], [augmented("two")]


@pytest.mark.parametrize(
    ("changed", "order", "expected"),
    [
        (augmented("three"), False, "random"),
        (augmented("one"), False, "random"),
        (augmented("three", "other"), False, "other"),
        (augmented("three", order="another order"), False, "other"),
        (augmented("three", order="another order"), True, "random"),
        (augmented("three", form="float64"), True, "other"),
        (epoch("x", "y", columns=[column("image", "three", form="smaller"), column("label")]), False, "other"),
        (epoch("x", "y", columns=[column("label")]), False, "other"),
        (epoch("x", "y", number=95, columns=[column("image", "three"), column("label")]), False, "other"),
        (epoch("x", "y", whole=False, columns=[column("image", "three"), column("label")]), False, "random"),
    ],
)
def test_where_some_columns_are_random_the_others_are_compared(changed, order, expected):
    word, why = compared_columns(PLAIN, SEEDED, [changed], order=order)
    assert word == expected
    assert why.startswith("random operations draw other numbers in column `image`;") is (expected == "random")
    assert why


def test_columns_that_stand_beside_other_ones_are_other_rows_whatever_is_allowed():
    plain = [augmented("one")]
    (word, why) = compared_columns(plain, plain, [replaced(plain[0], ordered="moved", sum="others")], order=True)
    assert (word, "other ones stand beside each other" in why) == ("other", True)
    assert compared_columns(plain, plain, [replaced(plain[0], ordered="moved")], order=True)[0] == "random"


def test_where_every_column_is_random_there_is_nothing_to_hold_on_to():
    plain, seeded, changed = ([epoch("x", drawn, columns=[column("image", drawn)])] for drawn in ("1", "2", "3"))
    why = "epoch 1 has random numbers in every column, so nothing can be compared"
    assert compared_columns(plain, seeded, changed, order=False) == ("not_reproducible", why)
    assert compared_columns([], seeded, changed, order=False) == ("not_seen", "")


def test_random_rows_that_end_early_are_other_ones():
    plain, changed = (msgspec.structs.replace(augmented(drawn), whole=drawn == "three") for drawn in ("one", "three"))
    changed = msgspec.structs.replace(changed, batches=8, rows=64)
    assert compared_columns([plain], SEEDED, [changed], order=True)[0] == "other"


def test_an_epoch_that_drops_other_rows_under_another_seed_is_like_it():
    """`.shuffle()` and `drop_remainder`: most labels, or numbers of rows, are still there."""
    kept = replace_least(column("id"), range(20, 52)), replace_least(column("id", "seeded"), range(24, 56))
    assert kept[0].is_like(kept[1])
    assert not kept[0].is_like(replace_least(column("id"), range(60, 92)))


def replace_least(one, numbers):
    return type(one)(name=one.name, ordered=one.ordered, sum=one.sum, form=one.form,
                     least=tuple(f"{number:03d}" for number in numbers))  # fmt: skip


@pytest.fixture
def tune(tmp_path):
    def run(bench, folder="tuned", budget_s=3600.0, **wish):
        wish = TuneWish(COMMAND, tmp_path, tmp_path / folder, budget_s, **wish)
        return run_tune(wish, bench, lambda _line: None)[0]

    return run


def reading(op_type="TFReaderOp", **more):
    """A training that waits for a reader of files, node 2."""
    loop = pipeline(6, 6, 40, consumer=100.0)
    stages = tuple(replace(one, op_type=op_type, is_python=False) if one.op_id == 2 else one for one in loop.stages)
    bench = FakeBench(replace(loop, stages=stages), by_workers(loop), **more)
    seen = bench._seen
    bench._seen = lambda settings: replace(seen(settings), recorded=Recorded(readers=frozenset({2})))
    return bench


def of_the_reader(state):
    return [one for one in state.trials if one.key.startswith("2:workers") and "+" not in one.key]


def permuting(settings, _number):
    return [epoch("another order") if workers_of(settings, 2) > 1 else epoch()]


def handed(settings, _number):
    return ("two", "one") if workers_of(settings, 2) > 1 else ("one", "two")


def verdict(state, tmp_path):
    return content_of(state, tmp_path, allow_unchecked=False)["verdict"]


def test_another_order_is_not_tried_unasked_and_counted(tune):
    bench = reading()
    state = tune(bench)
    assert of_the_reader(state) == []
    assert workers_of(state.settings, 2) == 1
    assert state.seen[-1]["permuting"]
    assert bench.compared == []


def test_a_reader_that_keeps_the_order_needs_no_leave(tune, tmp_path):
    bench = reading("MindRecordOp")
    state = tune(bench)
    assert workers_of(state.settings, 2) > 1
    assert state.final.batches == "same"
    assert state.final.rows_compared
    assert verdict(state, tmp_path) == "proven"


def test_with_leave_the_same_rows_in_another_order_are_taken(tune, tmp_path):
    bench = reading()
    bench.whole, bench.handed = permuting, handed
    state = tune(bench, allow_order=True)
    accepted = next(one for one in of_the_reader(state) if one.verdict == "accepted")
    assert accepted.batches == state.final.batches == "permuted"
    assert is_proven(state)
    assert verdict(state, tmp_path) == "proven"
    assert state.final.ratio == pytest.approx(4.0, rel=0.05)


def test_with_leave_other_rows_are_refused_before_any_pair(tune):
    bench = reading()
    bench.whole = lambda settings, _number: [epoch("x", "other") if workers_of(settings, 2) > 1 else epoch()]
    state = tune(bench, allow_order=True)
    refused = of_the_reader(state)
    assert refused
    assert {(one.verdict, len(one.a)) for one in refused} == {("other_data", 0)}
    assert all("epoch 1 has other rows" in one.error for one in refused)
    assert workers_of(state.settings, 2) == 1


def test_rows_that_no_two_unchanged_runs_share_are_not_permuted_ones(tune):
    bench = reading()
    bench.whole = lambda _settings, number: [epoch(f"{number}", f"random {number}")]
    state = tune(bench, allow_order=True)
    assert {one.verdict for one in of_the_reader(state)} == {"unchecked"}
    assert workers_of(state.settings, 2) == 1


def by_themselves(settings, number):
    """The same rows, in an order of their own in every run."""
    return [epoch(f"order {number}")]


@pytest.mark.parametrize(("op_type", "node"), [("TFReaderOp", 2), ("MindRecordOp", 2)])
def test_with_leave_an_order_that_differs_between_unchanged_runs_is_fine(tune, tmp_path, op_type, node):
    bench = reading(op_type)
    bench.whole, bench.handed = by_themselves, lambda _settings, number: (f"order {number}",)
    state = tune(bench, allow_order=True)
    assert workers_of(state.settings, node) > 1
    assert (state.reproducible, state.final.batches) == ("permuted", "permuted")
    assert verdict(state, tmp_path) == "proven"
    assert bench.compared.count(Settings(site=SITE)) == 2  # once more than the original: asked once


def test_without_leave_such_an_order_cannot_be_compared(tune):
    bench = reading("MindRecordOp")
    bench.whole, bench.handed = by_themselves, lambda _settings, number: (f"order {number}",)
    state = tune(bench)
    assert state.settings.is_empty
    assert "unchecked" in {one.verdict for one in of_the_reader(state)}


def test_rows_that_differ_by_themselves_are_compared_once(tune):
    bench = reading()
    bench.whole = lambda _settings, number: [epoch(f"{number}", f"random {number}")]
    state = tune(bench, allow_order=True)
    assert len(of_the_reader(state)) > 1
    assert len(bench.compared) == 3


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
        ({"workers": 2}, {"same", "permuted", "random", "not_reproducible", "not_seen"}),
        ({"maps_after": 1}, {"same", "permuted"}),  # with a batch a function may do something else
        ({"cache": 9}, {"same"}),  # of each epoch, though nothing is drawn or shuffled any more
    ],
)
def test_not_every_change_has_the_leave_that_was_given(tmp_path, change, allowed):
    state = new_state(TuneWish(COMMAND, tmp_path, allow_order=True, allow_random=True))
    settings = Settings(operators=(OperatorSetting(node=0, op_type="MapOp", **change),))
    words = ["same", "permuted", "random", "not_reproducible", "not_seen", "other"]
    assert {one for one in words if state.may_take(one, settings, unchecked=True)} == allowed
    assert state.may_take("not_seen", settings, so_far=True)


def test_an_epoch_that_nobody_read_to_its_end_proves_nothing_of_its_rows(tune):
    bench = reading()
    bench.whole = lambda settings, _number: [epoch(f"{workers_of(settings, 2)}", whole=False)]
    state = tune(bench, allow_order=True)
    assert {one.verdict for one in of_the_reader(state)} == {"unchecked"}


def test_rows_that_differ_late_are_found_although_the_first_batches_are_the_same(tune, tmp_path):
    """The last, short batch, or the third epoch of a source that changes."""
    bench = FakeBench(pipeline(6, 40, 6, consumer=100.0))
    bench.whole = lambda settings, _number: [epoch(), epoch("x", "other") if settings.operators else epoch()]
    state = tune(bench)
    assert [one.verdict for one in state.trials][:1] == ["accepted"]
    assert state.final.batches == "other"
    assert state.final.a == []
    assert verdict(state, tmp_path) == "not_judged"


def test_another_order_that_only_whole_epochs_show_needs_leave(tune, tmp_path):
    bench = FakeBench(pipeline(6, 40, 6, consumer=100.0))
    bench.whole = lambda settings, _number: [epoch("late" if settings.operators else "in order")]
    state = tune(bench)
    assert state.final.batches == "permuted"
    assert verdict(state, tmp_path) == "not_judged"
    assert not is_proven(state, allow_unchecked=True)


def test_a_run_that_fails_while_rows_are_compared_is_a_candidate_that_failed(tune):
    bench = reading()

    def whole(settings, _number):
        if settings.operators:
            raise WorkloadError("it ran out of files")
        return [epoch()]

    bench.whole = whole
    state = tune(bench, allow_order=True)
    assert {(one.verdict, one.error) for one in of_the_reader(state)} == {("failed", "it ran out of files")}


def drawing():
    """A map in C++ whose random numbers depend on how many workers it has."""
    bench = FakeBench(pipeline(6, 40, 6, consumer=100.0))
    bench.handed = lambda settings, _number: (f"drawn by {workers_of(settings, 1)}",)
    bench.whole = lambda settings, _number: [augmented(f"drawn by {workers_of(settings, 1)}")]
    bench.reseeded = lambda _settings: [augmented("seeded")]
    return bench


def test_random_numbers_of_another_number_of_workers_need_leave(tune, tmp_path):
    state = tune(drawing())
    assert state.settings.is_empty
    assert state.trials[0].verdict == "other_data"
    bench = drawing()
    state = tune(bench, folder="allowed", allow_random=True)
    assert workers_of(state.settings, 1) >= 4
    assert state.final.batches == "random"
    assert (
        state.final.why == "random operations draw other numbers in column `image`; all else in the epochs is the same"
    )
    assert all(one.error == "" for one in state.trials if one.verdict == "accepted")
    assert is_proven(state)
    assert verdict(state, tmp_path) == "proven"
    assert bench.compared.count(Settings(site=SITE)) == 2  # as it is, and with other seeds: asked once


def frozen(settings, _number):
    """What is drawn for the rows, where nobody sees that it is: behind a cache every epoch gets that of the first."""
    return "the first" if settings.keeps_rows else "new ones"


def unlike(_settings, number):
    return f"that of run {number}"


@pytest.mark.parametrize(
    ("drawn", "leave", "came"), [(frozen, "allow_random", "other_data"), (unlike, "allow_unchecked", "unchecked")]
)
def test_no_leave_lets_every_epoch_have_the_random_numbers_of_the_first(tune, tmp_path, drawn, leave, came):
    def keeping():
        bench = with_a_cache(epochs=2)
        bench.handed = lambda settings, number: (drawn(settings, number),)
        bench.whole = lambda settings, number: [augmented(drawn(settings, number))]
        bench.reseeded = lambda _settings: [augmented("seeded")]
        return bench

    state = tune(keeping(), **{leave: True})
    assert [one.verdict for one in state.trials if "cache" in one.key] == [came]
    assert state.settings.is_empty
    bench = keeping()
    assert tune(bench, **{leave: True}).trials == state.trials
    assert bench.runs == []  # nor is it tried again and again
    assert not content_of(state, tmp_path, allow_unchecked=True)["lacks_time"]


def test_with_that_leave_labels_that_move_are_still_other_batches(tune, tmp_path):
    bench = drawing()
    bench.whole = lambda settings, _number: [
        augmented(f"drawn by {workers_of(settings, 1)}", order="in order" if settings.is_empty else "moved")
    ]
    state = tune(bench, allow_random=True)
    assert state.settings.is_empty
    first = state.trials[0]
    assert (first.verdict, first.batches) == ("other_data", "other")
    assert "the values of column `label`" in first.error


def test_with_that_leave_a_change_without_a_gain_is_not_called_other_data(tune):
    bench = drawing()
    bench.truth = lambda _settings: 20.0
    state = tune(bench, allow_random=True)
    tried = [one for one in state.trials if workers_of(one.settings, 1) > 1]
    assert tried
    assert {one.verdict for one in tried} <= {"no_gain", "undecided", "hopeless"}


def test_leave_makes_it_another_tuning(tune):
    tune(reading())
    with pytest.raises(RunError, match="option or version"):
        tune(reading(), allow_order=True)


def test_of_epochs_that_nobody_read_to_their_end_more_than_the_first_batches_is_compared(tune, tmp_path):
    """A training of so many steps: rows that come late are other ones, though the epoch has more."""
    bench = FakeBench(pipeline(6, 40, 6, consumer=100.0))
    bench.whole = lambda settings, _number: [
        epoch("x", "other", whole=False) if settings.operators else epoch(whole=False)
    ]
    state = tune(bench)
    assert state.final.batches == "other"
    assert verdict(state, tmp_path) == "not_judged"


def test_with_leave_for_another_order_such_epochs_say_nothing():
    plain, changed = ([epoch(order, order, whole=False)] for order in ("one", "another"))
    assert compared_epochs(plain, changed, order=True) == ("not_seen", "")


def test_a_run_that_fingerprints_all_rows_may_take_as_long_as_the_originals(tune):
    """Which many small rows take far longer for than a run that is timed."""
    bench, limits = FakeBench(pipeline(6, 40, 6, consumer=100.0)), []
    rows = bench.rows

    def slow(settings, folder, longest_s, **more):
        limits.append(longest_s)
        bench.clock += 300.0
        return rows(settings, folder, longest_s, **more)

    bench.rows = slow
    tune(bench)
    assert limits[0] is None
    assert limits[1] > 4 * 300.0


def test_nothing_is_proven_without_time_to_compare_all_rows(tune, tmp_path):
    loop = pipeline(6, 40, 6, consumer=100.0)
    state = tune(FakeBench(loop))
    path = tmp_path / "tuned" / SESSION
    path.write_text(json.dumps(json.loads(path.read_text()) | {"state": "open", "final": None, "rows_s": 500.0}))
    budget_s = state.spent_s + 900.0
    state = tune(FakeBench(loop), budget_s=budget_s)
    assert state.final.a == []
    content = content_of(state, tmp_path, allow_unchecked=False)
    assert (content["verdict"], content["lacks_time"]) == ("undecided", True)
    assert content["next_budget_s"] > budget_s
    assert verdict(tune(FakeBench(loop), budget_s=content["next_budget_s"]), tmp_path) == "proven"
