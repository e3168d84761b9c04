"""What limits a training that is not input-bound, from rows of the queries."""

import pytest
from typed_rows import of_dicts

from pipeprof.report.answer.doubts import clauses
from pipeprof.verdict import network, network_ranks
from pipeprof.verdict.network import ASLEEP, ENOUGH, LEAD, PARTS, STALLED, WARMUP_SHARE, take_sleep
from pipeprof.verdict.network_advice import communication, compute
from pipeprof.verdict.network_ops import LEAST_GROWTH
from pipeprof.verdict.network_ranks import ERRORS, LEAST_SHARE, LEAST_STEPS
from pipeprof.verdict.rules import graded

diagnose_network = of_dicts(network.diagnose_network)
slowest_rank, slow_links = of_dicts(network_ranks.slowest_rank), of_dicts(network_ranks.slow_links)

STEP = 1000


def phases(steps=20, rank=0, kind="train", inside=1.0, outside=1.0, overlapped=0, **parts):
    """Rows whose parts are given in thousandths of the step; the host gap is the rest."""
    parts = {**dict.fromkeys(PARTS, 0), **parts}
    parts["host_gap"] = parts["host_gap"] or STEP - sum(parts.values())
    common = {"rep": 0, "rank": rank, "kind": kind, "steps": steps, "step_ns": STEP * steps,
              "inside_work_ns": inside, "outside_work_ns": outside}  # fmt: skip
    rows = [{**common, "part": part, "total_ns": time * steps} for part, time in parts.items()]
    return [*rows, {**common, "part": "communication_overlapped", "total_ns": overlapped * steps}]


def shared(first, second, *others):
    """Phases of forward passes and of an optimizer with these shares of the step, and of others with the rest."""
    names = ("forward", "optimizer", "host_gap", "communication_tail", "after")
    parts = dict(zip(names, (first, second, *others), strict=False))
    return phases(**{name: round(share * STEP) for name, share in parts.items()})


def judged(rows=(), *more, **known):
    """A diagnosis of phases, or of forward passes that take most of the step."""
    return diagnose_network(rows or phases(forward=900), *more, **known)


def codes(found, of="actions"):
    return [item["code"] for item in found[of]]


def imbalance(rank, own, diff, part="host_gap", half_width=0.0, steps=16, ranks=2, communication=None, rep=0):
    """Rows of one rank that differs from the others in one part; `half_width` is that of the quartiles."""
    base = {"rep": rep, "rank": rank, "peers": 0, "ranks": ranks, "steps": steps, "step_ns": float(STEP)}
    waits = STEP - own if communication is None else communication
    spread = {"diff_low_ns": diff - half_width, "diff_high_ns": diff + half_width}
    rows = [{**base, **spread, "part": "own", "median_ns": own, "mean_ns": own, "diff_ns": diff}]
    for name in ("data_wait", "forward", "backward", "optimizer", "host_gap", "other", "communication", "waiting"):
        value = waits if name == "communication" else max(-diff, 0.0)
        differs = diff if name == part else 0.0
        rows.append({**base, "part": name, "median_ns": value, "mean_ns": value, "diff_ns": differs,
                     "diff_low_ns": 0.0, "diff_high_ns": 0.0})  # fmt: skip
    return rows


def growing(name="Add", slope=10.0, variance=1.0, share=0.1, **more):
    return {"rep": 0, "rank": 0, "name": name, "type": "Add", "phase": "forward", "shapes": 1, "steps": 20,
            "windows": 4, "span_steps": 100, "mean_ns": 1000.0, "share": share, "first_ns": 500.0, "last_ns": 1500.0,
            "falls": 0, "slope_ns": slope, "slope_variance": variance, **more}  # fmt: skip


def warmup(share, later=0):
    return {"rep": 0, "rank": 0, "warmup_steps": 1 + later, "later_steps": later, "train_steps": 50,
            "warmup_ns": 9000 + later, "later_ns": later, "train_ns": 5000, "train_mean_ns": 100.0, "share": share,
            "compiles": 1, "compile_ns": 8000}  # fmt: skip


