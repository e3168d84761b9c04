"""What limits a training that is not input-bound, from rows of the queries."""

import pytest
from typed_rows import of_dicts

from pipeprof.report.answer.doubts import clauses
from pipeprof.verdict import network, network_ranks
from pipeprof.verdict.network import ENOUGH, LEAD, PARTS, STALLED, WARMUP_SHARE
from pipeprof.verdict.network_advice import communication, compute
from pipeprof.verdict.network_ops import LEAST_GROWTH
from pipeprof.verdict.network_ranks import ERRORS, LEAST_SHARE, LEAST_STEPS

diagnose_network, slowest_rank = of_dicts(network.diagnose_network), of_dicts(network_ranks.slowest_rank)

STEP = 1000


def phases(steps=20, rank=0, kind="train", inside=1.0, outside=1.0, overlapped=0, **parts):
    """Rows whose parts are given in thousandths of the step; the host gap is the rest."""
    parts = {**dict.fromkeys(PARTS, 0), **parts}
    parts["host_gap"] = parts["host_gap"] or STEP - sum(parts.values())
    common = {"rep": 0, "rank": rank, "kind": kind, "steps": steps, "step_ns": STEP * steps,
              "inside_work_ns": inside, "outside_work_ns": outside}  # fmt: skip
    rows = [{**common, "part": part, "total_ns": time * steps} for part, time in parts.items()]
    return [*rows, {**common, "part": "communication_overlapped", "total_ns": overlapped * steps}]


def imbalance(rank, own, diff, part="host_gap", half_width=0.0, steps=16, ranks=2, communication=None, rep=0):
    """Rows of one rank that differs from the others in one part; `half_width` is that of the quartiles."""
    base = {"rep": rep, "rank": rank, "peers": 0, "ranks": ranks, "steps": steps, "step_ns": float(STEP)}
    waits = STEP - own if communication is None else communication
    spread = {"diff_low_ns": diff - half_width, "diff_high_ns": diff + half_width}
    rows = [{**base, **spread, "part": "own", "median_ns": own, "mean_ns": own, "diff_ns": diff}]
    for name in ("data_wait", "forward", "backward", "optimizer", "host_gap", "other", "communication", "waiting"):
        value = waits if name == "communication" else max(-diff, 0.0)
        rows.append({**base, "part": name, "median_ns": value, "mean_ns": value, "diff_ns": diff if name == part else 0.0,
                     "diff_low_ns": 0.0, "diff_high_ns": 0.0})  # fmt: skip
    return rows


def growing(name="Add", slope=10.0, variance=1.0, share=0.1, **more):
    return {"rep": 0, "rank": 0, "name": name, "type": "Add", "phase": "forward", "shapes": 1, "steps": 20, "windows": 4,
            "span_steps": 100, "mean_ns": 1000.0, "share": share, "first_ns": 500.0, "last_ns": 1500.0, "falls": 0,
            "slope_ns": slope, "slope_variance": variance, **more}  # fmt: skip


def warmup(share, later=0, train_steps=50, mean=100.0):
    return {"rep": 0, "rank": 0, "warmup_steps": 1 + later, "later_steps": later, "train_steps": train_steps,
            "warmup_ns": 9000 + later, "later_ns": later, "train_ns": 5000, "train_mean_ns": mean, "share": share,
            "compiles": 1, "compile_ns": 8000}  # fmt: skip


def test_the_wait_is_that_of_all_steps_and_not_of_the_few_whose_operators_were_recorded():
    rows = phases(forward=600, data_wait=200)
    assert diagnose_network(rows)["shares"]["data_wait"] == pytest.approx(0.2)
    found = diagnose_network(rows, waits=0.5)
    assert found["shares"]["data_wait"] == 0.5
    assert found["limit_share"] == pytest.approx(0.6 / 0.8 * 0.5)
    assert sum(found["shares"][part] for part in PARTS) == pytest.approx(1)
    assert diagnose_network(rows, waits=1.0)["shares"]["data_wait"] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("parts", "limit"),
    [
        ({"forward": 300, "backward": 300, "other": 100}, "compute"),
        ({"communication_exposed": 300, "communication_tail": 400}, "communication"),
        ({"optimizer": 700}, "optimizer"),
        ({"after": 700}, "after"),
        ({"gradients": 700}, "gradients"),
        ({"forward": 300}, "host_gap"),
    ],
)
def test_the_largest_part_is_the_limit(parts, limit):
    found = diagnose_network(phases(**parts))
    assert (found["limit"], found["limit_share"], found["confidence"]) == (limit, 0.7, "high")
    assert found["candidates"] == [limit]
    assert found["evidence"][0]["value"] == 0.7
    assert (found["evidence"][0]["code"], found["evidence"][0]["facts"]) == ("step_part", {"limit": limit})
    assert found["evidence"][0]["measured_on"]["steps"] == 20


