"""The changes of an operator's settings that reports, `whatif` and `tune` choose from."""

from dataclasses import replace

import pytest
from test_suggest import stage
from typed_rows import of_dicts

from pipeprof.report.words import suggestions as words
from pipeprof.verdict import loop as measured
from pipeprof.verdict import suggest
from pipeprof.verdict.capacity import Change, Trial
from pipeprof.verdict.options import options
from pipeprof.verdict.predict import predict
from pipeprof.verdict.tuning import candidates, worth_trying

suggestions = of_dicts(suggest.suggestions)

loop_of = of_dicts(measured.loop_of)

KINDS = [{"kind": "wait"}, {"kind": "cpu", "cores": 1.0, "gil_share": 0.9}, {"kind": "gil", "cores": 1.0, "gil_share": 0.9},
         {"kind": "burst", "max_row_ns": 4e9}]  # fmt: skip
TRIED = Trial("tune", "MapOp", "f", {"workers": 1}, {"workers": 4}, 1.0, 0.97, 1.02)


def rows(**facts):
    return [stage(name="f", **facts), stage(0, "BatchOp", rate=35.0, is_python=False)]


def suggested(loop, row):
    return suggestions(row, row["kind"], loop)


@pytest.mark.parametrize("facts", KINDS)
@pytest.mark.parametrize("op_type", ["MapOp", "GeneratorOp"])
@pytest.mark.parametrize("tried", [(), (TRIED,)])
def test_a_report_advises_what_tune_tries_with_the_same_prediction(facts, op_type, tried):
    found = rows(op_type=op_type, **facts)
    loop = replace(loop_of(found, 8.0), trials=tried)
    offered = {one.changes: one.prediction for one in candidates(loop, {})}
    for item in suggested(loop, found[0]):
        names = {"num_parallel_workers": "workers", "prefetch_size": "prefetch"}
        if item.parameter in names and item.gain_high is not None and item.new != item.old:
            changes = [one for one in offered if len(one) == 1 and getattr(one[0], names[item.parameter]) == item.new]
        elif item.parameter == "python_multiprocessing":
            changes = [one for one in offered if len(one) == 1 and one[0].processes
                       and (one[0].workers or 1) == item.facts["new_workers"]]  # fmt: skip
        else:
            continue
        predictions = [offered[one] for one in changes]
        assert (item.gain, item.gain_low, item.gain_high, item.trial) in [
            (one.ratio, one.low, one.high, one.trial) for one in predictions
        ]


def test_what_was_measured_takes_the_place_of_the_prediction_everywhere():
    found = rows(kind="wait")
    loop = loop_of(found, 8.0)
    better = replace(TRIED, verb="whatif", times=1.31, low=1.2, high=1.4)
    first = suggested(loop, found[0])[0]
    assert (first.code, first.new, first.trial) == ("workers", 4, None)
    tried = replace(loop, trials=(better,))
    first = suggested(tried, found[0])[0]
    assert (first.new, first.gain, first.trial, first.verify) == (4, 1.31, "whatif", None)
    assert words.worded(first.as_dict())["text"].endswith("1.31 times as fast (1.20 to 1.40), as `whatif` measured")
    assert predict(tried, Change(1, workers=4)).trial == "whatif"
    for listed in (options(tried, 1), candidates(tried, {})):
        assert {one.key: one.prediction.trial for one in listed}["1:workers=4"] == "whatif"


def test_what_brought_nothing_is_neither_advised_nor_tried_again_nor_is_more_of_it():
    found = rows(kind="wait")
    loop = replace(loop_of(found, 8.0), trials=(TRIED,))
    assert [item.code for item in suggested(loop, found[0])] == ["cheaper_waits", "bound"]
    assert [one.key for one in worth_trying(candidates(loop, {}), ()) if "workers" in one.key and not one.is_unknown
            and "processes" not in one.key and "+" not in one.key] == []  # fmt: skip


@pytest.mark.parametrize(
    "other",
    [
        replace(TRIED, name="g"),
        replace(TRIED, op_type="BatchOp"),
        replace(TRIED, old={"workers": 2}),
        replace(TRIED, new={"workers": 4, "prefetch": 64}),
        replace(TRIED, new={"workers": 4, "cache": 1}),
    ],
)
def test_a_trial_of_something_else_says_nothing(other):
    found = rows(kind="wait")
    loop = replace(loop_of(found, 8.0), trials=(other,))
    assert suggested(loop, found[0])[0].gain == pytest.approx(3.5, rel=0.02)


def test_a_trial_of_one_of_two_operators_that_look_alike_says_nothing():
    found = [stage(name="f", kind="wait"), stage(2, name="f", rate=60.0)]
    loop = replace(loop_of(found, 8.0), trials=(TRIED,))
    assert suggested(loop, found[0])[0].trial is None
