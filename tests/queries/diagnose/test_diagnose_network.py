"""What limits a network: parts, operators and ranks."""

from functools import partial

import pytest
from query_cases import answers, row, rows
from table_rows import MS, op, step, steps

inside = partial(step, in_window=True)
PHASED = rows("op_id phase", (0, "forward"), (1, "backward"), (2, "communication"))
STEPS = steps("warmup", "train", "train", "train")
INFO = [{"op_id": 0, "name": "a/MatMul", "type": "MatMul", "phase": "forward", "in_shapes": "[2, 2]"}]
TYPES = [
    {"op_id": number, "name": f"a/{kind}-op{number}", "type": kind, "phase": "forward"}
    for number, kind in enumerate(("Mul", "Mul", "MatMul"))
]
RANGE = {"op_id": 3, "name": "## backward ##", "type": "## backward ##", "category": "user_annotation"}
RANGED = {"step": STEPS, "op_info": [*TYPES, RANGE], "op": [op(0, 50, 1), op(3, 90, 1)]}
# The host was held up in the copy, which the device did in no time; nobody is known to have launched the last one.
ON_DEVICE = {
    "step": STEPS, "op_info": [*TYPES, {"op_id": 3, "name": "kernel", "type": "kernel", "phase": "forward"}],
    "op": [op(0, 90, 1, side="host", device_self_ns=2), op(2, 5, 1, side="host", device_self_ns=40),
           op(1, 30, 1, side="host"), op(3, 40, 1, side="device", parent_id=7), op(3, 10, 1, side="device")],
}  # fmt: skip


def run(times, others=(), *infos):
    """One operator with these times in these steps; steps not named have no operators."""
    made = steps(*["train"] * (max([*times, *(row["step"] for row in others)]) + 1), length=1000)
    ops = [*(op(0, time, n, 1000 * n) for n, time in times.items()), *others]
    info = [{"op_id": 0, "name": "Add", "type": "Add", "phase": "forward", "in_shapes": "[2]"}, *infos]
    return {"step": made, "op": ops, "op_info": info}


def forwards(times, length=100):
    """Per rank and step: time in the forward pass, then an all-reduce until the end of the step."""
    found = {"step": [], "op": [], "op_info": []}
    for rank, forwards in times.items():
        here = {"rank": rank}
        found["op_info"] += [{**here, "op_id": 0, "phase": "forward"}, {**here, "op_id": 1, "phase": "communication"}]
        for number, forward in enumerate(forwards):
            begin = number * length
            found["step"].append(step(number, begin, begin + length, rank=rank))
            if forward is None:
                continue
            found["op"].append(op(0, forward, number, begin, rank=rank))
            found["op"].append(op(1, length - forward, number, begin + forward, rank=rank))
    return found


def stages_of_two(times):
    """As `tables`, of ranks whose steps send first (0 and 1) or receive first (2 and 3)."""
    found = forwards(times)
    found["collective"] = [
        {"rank": rank, "step": number, "kind": kind, "name": kind, "start_ns": 100 * number + place, "dur_ns": 0}
        for rank in times
        for number in range(len(times[rank]))
        for place, kind in enumerate(("send", "receive") if rank < 2 else ("receive", "send"))
    ]
    return found


compiled = row("start_ns dur_ns", category="compile")

