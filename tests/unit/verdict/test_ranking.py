"""Which cause leads a run: by what it costs, whatever kind it is of."""

import msgspec
import pytest
from typed_rows import of_dicts

from pipeprof.report.words import verdict as words
from pipeprof.report.words.causes import NAMES
from pipeprof.report.words.verdict import PHRASES, costs, phrase
from pipeprof.verdict import data_cause, pipeline
from pipeprof.verdict.cause import Cause, RunVerdict
from pipeprof.verdict.ranking import ALIKE, CALL, CODES, rank
from pipeprof.verdict.replay import causes as replay_causes

diagnose = of_dicts(pipeline.diagnose)

S = 1_000_000_000
OP = {"op_id": 2, "op_type": "MapOp", "op_name": "f"}
ACTION = {"op_id": 2, "parameter": None, "old": None, "new": None, "gain": None, "gain_low": None, "gain_high": None,
          "trial": None}  # fmt: skip
BUSY = {"utilisation": 0.9, "cores": 0.8, "process_cores": 2.0, "gil_share": None}


def data(verdict="input_bound", wait=0.3, rule="utilisation", **more):
    facts = [{"fact": "freed", "value": more.pop("freed")}] if "freed" in more else []
    found = {"verdict": verdict, "data_wait_share": wait, "rule": rule, "rule_facts": facts, "confidence": "high"}
    named = OP | {"facts": BUSY} if verdict in ("input_bound", "balanced") else {}
    return diagnose([], [], []) | found | named | {"process": None} | more


def network(limit, share, inflation=None, waiting=0.0):
    return {"limit": limit, "limit_share": share, "actions": [{"code": "x", "share": share}], "inflation": inflation,
            "shares": {"data_wait": waiting}, "slowest_rank": None, "confidence": "medium", "doubts": []}  # fmt: skip


def part(name="evaluation", share=0.4):
    return {"part": name, "detail": "", "loop_share": share, "rank": 0, "dur_ns": 4 * S, "loop_ns": 10 * S}


def account(*large, slower=None):
    return {"large": list(large), "slower": slower}


def codes(verdict):
    return [cause.code for cause in verdict.causes]


def lead(diagnosis, whole=None, **more):
    return rank(diagnosis, whole or account(), **more).lead


def test_a_pipeline_that_takes_little_does_not_lead_over_a_host_that_takes_most():
    """Seen: a source of 0.14 cores led with x1.19 where compiling the step brought x5 to x8."""
    found = data("balanced", 0.02, "shared_cpu", freed=1.25, network=network("host_gap", 0.86))
    verdict = rank(found, account())
    assert codes(verdict)[:2] == ["host_gap", "shared_cpu"]
    assert verdict.lead.most == pytest.approx(1 / (1 - 0.86 * 0.98))
    assert verdict.alike == 1


def test_what_recording_adds_to_a_step_is_no_gap_of_the_host():
    """Operators take 0.4 of a step that recording made twice as long: 0.8 of a usual one."""
    assert lead(data("consumer_bound", 0.0, network=network("host_gap", 0.6, 2.0))).share == pytest.approx(0.2)
    assert lead(data(wait=0.3, network=network("host_gap", 0.6, 2.0))).code == "input_bound"


@pytest.mark.parametrize("limit", ["compute", "optimizer", "gradients", "compile"])
def test_what_a_training_is_for_leads_only_where_nothing_else_costs(limit):
    assert lead(data(wait=0.06, network=network(limit, 0.9))).code == "input_bound"
    assert lead(data("consumer_bound", 0.01, network=network(limit, 0.9))).code == limit


def test_a_cause_below_a_twentieth_of_the_time_leads_nothing():
    found = data("balanced", 0.04, "consumer", network=network("compute", 0.9))
    assert codes(rank(found, account())) == ["compute", "not_measured", "balanced"]


DRIFTS = {"causes": [], "rank": 0, "before_ns": 1, "after_ns": 2}


def of_each_kind(share):
    """Candidates of each kind that costs so much, one at a time, in a loop that is busy with computing."""
    computing = network("compute", 0.9)
    quiet = data("consumer_bound", 0.0, network=computing)
    cores = share / (1 - share)
    return {
        "input_bound": rank(data(wait=share, network=computing), account()),
        "balanced": rank(data("balanced", share, "consumer", network=computing), account()),
        "host_gap": rank(data("consumer_bound", 0.0, network=network("host_gap", share)), account()),
        "communication": rank(data("consumer_bound", 0.0, network=network("communication", share)), account()),
        "part": rank(quiet, account(part(share=share))),
        "drift": rank(quiet, account(slower=DRIFTS | {"cost_share": share})),
        "process": rank(quiet | {"process": process(cores=cores, wait_cores=None)}, account()),
    }