def test_a_loader_that_was_not_seen_is_named_with_low_confidence_and_no_gain():
    found = diagnose_network(phases(other_loader=700))
    assert (found["limit"], found["limit_share"], found["confidence"]) == ("other_loader", 0.7, "low")
    assert [doubt["code"] for doubt in found["doubts"]] == ["other_loader"]
    assert [action["share"] for action in found["actions"]] == [None]


@pytest.mark.parametrize(
    ("stalled", "mode", "doubts", "limit"),
    [
        (0.6, "pynative", (), "host_gap"),
        (STALLED - 0.01, "pynative", (), "compute"),
        (0.6, "graph", (), "compute"),
        (0.6, None, (), "compute"),
        (0.6, "pynative", ({"code": "shares_cpu"},), "compute"),
    ],
)
def test_operators_that_wait_for_a_core_beside_the_python_that_launches_them_are_the_hosts(
    stalled, mode, doubts, limit
):
    rows = [row | {"stalled": stalled} for row in phases(forward=300, backward=300)]
    found = diagnose_network(rows, mode=mode, beside=doubts)
    assert found["limit"] == limit
    assert sum(found["shares"][part] for part in PARTS) == pytest.approx(1)
    assert found["limit_share"] == pytest.approx(0.6 if limit == "compute" else 0.4 + 0.6 * 0.6)


def test_without_operators_nothing_is_measured():
    found = diagnose_network([])
    assert (found["limit"], found["confidence"], found["shares"], found["growing_ops"]) == (
        "not_measured",
        "low",
        None,
        None,
    )
    assert [item["code"] for item in found["actions"]] == ["record_more"]


def test_steps_of_nothing_but_waiting_for_data_are_not_judged():
    assert diagnose_network(phases(data_wait=STEP))["limit"] == "not_measured"


def test_the_wait_for_data_is_left_out_of_the_comparison():
    found = diagnose_network(phases(data_wait=600, forward=300))
    assert (found["limit"], found["candidates"]) == ("compute", ["compute"])