test_rows_of_diagnose_network_phase = answers("diagnose/network_phase", {
    "shares of the steps with operators add up": ("part adds_up steps total_ns step_ns median_ns share",
        {"step": [inside(0, 0, 100, bp_ns=60), inside(1, 100, 200, bp_ns=160), step(2, 200, 290)],
         "op": [op(0, 20, 0, 10), op(1, 30, 0, 30), op(2, 20, 0, 50), op(0, 40, 1, 110)], "op_info": PHASED,
         "fetch": [{"step": 0, "start_ns": 0, "wait_ns": 10}]},
        [("after", True, 2, 0, 200, 0.0, 0.0), ("backward", True, 2, 30, 200, 15.0, 0.15),
         ("communication_exposed", True, 2, 0, 200, 0.0, 0.0),
         ("communication_overlapped", False, 2, 10, 200, 5.0, 0.05),
         ("communication_tail", True, 2, 10, 200, 5.0, 0.05), ("data_wait", True, 2, 10, 200, 5.0, 0.05),
         ("forward", True, 2, 60, 200, 30.0, 0.3), ("gradients", True, 2, 0, 200, 0.0, 0.0),
         ("host_gap", True, 2, 90, 200, 45.0, 0.45), ("optimizer", True, 2, 0, 200, 0.0, 0.0),
         ("other", True, 2, 0, 200, 0.0, 0.0), ("other_loader", True, 2, 0, 200, 0.0, 0.0)]),
    "steps inside and outside are compared without their wait for data": ("inside_work_ns outside_work_ns",
        {"step": [inside(0, 0, 100, fetch_wait_ns=40), step(1, 100, 150, fetch_wait_ns=10), step(2, 150, 170)],
         "op": [op(0, 5)]}, [(60.0, 30.0)] * 12),
    "nothing outside is not known": ("outside_work_ns", {"step": [inside(0, 0, 9)], "op": [op(0, 5)]}, [(None,)] * 12),
    "a rank without operators has no rows": ("rank",
        {"step": [inside(0, 0, 9, rank=rank) for rank in (0, 1)], "op": [op(0, 5, rank=1)]}, [(1,)] * 12),
    "executions on a device are counted": ("device_ops device_op_ns",
        {"step": [inside(0, 0, 90)],
         "op": [op(0, 50, side="host"), op(0, 5, 0, 10, side="device"), op(0, 7, 0, 20, side="device")]},
        [(2, 12)] * 12),
    "executions on a device are counted, too": ("device_ops device_op_ns",
        {"step": [inside(0, 0, 90)], "op": [op(0, 5)]}, [(None, None)] * 12),
})  # fmt: skip

test_rows_of_diagnose_network_top = answers("diagnose/network_top", {
    "shares are of the steps with operators": ("position op_id name count seen_steps steps self_ns per_step_ns share",
        {"step": STEPS, "op_info": INFO, "op": [op(0, 30, 1), op(0, 10, 1), op(0, 10, 2), op(1, 40, 1), op(9, 99, 0)]},
        [(1, 0, "a/MatMul", 3, 2, 2, 50, 25.0, 0.25), (2, 1, None, 1, 1, 2, 40, 20.0, 0.2)]),
    "only the largest are given": ("op_id", {"step": STEPS, "op": [op(0, 1, 1), op(1, 2, 1)]}, [(1,)], {"top": 1}),
    "own time counts and the whole where it is not known": ("op_id self_ns",
        {"step": STEPS, "op": [op(0, 40, 1, self_ns=5), op(1, 20, 1, self_ns=None)]}, [(1, 20), (0, 5)]),
    "an operator between steps does not count": ("op_id", {"step": STEPS, "op": [op(0, 7, None), op(1, 2, 1)]}, [(1,)]),
    "all that a line computes counts beside each of its operators": ("op_id site site_share",
        {"step": STEPS, "op_info": rows("op_id type phase stack_id", (0, "Conv2D", "forward", 1),
                                        (1, "Conv2DBackpropInput", "backward", 1), (2, "AllReduce", "communication", 1),
                                        (3, "Add", "forward", None)), "stack": [{"stack_id": 1, "frame": "a.py(3): f"}],
         "op": [op(0, 20, 1), op(1, 30, 1), op(2, 40, 1), op(3, 10, 1)]},
        [(2, "a.py(3): f", 0.5), (1, "a.py(3): f", 0.5)], {"top": 2}),
    "ranges of the user and python functions are no operators": ("op_id", RANGED, [(0,)]),
    "on a device an operator has the time of what it launched": ("op_id self_ns", ON_DEVICE,
        [(2, 40), (3, 10), (0, 2)]),
}, top=5)  # fmt: skip

test_rows_of_diagnose_network_types = answers("diagnose/network_types", {
    "many small operators of a type come before a single large one": (
        "position type phase operators count steps self_ns share",
        {"step": STEPS, "op_info": TYPES, "op": [op(0, 20, 1), op(1, 25, 1), op(0, 15, 2), op(2, 40, 1), op(2, 99, 0)]},
        [(1, "Mul", "forward", 2, 3, 2, 60, 0.3), (2, "MatMul", "forward", 1, 1, 2, 40, 0.2)]),
    "only the largest are given and own time counts": ("type self_ns",
        {"step": STEPS, "op_info": TYPES, "op": [op(0, 50, 1, self_ns=5), op(2, 20, 1, self_ns=None)]},
        [("MatMul", 20)], {"top": 1}),
    "executions are counted beyond the largest types": ("type count all_count",
        {"step": STEPS, "op_info": TYPES, "op": [op(0, 20, 1), op(0, 15, 2), op(2, 40, 1), op(7, 1, 1)]},
        [("MatMul", 1, 4)], {"top": 1}),
    "operators without a type are left out": ("type", {"step": STEPS, "op": [op(7, 5, 1)]}, []),
    "ranges of the user and python functions are no operators": ("type", RANGED, [("Mul",)]),
    "on a device an operator has the time of what it launched": ("type self_ns count", ON_DEVICE,
        [("MatMul", 40, 1), ("kernel", 10, 1), ("Mul", 2, 1)]),
}, top=5)  # fmt: skip