def test_what_costs_a_tenth_leads_and_what_costs_less_than_a_twentieth_never_does():
    assert {kind: found.lead.code for kind, found in of_each_kind(0.1).items()} == {
        kind: kind for kind in of_each_kind(0.1)
    }
    small = of_each_kind(0.04)
    assert {kind for kind, found in small.items() if found.lead.code == kind} == set()
    assert {kind for kind, found in small.items() if found.beside} == set()


@pytest.mark.parametrize(("share", "first"), [(0.2, "input_bound"), (0.4, "part")])
def test_a_part_of_the_run_leads_where_it_costs_more_than_waiting(share, first):
    assert lead(data(wait=0.3), account(part(share=share))).code == first


def test_two_causes_of_like_size_are_both_named():
    found = data(wait=0.3, network=network("host_gap", 0.3 * ALIKE / 0.7))
    verdict = rank(found, account())
    assert [cause.code for cause in (verdict.lead, *verdict.beside)] == ["input_bound", "host_gap"]
    assert all("at most 1." in costs(cause) for cause in (verdict.lead, *verdict.beside))
    assert words.beside(verdict.beside[0], verdict.lead).startswith(
        "Host-bound, at about the same cost: 24 % of the time; at most 1.3"
    )
    assert rank(data(wait=0.3, network=network("host_gap", 0.3)), account()).beside == ()
    unsure = msgspec.structs.replace(verdict.lead, share=0.5, confidence="low")
    assert words.beside(unsure, verdict.beside[0]).startswith("Input-bound: f, which is less sure: 50 %")


@pytest.mark.parametrize(("share", "first"), [(ALIKE, "host_gap"), (ALIKE - 0.02, "input_bound")])
def test_of_two_causes_of_like_size_the_surer_one_leads(share, first):
    found = data(wait=0.3, confidence="low", network=network("host_gap", 0.3 * share / 0.7))
    assert lead(found).code == first


def test_a_stage_that_is_hardly_at_work_is_not_named():
    idle = BUSY | {"utilisation": 0.03, "cores": 0.01}
    assert lead(data(wait=0.3)).stage.name == "f"
    cause = lead(data(wait=0.3, facts=idle, suggestions=[ACTION | {"code": "cheaper_rows"}]))
    assert (cause.code, cause.stage, cause.advice) == ("input_bound", None, None)


def test_the_gain_is_of_the_advice_that_is_given():
    bound = ACTION | {"code": "bound", "gain_high": 3.0}
    predicted = ACTION | {"code": "workers", "gain": 1.5, "gain_low": 1.3, "gain_high": 1.6}
    little = ACTION | {"code": "workers", "gain": 1.02, "gain_low": 0.9, "gain_high": 1.2}
    advice = lead(data(suggestions=[predicted, bound])).advice
    assert (advice.code, advice.gain.origin, advice.gain.times) == ("workers", "predicted", 1.5)
    advice = lead(data(suggestions=[little, ACTION | {"code": "cheaper_rows"}, bound])).advice
    assert (advice.code, advice.gain.origin, advice.gain.times, advice.gain.high) == (
        "cheaper_rows",
        "bound",
        None,
        3.0,
    )


def test_no_advice_has_the_gain_of_another_one():
    bound = ACTION | {"code": "bound", "gain_high": 6.1}
    moved = ACTION | {"code": "to_processes", "parameter": "python_multiprocessing"}
    assert lead(data(suggestions=[moved, bound])).advice.gain is None
    within = moved | {"gain_low": 0.9, "gain_high": 1.8}
    gain = lead(data(suggestions=[within, bound])).advice.gain
    assert (gain.origin, gain.times, gain.low, gain.high) == ("predicted", None, 0.9, 1.8)
    tried = moved | {"gain": 1.3, "gain_low": 1.2, "gain_high": 1.4, "trial": "tune"}
    assert lead(data(suggestions=[tried, bound])).advice.gain.origin == "measured"
    quiet = ACTION | {"code": "stop_other_programs"}
    assert lead(data(suggestions=[quiet, bound])).advice.gain is None
    deeper = ACTION | {"code": "deeper_queue", "parameter": "prefetch_size", "old": 16, "new": 40}
    assert lead(data(suggestions=[deeper, bound])).advice.gain is None
    most = ACTION | {"code": "most_workers_wait", "parameter": "num_parallel_workers", "old": 2, "new": 2}
    assert lead(data(suggestions=[most, bound])).advice.gain.high == 6.1
    cheaper = ACTION | {"code": "cheaper_rows"}
    gain = lead(data("balanced", 0.02, "shared_cpu", freed=2.03, suggestions=[cheaper, bound])).advice.gain
    assert (gain.origin, gain.times, gain.high) == ("estimated", pytest.approx(1 / (1 - 0.8 / 2.0)), 6.1)