def operator(name, kind, phase, share, in_shapes="x", **more):
    return {"rep": 0, "rank": 0, "name": name, "type": kind, "phase": phase, "count": 20, "steps": 20, "share": share,
            "in_shapes": in_shapes, "per_step_ns": 1000 * share, **more}  # fmt: skip


def of_type(kind, share, count=40.0, phase="forward"):
    return {"type": kind, "phase": phase, "count_per_step": count, "share": share}


@pytest.mark.parametrize(("parts", "limit"), [
    ({"forward": 300, "backward": 300, "other": 100}, "compute"),
    ({"communication_exposed": 300, "communication_tail": 400}, "communication"), ({"optimizer": 700}, "optimizer"),
    ({"after": 700}, "after"), ({"gradients": 700}, "gradients"), ({"forward": 300}, "host_gap"),
])  # fmt: skip
def test_the_largest_part_is_the_limit(parts, limit):
    found = judged(phases(**parts))
    assert (found["limit"], found["limit_share"], found["confidence"]) == (limit, 0.7, "high")
    assert found["candidates"] == [limit]
    first = found["evidence"][0]
    assert (first["value"], first["code"], first["facts"]) == (0.7, "step_part", {"limit": limit})
    assert first["measured_on"]["steps"] == 20


def test_a_loader_that_was_not_seen_is_named_with_low_confidence_and_no_gain():
    found = judged(phases(other_loader=700))
    assert (found["limit"], found["limit_share"], found["confidence"]) == ("other_loader", 0.7, "low")
    assert codes(found, "doubts") == ["other_loader"]
    assert [action["share"] for action in found["actions"]] == [None]


@pytest.mark.parametrize(("stalled", "mode", "doubts", "limit"), [
    (0.6, "pynative", (), "host_gap"), (STALLED - 0.01, "pynative", (), "compute"), (0.6, "graph", (), "compute"),
    (0.6, None, (), "compute"), (0.6, "pynative", ({"code": "shares_cpu"},), "compute"),
])  # fmt: skip
def test_operators_that_wait_for_a_core_beside_python_that_launches_them_are_the_hosts(stalled, mode, doubts, limit):
    rows = [row | {"stalled": stalled} for row in phases(forward=300, backward=300)]
    found = judged(rows, mode=mode, beside=doubts)
    assert found["limit"] == limit
    assert sum(found["shares"][part] for part in PARTS) == pytest.approx(1)
    assert found["limit_share"] == pytest.approx(0.6 if limit == "compute" else 0.4 + 0.6 * 0.6)


def test_the_wait_is_that_of_all_steps_and_without_operators_nothing_is_measured():
    rows = phases(forward=600, data_wait=200)
    assert judged(rows)["shares"]["data_wait"] == pytest.approx(0.2)
    found = judged(rows, waits=0.5)
    assert found["shares"]["data_wait"] == 0.5
    assert found["limit_share"] == pytest.approx(0.6 / 0.8 * 0.5)
    assert sum(found["shares"][part] for part in PARTS) == pytest.approx(1)
    assert judged(rows, waits=1.0)["shares"]["data_wait"] == pytest.approx(0.2)
    found = diagnose_network([])
    assert (found["limit"], found["confidence"], codes(found)) == ("not_measured", "low", ["record_more"])
    assert (found["shares"], found["growing_ops"]) == (None, None)
    assert judged(phases(data_wait=STEP))["limit"] == "not_measured"
    found = judged(phases(data_wait=600, forward=300))
    assert (found["limit"], found["candidates"]) == ("compute", ["compute"])


@pytest.mark.parametrize(
    ("first", "second", "clear"),
    [(0.5, 0.5 - LEAD + 0.005, False), (0.5, 0.5 - LEAD - 0.005, True), (ENOUGH - 0.01, 0.15, False)],
)
def test_two_are_named_when_the_first_is_not_clearly_ahead(first, second, clear):
    rest = (1 - first - second) / 2
    found = judged(shared(first, second, rest, rest))
    assert len(found["candidates"]) == (1 if clear else 2)
    assert (found["confidence"] == "low") is not clear