test_rows_of_diagnose_op_growth = answers("diagnose/op_growth", {
    "a straight line is found": (
        "name steps windows span_steps mean_ns share first_ns last_ns falls slope_ns slope_variance",
        run({0: 100, 1: 110, 4: 140, 5: 150}),
        [("Add", 4, 2, 5, 125.0, 0.125, 105.0, 145.0, 0, pytest.approx(10), pytest.approx(0, abs=1e-9))]),
    # x from its middle: -1 0 1; y: 10 40 10; slope 0, residuals -10 20 -10, variance 600 / 1 / 2
    "the variance is that of least squares": ("windows slope_ns slope_variance falls", run({0: 10, 1: 40, 2: 10}),
        [(1, pytest.approx(0), pytest.approx(300), 0)]),
    "windows that fall are counted": ("windows falls first_ns last_ns", run({0: 30, 2: 20, 4: 50, 6: 40}),
        [(4, 2, 30.0, 40.0)]),
    "a single step has no slope": ("slope_ns slope_variance", run({0: 30}), [(None, None)]),
    "a step without the operator counts as none": ("name mean_ns first_ns last_ns slope_ns",
        run({0: 10, 2: 10}, [op(1, 6, 2, 2000)], {"op_id": 1, "name": "Late", "type": "Late", "phase": "forward"}),
        [("Add", 10.0, 10.0, 10.0, pytest.approx(0)), ("Late", 3.0, 0.0, 6.0, pytest.approx(3))]),
    "one name with several shapes is one operator": ("name shapes slope_ns",
        run({0: 10}, [op(1, 20, 1, 1000)],
            {"op_id": 1, "name": "Add", "type": "Add", "phase": "forward", "in_shapes": "[4]"}),
        [("Add", 2, pytest.approx(10))]),
    "a range of the user is no operator that could grow": ("name",
        run({0: 10, 2: 10}, [op(1, 500 + n, n, 1000 * n, self_ns=500) for n in (0, 2)],
            {"op_id": 1, "name": "my range", "category": "user_annotation"}), [("Add",)]),
}, top=3)  # fmt: skip

test_rows_of_diagnose_rank_imbalance = answers("diagnose/rank_imbalance", {
    "one rank gives nothing": ("", forwards({0: [10, 10]}), []),
    "no common step gives nothing": ("", forwards({0: [10, None], 1: [None, 10]}), []),
})  # fmt: skip

test_rows_of_diagnose_warmup_share = answers("diagnose/warmup_share", {
    "warmup against the other steps": (
        "warmup_steps later_steps train_steps warmup_ns later_ns train_ns train_mean_ns share compiles compile_ns",
        {"step": [step(0, 0, 60, "warmup"), step(1, 60, 70), step(2, 70, 90, "warmup"), step(3, 90, 100)],
         "span": [compiled(5, 50), compiled(75, 10), {"category": "window", "start_ns": 0, "dur_ns": 9}]},
        [(2, 1, 2, 80, 20, 20, 10.0, 0.8, 2, 60)]),
    "evaluation does not count": ("warmup_ns train_ns share compiles",
        {"step": [step(0, 0, 10, "warmup"), step(1, 10, 90, "eval", kind_step=0)], "span": [compiled(20, 30)]},
        [(10, 0, 1.0, 0)]),
    "a compilation counts no longer than its step": ("compiles compile_ns train_mean_ns",
        {"step": [step(0, 0, 10, "warmup")], "span": [compiled(5, 30)]}, [(1, 5, None)]),
})  # fmt: skip