def test_where_cores_are_short_work_that_is_only_moved_is_no_advice():
    """`tune` found x1.00 for worker processes that were advised with the gain of a pipeline without CPU."""
    moved, cheaper = ACTION | {"code": "to_processes"}, ACTION | {"code": "cheaper_rows"}
    found = data("balanced", 0.02, "shared_cpu", freed=2.0, suggestions=[moved, cheaper])
    assert lead(found).advice.code == "cheaper_rows"
    assert lead(data(suggestions=[moved, cheaper])).advice.code == "to_processes"
    predicted = moved | {"gain": 1.4, "gain_low": 1.3, "gain_high": 1.5}
    assert lead(found | {"suggestions": [predicted, cheaper]}).advice.code == "to_processes"


def process(**more):
    return {"leads": True, "part": "child", "what": "Writer", "wait_cores": 0.5, "cores": 1.0, "training_cores": 1.0,
            "job_share": 0.5, "confidence": "high", "rank": 0} | more  # fmt: skip


def python_thread(**more):
    return {"part": "python_thread", "what": "count", "gil_share": 0.6, "cores": 0.5, "own_wait_cores": 0.2,
            "confidence": "medium", "rank": 0, "leads": True} | more  # fmt: skip


def test_a_thread_that_takes_the_lock_leads_over_the_gaps_that_it_makes():
    gap = network("host_gap", 0.5) | {"shares": {"host_gap": 0.5, "data_wait": 0.0}}
    found = lead(data("consumer_bound", 0.0, network=gap, process=python_thread()))
    assert (found.code, found.name, found.share) == ("thread", "count", 0.5)
    assert (found.advice.gain.times, found.most) == (pytest.approx(2.5), pytest.approx(1 / 0.3))


def test_a_thread_beside_a_network_that_computes_does_not_lead():
    busy = network("compute", 0.97) | {"shares": {"host_gap": 0.02, "data_wait": 0.01}}
    assert lead(data("consumer_bound", 0.0, network=busy, process=python_thread())).code == "compute"


def test_what_brings_another_cause_about_comes_before_it():
    found = data(wait=0.6, process=process())
    verdict = rank(found, account())
    assert (verdict.lead.code, verdict.lead.share, verdict.alike) == ("process", pytest.approx(1 / 3), 1)
    assert lead(data(wait=0.6, process=process(leads=False))).code == "input_bound"


def test_a_rank_that_became_slow_explains_that_the_steps_did():
    late = {"causes": [], "cost_share": 0.4, "rank": 0, "before_ns": 1, "after_ns": 2}
    item = {"code": "fail_slow", "cost": 0.2, "confidence": "high", "rank": 3}
    found = data("consumer_bound", 0.0)
    assert lead(found, account(slower=late), replay={"found": [item]}).code == "rank_cause"
    assert lead(found, account(slower=late), replay={"found": [item | {"code": "slow_worker"}]}).code == "drift"


def straggler(share, phase="forward", at=5):
    return {"found": [{"phase": phase, "share": share, "confidence": "high", "rank": at}]}


def test_a_straggler_explains_the_communication_that_waits_for_it():
    found = data("consumer_bound", 0.0, network=network("communication", 0.5))
    assert lead(found, straggler=straggler(0.07)).code == "straggler"
    assert lead(found, straggler=straggler(0.03)).code == "communication"
    waiting = data(wait=0.3)
    assert lead(waiting, straggler=straggler(0.4, "data_wait")).code == "input_bound"


def test_how_a_run_ended_comes_before_what_it_was_like():
    hang = {"code": "batch", "rank": 1, "for_s": 40.0}
    assert codes(rank(data(wait=0.9), account(), failed=True, hang=hang))[:3] == ["hang", "failed", "input_bound"]
    cause = lead(data(wait=0.9), hang=hang)
    assert (cause.detail, cause.rank, cause.evidence[0].value) == ("batch", 1, 40e9)


def test_a_share_of_the_steps_is_less_of_a_training_that_is_interrupted():
    assert lead(data(wait=0.4), training=0.5).share == pytest.approx(0.2)


def test_a_run_without_anything_is_not_measured():
    verdict = rank(data("not_measured", None), account())
    assert codes(verdict) == ["not_measured"]
    assert msgspec.json.decode(msgspec.json.encode(verdict), type=RunVerdict) == verdict