@pytest.mark.parametrize(("second", "code", "said"), [(0.12, "none_large", False), (0.25, "second_close", True)])
def test_a_part_that_is_much_smaller_is_not_called_nearly_as_large(second, code, said):
    found = judged(shared(0.29, second, 0.1, 0.1, 0.1))["doubts"][0]
    assert (found["code"], found["limit"]) == (code, "optimizer")
    (clause,) = clauses([found])
    assert ("nearly as much" in clause) == said


@pytest.mark.parametrize(("more", "confidence"), [
    ({}, "high"), ({"steps": 5}, "medium"), ({"steps": 2}, "low"), ({"inside": 1.3}, "medium"),
    ({"inside": 1.6}, "low"), ({"outside": None}, "medium"), ({"kind": "warmup"}, "low"),
])  # fmt: skip
def test_confidence_falls_with_few_or_untypical_steps(more, confidence):
    assert judged(phases(forward=900, **more))["confidence"] == confidence


def test_the_slow_rank_is_the_one_with_the_longest_own_time():
    spread = imbalance(0, 300, -400) + imbalance(1, 700, 400, communication=300)
    rows = phases(communication_tail=700, host_gap=200) + phases(rank=1, communication_tail=300, host_gap=700)
    found = judged(rows, spread)
    slow = found["slowest_rank"]
    assert (slow["rank"], slow["phase"], slow["share"], slow["ratio"]) == (1, "host_gap", 0.4, pytest.approx(7 / 3))
    assert slow["wait_caused_ns"] == 400
    assert (found["limit"], found["limit_share"]) == ("imbalance", 0.4)
    assert found["weights"]["host_gap"] == pytest.approx(0.3)
    (slow,) = [item for item in found["actions"] if item["code"] == "slow_rank"]
    assert (slow["share"], slow["facts"]["rank"], slow["facts"]["phase"]) == (0.4, 1, "host_gap")
    spread = imbalance(0, 200, -600) + imbalance(1, 800, 600, part="data_wait")
    found = judged(phases(rank=1, data_wait=650, forward=200), spread)
    assert (found["limit"], found["slowest_rank"]["phase"]) == ("imbalance", "data_wait")


NOISE = 100 / ERRORS / 1.2533 * 1.349 / 2 * 4


@pytest.mark.parametrize(("diff", "half_width", "steps", "flagged"), [
    (LEAST_SHARE * STEP + 1, 0.0, 16, True),  # steady and large enough
    (LEAST_SHARE * STEP, 0.0, 16, False), (100.0, 0.0, LEAST_STEPS - 1, False), (100.0, NOISE * 1.01, 16, False),
    (100.0, NOISE * 0.99, 16, True),
    (0.44 / 180 * STEP, 0.0, 16, False),  # MindInsight's example of 0.44 ms in 180 ms
])  # fmt: skip
def test_a_difference_of_ranks_must_exceed_noise_and_two_percent(diff, half_width, steps, flagged):
    slow = imbalance(1, 500.0 + diff, diff, half_width=half_width, steps=steps)
    assert (slowest_rank(imbalance(0, 500.0, -diff, steps=steps) + slow) is not None) is flagged


def test_ranks_are_pooled_when_none_is_slow_in_most_repetitions_or_all_differ_by_design():
    assert judged(phases(forward=900) + phases(rank=1, forward=700))["shares"]["forward"] == 0.8
    # Stages differ by design: without a peer a rank has no difference.
    rows = imbalance(0, 0.2 * STEP, 0.0) + imbalance(1, 0.8 * STEP, 0.0)
    alone = [row | {"peers": row["rank"], "diff_ns": None, "diff_low_ns": None, "diff_high_ns": None} for row in rows]
    assert slowest_rank(alone) is None
    others = imbalance(2, 0.5 * STEP, -0.3 * STEP) + imbalance(3, 0.8 * STEP, 0.3 * STEP)
    assert slowest_rank(alone + others)["rank"] == 3
    slow = imbalance(0, 600.0, 100.0, half_width=100 / 3.05 / 1.2533 * 1.349 / 2 * 4)
    assert slowest_rank(slow + imbalance(1, 500.0, -100.0)) is not None
    assert slowest_rank(slow + [row for rank in range(1, 64) for row in imbalance(rank, 500.0, -1.0)]) is None

    def reps(*slow):
        return [row for rep, late in enumerate(slow) for rank in (0, 1)
                for row in imbalance(rank, 600.0, 100.0 if rank == late else -100.0, rep=rep)]  # fmt: skip

    assert slowest_rank(reps(0, 1)) is None
    assert slowest_rank(reps(1, 1, 0))["slowest_in_reps"] == 2