def test_the_host_before_the_first_call_may_be_a_loader_where_no_batch_was_seen(ask):
    steps = [inside(0, 0, 100, called_ns=70), inside(1, 100, 200)]
    tables = {"step": steps, "op": [op(0, 10, 0, 80), op(0, 5, 0, 20), op(0, 40, 1, 100)], "op_info": PHASED}
    rows = dict(ask("diagnose/network_phase", tables, give="part total_ns"))
    assert (rows["other_loader"], rows["host_gap"], rows["forward"]) == (65, 80, 55)


DIFF = "median_ns diff_ns diff_low_ns diff_high_ns"
SLOW = forwards({0: [30, 30, 30], 1: [50, 50, 50], 2: [40, 40, 40]})
SLOW_OWN = [(0, 30.0, -15.0, -15.0, -15.0), (1, 50.0, 15.0, 15.0, 15.0), (2, 40.0, 0.0, 0.0, 0.0)]
IMBALANCE = {
    "the slow rank has the longest own time": ("own", DIFF, SLOW, SLOW_OWN),
    "the slow rank has the longest forward pass": ("forward", DIFF, SLOW, SLOW_OWN),
    "the slow rank has the least communication": ("communication", "median_ns", SLOW,
        [(0, 70.0), (1, 50.0), (2, 60.0)]),
    "the slow rank waits for nobody": ("waiting", "median_ns", SLOW, [(0, 20.0), (1, 0.0), (2, 10.0)]),
    "no rank has a gap of the host": ("host_gap", "median_ns", SLOW, [(0, 0.0), (1, 0.0), (2, 0.0)]),
    "what all ranks have in common cancels": ("own", DIFF, forwards({0: [10, 50, 90], 1: [12, 52, 92]}),
        [(0, 50.0, -2.0, -2.0, -2.0), (1, 52.0, 2.0, 2.0, 2.0)]),
    "only steps of every rank count": ("own", "ranks steps diff_ns", forwards({0: [10, None, 30], 1: [20, 20, 70]}),
        [(0, 2, 2, -25.0), (1, 2, 2, 25.0)]),
    "quartiles and means": ("own", f"{DIFF} mean_ns step_ns", forwards({0: [0, 0, 0, 0, 0], 1: [0, 10, 20, 30, 90]}),
        [(0, 0.0, -20.0, -30.0, -10.0, 0.0, 100.0), (1, 20.0, 20.0, 10.0, 30.0, pytest.approx(30), 100.0)]),
    "ranks of different stages are not compared": ("own", "diff_ns",
        stages_of_two({0: [20, 20], 1: [20, 20], 2: [80, 80], 3: [80, 80]}), [(0, 0.0), (1, 0.0), (2, 0.0), (3, 0.0)]),
    "ranks of a stage are": ("own", DIFF, stages_of_two({0: [20, 20], 1: [30, 30], 2: [80, 80], 3: [80, 80]}),
        [(0, 20.0, -10.0, -10.0, -10.0), (1, 30.0, 10.0, 10.0, 10.0), (2, 80.0, 0.0, 0.0, 0.0),
         (3, 80.0, 0.0, 0.0, 0.0)]),
    "the only rank of its stage has nothing to be compared with": ("own", "diff_ns diff_low_ns diff_high_ns",
        stages_of_two({1: [20, 20], 2: [80, 80]}), [(1, None, None, None), (2, None, None, None)]),
}  # fmt: skip


@pytest.mark.parametrize(("part", "columns", "tables", "expected"), IMBALANCE.values(), ids=IMBALANCE)
def test_a_part_of_the_step_on_each_rank(ask, part, columns, tables, expected):
    rows = ask("diagnose/rank_imbalance", tables, give=f"part rank {columns}")
    assert [row[1:] for row in rows if row[0] == part] == expected


@pytest.mark.parametrize(("long", "stalled"), [(False, 40 / 110), (True, 40 / (110 + 12 * MS))])
def test_what_short_operators_take_beyond_three_times_their_median_is_a_stall(ask, long, stalled):
    times = {0: (10, 10, 50), 1: (10, 30)}
    executions = [op(op_id, dur, 0, at) for op_id, durs in times.items() for at, dur in enumerate(durs)]
    executions += [op(3, dur, 0, 3 * MS) for dur in (2 * MS, 2 * MS, 8 * MS) if long]
    tables = {"step": [inside(0, 0, 20 * MS)], "op": executions}
    tables["op_info"] = [{"op_id": number, "phase": "forward"} for number in (0, 1, 3)]
    assert ask("diagnose/network_phase", tables, give="stalled") == [(stalled,)] * 12