@pytest.mark.parametrize(
    ("first", "second", "clear"),
    [
        (0.5, 0.5 - LEAD + 0.005, False),
        (0.5, 0.5 - LEAD - 0.005, True),
        (ENOUGH - 0.01, 0.15, False),
    ],
)
def test_two_are_named_when_the_first_is_not_clearly_ahead(first, second, clear):
    rest = round((1 - first - second) * STEP)
    parts = {"forward": round(first * STEP), "optimizer": round(second * STEP), "host_gap": rest // 2,
             "communication_tail": rest - rest // 2}  # fmt: skip
    found = diagnose_network(phases(**parts))
    assert len(found["candidates"]) == (1 if clear else 2)
    assert (found["confidence"] == "low") is not clear


@pytest.mark.parametrize(("first", "second", "code"), [(0.29, 0.12, "none_large"), (0.29, 0.25, "second_close")])
def test_a_part_that_is_much_smaller_is_not_called_nearly_as_large(first, second, code):
    parts = {"forward": round(first * STEP), "optimizer": round(second * STEP), "host_gap": round(0.1 * STEP),
             "communication_tail": round(0.1 * STEP), "after": round(0.1 * STEP)}  # fmt: skip
    found = diagnose_network(phases(**parts))["doubts"][0]
    assert (found["code"], found["limit"]) == (code, "optimizer")
    (said,) = clauses([found])
    assert ("nearly as much" in said) == (code == "second_close")


@pytest.mark.parametrize(
    ("more", "confidence"),
    [
        ({}, "high"),
        ({"steps": 5}, "medium"),
        ({"steps": 2}, "low"),
        ({"inside": 1.3}, "medium"),
        ({"inside": 1.6}, "low"),
        ({"outside": None}, "medium"),
        ({"kind": "warmup"}, "low"),
    ],
)
def test_confidence_falls_with_few_or_untypical_steps(more, confidence):
    assert diagnose_network(phases(forward=900, **more))["confidence"] == confidence


def test_ranks_are_pooled_when_none_is_slow():
    found = diagnose_network(phases(forward=900) + phases(rank=1, forward=700))
    assert found["shares"]["forward"] == 0.8


def test_the_slow_rank_is_the_one_with_the_longest_own_time():
    spread = imbalance(0, 300, -400) + imbalance(1, 700, 400, communication=300)
    rows = phases(communication_tail=700, host_gap=200) + phases(rank=1, communication_tail=300, host_gap=700)
    found = diagnose_network(rows, spread)
    slow = found["slowest_rank"]
    assert (slow["rank"], slow["phase"], slow["share"], slow["ratio"]) == (1, "host_gap", 0.4, pytest.approx(7 / 3))
    assert slow["wait_caused_ns"] == 400
    assert (found["limit"], found["limit_share"]) == ("imbalance", 0.4)
    assert found["weights"]["host_gap"] == pytest.approx(0.3)
    (slow,) = [item for item in found["actions"] if item["code"] == "slow_rank"]
    assert (slow["share"], slow["facts"]["rank"], slow["facts"]["phase"]) == (0.4, 1, "host_gap")


@pytest.mark.parametrize(
    ("diff", "half_width", "steps", "flagged"),
    [
        pytest.param(LEAST_SHARE * STEP + 1, 0.0, 16, True, id="steady and large enough"),
        pytest.param(LEAST_SHARE * STEP, 0.0, 16, False, id="steady and too small"),
        pytest.param(100.0, 0.0, LEAST_STEPS - 1, False, id="too few steps"),
        pytest.param(100.0, 100 / ERRORS / 1.2533 * 1.349 / 2 * 4 * 1.01, 16, False, id="within the noise"),
        pytest.param(100.0, 100 / ERRORS / 1.2533 * 1.349 / 2 * 4 * 0.99, 16, True, id="beyond the noise"),
    ],
)
def test_a_difference_of_ranks_must_exceed_noise_and_two_percent(diff, half_width, steps, flagged):
    rows = imbalance(0, 500.0, -diff, steps=steps) + imbalance(
        1, 500.0 + diff, diff, half_width=half_width, steps=steps
    )
    assert (slowest_rank(rows) is not None) is flagged


def test_mindinsights_example_of_0_44_ms_in_180_ms_is_no_imbalance():
    rows = imbalance(0, 500.0, -0.44 / 180 * STEP) + imbalance(1, 500.0, 0.44 / 180 * STEP)
    assert slowest_rank(rows) is None


def test_the_only_rank_of_a_pipeline_stage_is_never_the_slow_one():
    """Stages differ by design: without a peer a rank has no difference."""
    rows = imbalance(0, 0.2 * STEP, 0.0) + imbalance(1, 0.8 * STEP, 0.0)
    alone = [row | {"peers": row["rank"], "diff_ns": None, "diff_low_ns": None, "diff_high_ns": None} for row in rows]
    assert slowest_rank(alone) is None
    assert (
        slowest_rank(alone + imbalance(2, 0.5 * STEP, -0.3 * STEP) + imbalance(3, 0.8 * STEP, 0.3 * STEP))["rank"] == 3
    )


def test_more_ranks_need_a_larger_difference():
    width = 100 / 3.05 / 1.2533 * 1.349 / 2 * 4
    slow = imbalance(0, 600.0, 100.0, half_width=width)
    assert slowest_rank(slow + imbalance(1, 500.0, -100.0)) is not None
    assert slowest_rank(slow + [row for rank in range(1, 64) for row in imbalance(rank, 500.0, -1.0)]) is None


def test_a_rank_must_be_slow_in_most_repetitions():
    def rep(number, slow):
        return [row for rank in (0, 1) for row in imbalance(rank, 600.0, 100.0 if rank == slow else -100.0, rep=number)]

    assert slowest_rank(rep(0, 0) + rep(1, 1)) is None
    assert slowest_rank(rep(0, 1) + rep(1, 1) + rep(2, 0))["slowest_in_reps"] == 2


def test_a_slow_rank_that_waits_for_its_data_is_an_imbalance():
    spread = imbalance(0, 200, -600) + imbalance(1, 800, 600, part="data_wait")
    found = diagnose_network(phases(rank=1, data_wait=650, forward=200), spread)
    assert (found["limit"], found["slowest_rank"]["phase"]) == ("imbalance", "data_wait")


@pytest.mark.parametrize(("share", "limit"), [(WARMUP_SHARE, "compile"), (WARMUP_SHARE - 0.01, "compute")])
def test_mostly_warmup_is_the_limit_and_the_step_a_candidate(share, limit):
    found = diagnose_network(phases(forward=900), warmups=[warmup(share)])
    assert found["limit"] == limit
    assert found["candidates"][-1] == "compute"


def test_how_long_a_run_should_be_follows_from_its_times():
    found = diagnose_network([], warmups=[warmup(0.64)])  # 9000 ns is a tenth of 90,000: 810 steps of 100 ns more
    assert (found["actions"][0]["code"], found["actions"][0]["facts"]["steps"]) == ("train_longer", 810)


def test_compiling_again_is_told():
    found = diagnose_network(phases(forward=900), warmups=[warmup(0.2, later=3)])
    assert [item["facts"]["later_steps"] for item in found["actions"] if item["code"] == "fixed_shapes"] == [3]


def test_an_operator_that_grows_is_found_with_its_interval():
    (op,) = diagnose_network([], growth=[growing()])["growing_ops"]
    assert op["growth_ns"] == 1000
    assert 0 < op["slope_low_ns"] < 10 < op["slope_high_ns"]


@pytest.mark.parametrize(
    "more",
    [
        {"variance": 30.0},
        {"slope": -10.0},
        {"slope": LEAST_GROWTH * 10 * 0.99, "variance": 0.0},
        {"falls": 1},
        {"share": 0.001},
        {"last_ns": 400.0},
    ],
)
def test_noise_and_small_operators_do_not_grow(more):
    assert diagnose_network([], growth=[growing(**more)])["growing_ops"] == []


@pytest.mark.parametrize("more", [{"windows": 1}, {"steps": 5}])
def test_growth_needs_two_windows_and_some_steps(more):
    assert diagnose_network([], growth=[growing(**more)])["growing_ops"] is None


def test_when_most_grow_the_machine_is_suspected():
    found = diagnose_network([], growth=[growing(name) for name in "abc"])
    assert {"growing": 3, "tested": 3} in [item["facts"] for item in found["actions"]]


def test_the_largest_operator_of_the_limit_is_named_with_its_shapes():
    top = [{"rep": 0, "rank": 0, "name": "net/MatMul-op0", "type": "MatMul", "phase": "forward", "count": 20, "steps": 20,
            "in_shapes": "[64, 8]; NoShape", "share": 0.5, "per_step_ns": 500.0}]  # fmt: skip
    found = diagnose_network(phases(forward=900), top=top)
    first = found["actions"][0]
    assert (first["code"], first["share"]) == ("cheaper_operator", 0.5)
    assert (first["facts"]["op"]["name"], first["facts"]["op"]["in_shapes"]) == ("net/MatMul-op0", "[64, 8]")


def test_all_operators_of_a_step_are_counted_whatever_their_types():
    row = {"rep": 0, "phase": "forward", "operators": 1, "count": 40, "share": 0.1}
    types = [
        row | {"rank": rank, "type": kind, "steps": steps, "all_count": 300 * steps}
        for rank, steps in ((0, 10), (1, 20))
        for kind in ("Mul", "Add")
    ]
    assert diagnose_network(phases(forward=900), types=types)["ops_per_step"] == 300
    assert diagnose_network(phases(forward=900))["ops_per_step"] is None


def test_communication_advice_tells_waiting_from_transfer_and_counts_events():
    spread = imbalance(0, 300, -300, half_width=900.0) + imbalance(1, 600, 300, half_width=900.0)
    comm = [{"kind": "all_reduce", "events_per_step": 6.0}]
    found = diagnose_network(phases(communication_tail=400, forward=200, optimizer=200), spread, comm=comm)
    assert found["limit"] == "communication"
    assert found["waiting_share"] == pytest.approx(0.15)
    by_code = {item["code"]: item for item in found["actions"]}
    assert by_code["fuse_collectives"]["facts"] == {"kind": "all_reduce", "events_per_step": 6.0}
    assert by_code["communicate_less_often"]["share"] == 0.4


def test_waiting_is_of_the_ranks_whose_communication_it_is_taken_from():
    spread = imbalance(0, 300, -200) + imbalance(1, 500, 200, communication=500)
    rows = phases(communication_tail=700, host_gap=200) + phases(rank=1, communication_tail=500, host_gap=400)
    found = diagnose_network(rows, spread)
    assert (found["limit"], found["limit_share"], found["slowest_rank"]["rank"]) == ("communication", 0.5, 1)
    assert (found["waiting_share"], found["limit_waiting_share"]) == (pytest.approx(0.1), 0)
    assert "equal_ranks" not in [item["code"] for item in found["actions"]]
    alike = diagnose_network(rows, imbalance(0, 300, -200, half_width=900.0) + imbalance(1, 500, 200, half_width=900.0))
    assert (alike["slowest_rank"], alike["limit_waiting_share"]) == (None, alike["waiting_share"])


def test_equal_ranks_bring_no_more_than_the_communication():
    first, *_ = communication(0.4, [], 0.0, 0.6)
    assert (first.code, first.share, first.facts) == ("equal_ranks", 0.4, {"waiting_share": 0.4})


def test_ranks_that_send_to_each_other_lower_the_confidence():
    comm = [{"kind": "send", "events_per_step": 1.0}]
    assert diagnose_network(phases(forward=900), comm=comm)["confidence"] == "low"


def test_a_compiled_step_needs_no_jit_whatever_the_mode():
    top = [{"rep": 0, "rank": 0, "name": "Gradients/a/MatMul-op1", "type": "MatMul", "phase": "backward", "count": 20,
            "steps": 20, "in_shapes": None, "share": 0.1, "per_step_ns": 100.0}]  # fmt: skip
    found = diagnose_network(phases(), top=top, mode="pynative")
    assert "compile_step" not in [item["code"] for item in found["actions"]]


@pytest.mark.parametrize(("mode", "jit"), [("pynative", True), (None, True), ("graph", False)])
def test_jit_is_suggested_where_it_is_not_used(mode, jit):
    codes = [item["code"] for item in diagnose_network(phases(), mode=mode)["actions"]]
    assert ("compile_step" in codes) is jit


@pytest.mark.parametrize(("mode", "last"), [("pynative", True), (None, False), ("graph", False)])
def test_operators_that_python_launches_may_also_be_compiled(mode, last):
    codes = [item["code"] for item in diagnose_network(phases(forward=900), mode=mode)["actions"]]
    assert (codes[-1] == "compile_step", "compile_step" in codes) == (last, last)


def test_times_of_a_step_that_shares_its_cores_are_doubted_and_no_growth_is_said():
    alone = diagnose_network(phases(forward=900))
    beside = [{"code": "shares_cpu", "share": 0.5}, {"code": "close"}]
    crowded = diagnose_network(phases(forward=900), beside=beside)
    grades = ("high", "medium", "low", "low")
    assert crowded["confidence"] == grades[grades.index(alone["confidence"]) + 1]
    assert crowded["doubts"] == [*alone["doubts"], beside[0]]
    assert crowded["growing_ops"] is None


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("Memcpy", "fewer_copies"), ("aten::copy_", "fewer_copies"), ("aten::_to_copy", "fewer_copies"),
        ("TensorMove", "fewer_copies"), ("MemcpyAsync", "fewer_copies"), ("aten::copysign", "fewer_of_type"),
        ("MatMul", "fewer_of_type"), (None, "fewer_of_type"),
    ],
)  # fmt: skip
def test_copies_are_advised_on_as_copies(kind, code):
    row = {"type": kind, "phase": "other", "count_per_step": 40.0, "share": 0.4}
    assert compute(0.6, [row], [])[0].code == code