def link(**more):
    return {"rep": 0, "transport": "HCCS", "src_rank": 0, "dst_rank": 1, "rate": 1e9, "ratio": 0.5, "ratio_high": 0.6,
            "compared": 30, "local_group": "", **more}  # fmt: skip


@pytest.mark.parametrize("more", [
    {"dst_rank": 2, "ratio": 1.0, "ratio_high": 1.02}, {"ratio_high": 0.9}, {"compared": 11},
    {"ratio": None, "ratio_high": None, "compared": 0},
], ids=["as fast", "only in some moves", "too few moves", "nothing to compare with"])  # fmt: skip
def test_a_link_that_is_slower_in_most_moves_is_named_and_what_may_be_chance_is_not(more):
    assert slow_links([link(), link(**more)]) == [link()]


def test_the_slowest_link_comes_first():
    found = slow_links([link(ratio=0.7, ratio_high=0.75), link(src_rank=4, ratio=0.2)])
    assert [item["src_rank"] for item in found] == [4, 0]


@pytest.mark.parametrize(("share", "limit"), [(WARMUP_SHARE, "compile"), (WARMUP_SHARE - 0.01, "compute")])
def test_mostly_warmup_is_the_limit_and_the_step_a_candidate(share, limit):
    found = judged(warmups=[warmup(share)])
    assert (found["limit"], found["candidates"][-1]) == (limit, "compute")


def test_what_repeats_in_a_long_run_grows_or_is_compiled_again_is_told():
    found = diagnose_network([], warmups=[warmup(0.64)])  # 9000 ns is a tenth of 90,000: 810 steps of 100 ns more
    assert (found["actions"][0]["code"], found["actions"][0]["facts"]["steps"]) == ("train_longer", 810)
    found = judged(warmups=[warmup(0.2, later=3)])
    assert [item["facts"]["later_steps"] for item in found["actions"] if item["code"] == "fixed_shapes"] == [3]
    (op,) = diagnose_network([], growth=[growing()])["growing_ops"]
    assert op["growth_ns"] == 1000
    assert 0 < op["slope_low_ns"] < 10 < op["slope_high_ns"]
    found = diagnose_network([], growth=[growing(name) for name in "abc"])
    assert {"growing": 3, "tested": 3} in [item["facts"] for item in found["actions"]]


@pytest.mark.parametrize(("more", "found"), [
    ({"variance": 30.0}, []), ({"slope": -10.0}, []), ({"slope": LEAST_GROWTH * 10 * 0.99, "variance": 0.0}, []),
    ({"falls": 1}, []), ({"share": 0.001}, []), ({"last_ns": 400.0}, []), ({"windows": 1}, None), ({"steps": 5}, None),
])  # fmt: skip
def test_noise_and_small_operators_do_not_grow_and_growth_needs_two_windows_and_some_steps(more, found):
    assert diagnose_network([], growth=[growing(**more)])["growing_ops"] == found


def test_waiting_is_told_from_transfer_and_is_of_the_ranks_whose_communication_it_is_taken_from():
    spread = imbalance(0, 300, -300, half_width=900.0) + imbalance(1, 600, 300, half_width=900.0)
    facts = {"kind": "all_reduce", "events_per_step": 6.0}
    found = judged(phases(communication_tail=400, forward=200, optimizer=200), spread, comm=[facts])
    assert (found["limit"], found["waiting_share"]) == ("communication", pytest.approx(0.15))
    by_code = {item["code"]: item for item in found["actions"]}
    assert by_code["fuse_collectives"]["facts"] == facts
    assert by_code["communicate_less_often"]["share"] == 0.4
    first, *_ = communication(0.4, [], 0.0, 0.6)  # equal ranks bring no more than the communication
    assert (first.code, first.share, first.facts) == ("equal_ranks", 0.4, {"waiting_share": 0.4})

    def of_width(half_width):
        spread = imbalance(0, 300, -200, half_width=half_width)
        spread += imbalance(1, 500, 200, half_width=half_width, communication=None if half_width else 500)
        return judged(rows, spread)

    rows = phases(communication_tail=700, host_gap=200) + phases(rank=1, communication_tail=500, host_gap=400)
    slow, alike = of_width(0.0), of_width(900.0)
    assert (slow["limit"], slow["limit_share"], slow["slowest_rank"]["rank"]) == ("communication", 0.5, 1)
    assert (slow["waiting_share"], slow["limit_waiting_share"]) == (pytest.approx(0.1), 0)
    assert "equal_ranks" not in codes(slow)
    assert (alike["slowest_rank"], alike["limit_waiting_share"]) == (None, alike["waiting_share"])