def test_every_cause_has_one_phrase():
    assert set(PHRASES) == set(CODES)
    assert {one.code for one in replay_causes.CAUSES} == set(NAMES)
    for code in CODES:
        said = phrase(Cause(code, detail="evaluation", name="x", rank=3))
        assert said
        assert "{" not in said
    assert costs(Cause("host_gap", share=0.999)) == "100 % of the time"
    assert costs(Cause("host_gap", share=0.5)) == "50 % of the time; at most 2 times as fast without it"


@pytest.mark.parametrize(("steps", "known"), [(2, False), (4, False), (5, True)])
def test_too_few_steps_bound_nothing_and_say_how_many_are_needed(steps, known):
    """Two samples once said "x28 at most"."""
    found = data(wait=0.964, doubts=[{"code": "few_steps", "steps": steps}] if steps < 5 else [])
    cause = lead(found)
    assert (cause.most is not None) is known
    assert ("at most 27.8 times" in costs(cause)) is known
    assert (f"cannot be told from {steps} steps: 5 or more are needed" in costs(cause)) is not known


def python_call(name="Log.step", share=0.5):
    shares = {"share": share, "most_share": share + 0.1, "wait_share": 0.0}
    return {"name": name, "where": "outside", "confidence": "high", "rank": 0, **shares}


def test_a_call_that_is_most_of_a_gap_leads_over_the_gap():
    gap = network("host_gap", 0.8)
    found = data("consumer_bound", 0.0, network=gap, loop_calls=[python_call()])
    assert codes(rank(found, account()))[:2] == [CALL, "host_gap"]
    assert lead(found).most == lead(found).advice.gain.high == pytest.approx(2.5)
    assert lead(data("consumer_bound", 0.0, network=gap, loop_calls=[python_call(share=0.3)])).code == "host_gap"


def test_a_callback_and_a_stage_that_lead_themselves_are_not_told_twice():
    called = [python_call("Monitor.on_train_step_end"), python_call("f")]
    whole = account(part("callback", 0.4) | {"detail": "Monitor"})
    assert CALL not in codes(rank(data(loop_calls=called), whole))
    assert codes(rank(data("consumer_bound", 0.0, loop_calls=called), account())).count(CALL) == 2


def test_compiling_a_step_is_not_bounded_by_its_gaps():
    """Seen: x2.26 at most was said of a quick-start loop, and x3.4 measured: compiled operators took less, too."""
    gap = network("host_gap", 0.5)
    compiled = lead(data("consumer_bound", 0.0, network=gap | {"actions": [{"code": "compile_step", "share": 0.5}]}))
    gain = compiled.advice.gain
    assert (gain.origin, gain.times, gain.low, gain.high) == ("estimated", pytest.approx(2.0), pytest.approx(1.5), None)
    assert lead(data("consumer_bound", 0.0, network=gap)).advice.gain.origin == "bound"


def test_no_bound_comes_from_one_of_two_lengths():
    found = data("consumer_bound", 0.0, network=network("host_gap", 0.9), modes={"short": {}, "long": {}})
    assert (lead(found).most, lead(found).of_one_mode) == (None, True)
    assert lead(found).advice.gain.high == pytest.approx(10.0)  # of steps like those


@pytest.mark.parametrize(("other_cores", "named"), [(0.0, True), (0.05, True), (1.9, False)])
def test_a_stage_is_weighed_against_all_that_take_cpu(other_cores, named):
    """37 % of what a crowded training got is next to nothing of what the machine has."""
    doubt = {"code": "other_load", "other_cores": other_cores, "cores": 2}
    diagnosis = {
        "op_id": 3, "op_type": "GeneratorOp", "op_name": "Pictures", "doubts": [doubt],
        "facts": {"utilisation": 0.027, "cores": 0.022, "process_cores": 0.06},
    }  # fmt: skip
    assert (data_cause.stage_of(diagnosis) is not None) is named


@pytest.mark.parametrize(("bound", "advised"), [(1.07, "keep_rows"), (4.5, "cheaper_rows"), (None, "cheaper_rows")])
def test_advice_of_unknown_gain_stands_behind_what_brings_more_than_it_can(bound, advised):
    """Seen: "make its rows cheaper", at most 1.07 times, was advised where kept rows bring 3.4 times."""
    actions = [ACTION | {"code": "cheaper_rows"}, ACTION | {"code": "keep_rows", "gain": 3.4, "gain_low": 3.0}]
    actions += [] if bound is None else [ACTION | {"code": "bound", "gain_high": bound}]
    assert lead(data(suggestions=actions)).advice.code == advised