def test_operators_side_by_side_bring_no_more_than_the_computing_does():
    kind = {"type": "MatMul", "phase": "forward", "count_per_step": 40.0, "share": 0.9}
    first, *_ = compute(0.4, [kind], [{**kind, "name": "net/MatMul-op0", "in_shapes": "[8]"}])
    assert (first.share, first.facts["share"], first.facts["largest"]["share"]) == (0.4, 0.4, 0.4)
    (alone, _) = compute(0.4, [], [{**kind, "name": "net/MatMul-op0", "in_shapes": "[8]"}])
    assert (alone.share, alone.facts["op"]["share"]) == (0.4, 0.4)


@pytest.mark.parametrize(("op_ns", "first"), [(3_000, "fewer_launches"), (400_000, "python_out_of_step")])
def test_an_idle_device_waits_for_launches_of_short_operators_or_for_something_else(op_ns, first):
    rows = [row | {"device_ops": 40, "device_op_ns": 40 * op_ns} for row in phases(forward=200)]
    found = diagnose_network(rows)
    assert (found["limit"], found["device"]) == ("host_gap", {"per_step": 2.0, "op_ns": op_ns})
    assert found["actions"][0]["code"] == first
    assert {item["facts"].get("limit") for item in found["evidence"]} == {"device_idle", "compute"}