def test_the_largest_operator_is_named_with_its_shapes_and_all_of_a_step_are_counted():
    top = [operator("net/MatMul-op0", "MatMul", "forward", 0.5, "[64, 8]; NoShape")]
    first = judged(top=top)["actions"][0]
    assert (first["code"], first["share"]) == ("cheaper_operator", 0.5)
    assert (first["facts"]["op"]["name"], first["facts"]["op"]["in_shapes"]) == ("net/MatMul-op0", "[64, 8]")
    row = {"rep": 0, "phase": "forward", "operators": 1, "count": 40, "share": 0.1}
    types = [
        row | {"rank": rank, "type": kind, "steps": steps, "all_count": 300 * steps}
        for rank, steps in ((0, 10), (1, 20))
        for kind in ("Mul", "Add")
    ]
    assert (judged(types=types)["ops_per_step"], judged()["ops_per_step"]) == (300, None)
    assert judged(comm=[{"kind": "send", "events_per_step": 1.0}])["confidence"] == "low"


COMPILED = [operator("Gradients/a/MatMul-op1", "MatMul", "backward", 0.1, None)]


@pytest.mark.parametrize(("parts", "mode", "top", "place"), [
    # where Python launches operators and it is not used
    ({}, "pynative", (), "there"), ({}, None, (), "there"), ({}, "graph", (), None),
    ({}, "pynative", COMPILED, None),  # whatever the mode
    # operators that Python launches may also be compiled
    ({"forward": 900}, "pynative", (), "last"), ({"forward": 900}, None, (), None),
    ({"forward": 900}, "graph", (), None),
])  # fmt: skip
def test_jit_is_suggested_where_it_is_not_used(parts, mode, top, place):
    found = codes(judged(phases(**parts), mode=mode, top=top))
    assert ("compile_step" in found) is (place is not None)
    assert place != "last" or found[-1] == "compile_step"


@pytest.mark.parametrize(("kind", "code"), [
    ("Memcpy", "fewer_copies"), ("aten::copy_", "fewer_copies"), ("aten::_to_copy", "fewer_copies"),
    ("TensorMove", "fewer_copies"), ("MemcpyAsync", "fewer_copies"), ("aten::copysign", "fewer_of_type"),
    ("MatMul", "fewer_of_type"), (None, "fewer_of_type"),
])  # fmt: skip
def test_copies_are_advised_on_as_copies(kind, code):
    assert compute(0.6, [of_type(kind, 0.4, phase="other")], [])[0].code == code


def of_device(op_ns, **more):
    return judged([row | {"device_ops": 40, "device_op_ns": 40 * op_ns} for row in phases(forward=200)], **more)


@pytest.mark.parametrize(("op_ns", "first"), [(3_000, "fewer_launches"), (400_000, "python_out_of_step")])
def test_an_idle_device_waits_for_launches_of_short_operators_or_for_something_else(op_ns, first):
    found, without = of_device(op_ns), judged(phases(forward=200))
    assert (found["limit"], found["device"]) == ("host_gap", {"per_step": 2.0, "op_ns": op_ns})
    assert codes(found)[0] == first
    assert {item["facts"].get("limit") for item in found["evidence"]} == {"device_idle", "compute"}
    assert (without["device"], codes(without)[0]) == (None, "compile_step")


def test_steps_that_share_their_cores_and_damaged_traces_are_doubted():
    alone, beside = judged(), [{"code": "shares_cpu", "share": 0.5}, {"code": "close"}]
    crowded = judged(beside=beside)
    assert (alone["confidence"], crowded["confidence"]) == ("high", "medium")
    assert crowded["doubts"] == [*alone["doubts"], beside[0]]
    assert crowded["growing_ops"] is None
    found = of_device(10, damaged=True)
    assert (found["confidence"], found["doubts"][0]) == ("low", {"code": "lost_events"})
    assert "lost_events" not in codes(judged(phases(forward=200), damaged=True), "doubts")


def test_operators_bring_no_more_than_the_computing_does_and_types_are_made_cheaper_with_their_gradients():
    op = operator("net/MatMul-op0", "MatMul", "forward", 0.9, "[8]", count_per_step=40.0)
    first, *_ = compute(0.4, [of_type("MatMul", 0.9)], [op])
    assert (first.share, first.facts["share"], first.facts["largest"]["share"]) == (0.4, 0.4, 0.4)
    (alone, _) = compute(0.4, [], [op])
    assert (alone.share, alone.facts["op"]["share"]) == (0.4, 0.4)
    place = {"site": "train.py(54): train_step", "site_share": 0.9}
    ops = [
        operator("Gradients/Default/Grad_GeLU/GeLUGrad-op0", "GeLUGrad", "backward", 0.1, **place),
        operator("Default/GeLU-op0", "GeLU", "forward", 0.1, **place),
    ]
    kinds = [of_type("GeLUGrad", 0.24, 8, "backward"), of_type("GeLU", 0.23, 8)]
    first, second = compute(0.9, kinds, ops)  # once for both types
    assert (first.code, first.share, first.facts["type"]) == ("fewer_of_type", pytest.approx(0.47), "GeLU")
    assert second.code == "fewer_bits"
    assert compute(1.0, kinds, ops)[0].share == pytest.approx(0.47)
    elsewhere = [op | {"site_share": 0.8} for op in ops]  # one line of several: it is that of the operators
    assert compute(0.9, kinds, elsewhere)[0].share == 0.8


def test_where_python_costs_nearly_as_much_as_the_operators_what_brings_more_comes_first():
    types = [{"rep": 0, "rank": 0, "type": "MatMul", "phase": "forward", "operators": 1, "count": 40, "steps": 20,
              "share": 0.24, "all_count": 800}]  # fmt: skip
    rows = phases(forward=500, optimizer=50)
    eager, graph = (judged(rows, types=types, mode=mode) for mode in ("pynative", "graph"))
    assert eager["candidates"] == graph["candidates"] == ["compute", "host_gap"]
    assert (eager["actions"][0]["code"], eager["actions"][0]["share"]) == ("compile_step", pytest.approx(0.45))
    assert eager["actions"][0] | {"code": "python_out_of_step", "facts": {}} == graph["actions"][0]
    clear = judged(phases(forward=600, optimizer=50), types=types, mode="pynative")
    assert codes(clear)[0] == "fewer_of_type"


@pytest.mark.parametrize(("forward", "optimizer", "cores", "asleep"), [
    (200, 0, 0.4, 0.4), (200, 0, 0.41, 0.0),  # half of the host's part
    (320, 330, 0.349 - ASLEEP, ASLEEP + 0.001), (320, 330, 0.351 - ASLEEP, 0.0), (200, 0, None, 0.0), (900, 0, 0, 0.0),
])  # fmt: skip
def test_threads_of_the_loop_that_use_no_cpu_while_no_operator_runs_sleep(forward, optimizer, cores, asleep):
    found = judged(phases(forward=forward, optimizer=optimizer), mode="pynative")
    before = found["confidence"]
    take_sleep(found, cores)
    assert found["asleep_share"] == pytest.approx(asleep)
    woken = {"code": "wake_loop", "share": found["asleep_share"], "facts": {}}
    assert (found["actions"][0] == woken) == (codes(found, "doubts")[-1:] == ["asleep"]) == (asleep > 0)
    assert found["confidence"] == graded([{"code": "asleep"}] if asleep else [], before)