def test_without_a_device_nothing_is_said_of_one():
    found = diagnose_network(phases(forward=200))
    assert found["device"] is None
    assert found["actions"][0]["code"] == "compile_step"


def test_what_a_damaged_trace_lost_may_be_work_of_a_device_that_seems_idle():
    rows = [row | {"device_ops": 40, "device_op_ns": 400} for row in phases(forward=200)]
    found = diagnose_network(rows, damaged=True)
    assert (found["confidence"], found["doubts"][0]) == ("low", {"code": "lost_events"})
    assert "lost_events" not in {
        doubt["code"] for doubt in diagnose_network(phases(forward=200), damaged=True)["doubts"]
    }


def test_of_a_compiled_function_whose_lines_are_not_known_a_type_is_made_cheaper_with_its_gradients():
    def operator(name, kind, phase, share, site="train.py(54): train_step"):
        return {"name": name, "type": kind, "phase": phase, "in_shapes": "x", "share": share, "site": site,
                "site_share": 0.9}  # fmt: skip

    ops = [
        operator("Gradients/Default/Grad_GeLU/GeLUGrad-op0", "GeLUGrad", "backward", 0.1),
        operator("Default/GeLU-op0", "GeLU", "forward", 0.1),
    ]
    kinds = [
        {"type": "GeLUGrad", "phase": "backward", "count_per_step": 8, "share": 0.24},
        {"type": "GeLU", "phase": "forward", "count_per_step": 8, "share": 0.23},
    ]
    first, second = compute(0.9, kinds, ops)  # once for both types
    assert (first.code, first.share, first.facts["type"]) == ("fewer_of_type", pytest.approx(0.47), "GeLU")
    assert second.code == "fewer_bits"
    assert compute(1.0, kinds, ops)[0].share == pytest.approx(0.47)
    elsewhere = [op | {"site_share": 0.8} for op in ops]  # one line of several: it is that of the operators
    assert compute(0.9, kinds, elsewhere)[0].share == 0.8


def test_where_python_costs_nearly_as_much_as_the_operators_what_brings_more_comes_first():
    types = [
        {"rep": 0, "rank": 0, "type": "MatMul", "phase": "forward", "operators": 1, "count": 40, "steps": 20,
         "share": 0.24, "all_count": 800}
    ]  # fmt: skip
    eager, graph = (
        diagnose_network(phases(forward=500, optimizer=50), types=types, mode=mode) for mode in ("pynative", "graph")
    )
    assert eager["candidates"] == graph["candidates"] == ["compute", "host_gap"]
    assert (eager["actions"][0]["code"], eager["actions"][0]["share"]) == ("compile_step", pytest.approx(0.45))
    assert eager["actions"][0] | {"code": "python_out_of_step", "facts": {}} == graph["actions"][0]
    clear = diagnose_network(phases(forward=600, optimizer=50), types=types, mode="pynative")
    assert clear["actions"][0]["code"] == "fewer_of_type"
