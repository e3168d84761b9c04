"""Queries that compare repetitions."""

from collections import defaultdict
from random import Random

import pytest
import table_rows
from query_cases import answers, row, rows
from table_rows import KEY, MS, fed, phased_step, step, times

fact = row("side name value")
SPLIT = [
    {"rank": rank, "source": "step_trace_time", "source_step": 1, "computing_ns": 50, "exposed_ns": exposed}
    for rank, exposed in ((0, 7), (1, 9))
]
GIVE = "rep ranks steps exposed_ns tail_ns"


def recorded(rank, start, dur):
    """One collective of a rank, and an operator until 60."""
    return {
        "collective": [{"step": 0, "rank": rank, "start_ns": start, "dur_ns": dur}],
        "op": [{"op_id": 0, "step": 0, "rank": rank, "start_ns": 20, "dur_ns": 40, "track": "0"}],
        "op_info": [{"op_id": 0, "rank": rank, "phase": "forward"}],
    }


def merged(*parts):
    return {name: [row for part in parts for row in part.get(name, [])] for name in ("collective", "op", "op_info")}


def length(rep, rank, number, length, kind="train"):
    return table_rows.step(number, number * 1000, number * 1000 + length, kind, rep=rep, rank=rank)


INFO = [
    {"op_id": 0, "name": "net/Conv2D-op1", "type": "Conv2D", "in_shapes": "1x3", "out_shapes": "1x8"},
    {"op_id": 1, "name": None, "type": "Relu"},
]


def op(op_id, step, self_ns, **more):
    return {"op_id": op_id, "step": step, "start_ns": step * 100, "dur_ns": self_ns, "self_ns": self_ns, **more}


def steps(*numbers, **more):
    return [{"step": n, "kind": "train", "start_ns": n, "end_ns": n + 1, "in_window": True, **more} for n in numbers]


def drawn(seed):
    """Tables of two ranks whose executions differ in everything that decides whether they count."""
    chance = Random(seed)  # noqa: S311 - test data
    tables = {"op": [], "op_info": [], "step": []}
    for rep, rank in ((0, 0), (0, 1), (1, 0)):
        here = {"rep": rep, "rank": rank}
        kinds = chance.choice([["train"], ["warmup"], ["eval"], ["train", "warmup", "eval"], []])
        for number in range(4 if kinds else 0):
            tables["step"] += [row | here for row in steps(number, kind=chance.choice(kinds))]
        for op_id in range(4):
            facts = {"name": chance.choice([None, "a"]), "type": chance.choice([None, "T"])}
            category = chance.choice([None, None, "cpu_op", "user_annotation"])
            tables["op_info"] += [{"op_id": op_id, **facts, "category": category, **here}] * chance.choice([0, 1, 1])
        sides = chance.choice([[None], ["host"], ["device", "host"], [None, "device", "host"]])
        for _ in range(chance.choice([3, 15])):
            side, step = chance.choice(sides), chance.choice([0, 1, 2, 3, 9, None])
            row = op(chance.randrange(5), 0, chance.choice([None, 0, 3, 7]), side=side, **here)
            tables["op"].append(row | {"step": step})
    return tables


def expected(rows):
    """The query's rows from those of train_op, in plain Python."""
    recorded, ranks, groups = defaultdict(set), defaultdict(set), defaultdict(list)
    for rep, rank, name, kind, number, self_ns in rows:
        recorded[rep, rank] |= set() if number is None else {number}
        ranks[rep].add(rank)
        groups[rep, name if name is not None else kind or "", kind or ""].append((rank, self_ns))
    found = []
    for (rep, name, kind), group in sorted(groups.items()):
        parts = [(ns, len(recorded[rep, rank]) * len(ranks[rep])) for rank, ns in group if recorded[rep, rank]]
        times = [ns / number for ns, number in parts if ns is not None]
        counts = [1 / number for _, number in parts]
        found.append((rep, name, kind, sum(times) if times else None, sum(counts) if counts else None))
    return found


def tables(**more):
    decode = {"name": "decode", "workers": 2, "capacity": 16, "uses_processes": True}
    return fed(("BatchOp", {"capacity": 16}), ("MapOp", decode), op_service=times(1, "log", 50), **more)


test_rows_of_compare_fact_change = answers("compare/fact_change", {
    "only what differs is listed": ("name base new change",
        {"side_fact": [fact("base", "op a", "Conv2D"), fact("new", "op a", "SlowConv"), fact("base", "op b", "Relu"),
                       fact("new", "op b", "Relu"), fact("base", "op c", "Add"), fact("new", "op d", "Mul")]},
        [("op a", "Conv2D", "SlowConv", "changed"), ("op c", "Add", None, "vanished"),
         ("op d", None, "Mul", "appeared")]),
    "outputs that one side does not know are no difference": ("name",
        {"side_fact": [fact("base", "op a", "MatMul [8, 4] ->"), fact("new", "op a", "MatMul [8, 4] -> [8, 2]"),
                       fact("base", "op b", "MatMul [8, 4] ->"), fact("new", "op b", "MatMul [9, 4] -> [9, 2]"),
                       fact("base", "op c", "MatMul [8, 4] -> [8, 3]"),
                       fact("new", "op c", "MatMul [8, 4] -> [8, 2]")]}, [("op b",), ("op c",)]),
})  # fmt: skip

test_rows_of_compare_rep_communication = answers("compare/rep_communication", {
    # rank 0: 30 of which 20 behind the backward pass, and a step without any; rank 1: 10
    "each rank counts once whatever steps it has": (GIVE,
        {"step": [phased_step(), phased_step(1), phased_step(rank=1)],
         **merged(recorded(0, 50, 40), recorded(1, 50, 20),
                  {"op": [{"step": 1, "start_ns": 20, "dur_ns": 10, "op_id": 0, "track": "0"}]})},
        [(0, 2, 3, 12.5, 5.0)]),
    "a tail is known only behind a known backward pass": (GIVE, {"step": [phased_step(bp=None)], **recorded(0, 50, 40)},
        [(0, 1, 1, 30.0, None)]),
    "operators are asked before the profilers own division": (GIVE, {"step_split": SPLIT}, [(0, 2, 2, 8.0, None)]),
    "operators are asked before the profilers own division, too": (GIVE,
        {"step": [phased_step()], "step_split": SPLIT, **recorded(0, 50, 40)}, [(0, 1, 1, 30.0, 20.0)]),
    "a training on its own has none": ("",
        {"step": [phased_step()], "op": [{"op_id": 0, "step": 0, "start_ns": 20, "dur_ns": 40, "track": "0"}]}, []),
})  # fmt: skip

test_rows_of_compare_rep_count = answers("compare/rep_count", {
    "graphs of all ranks and the largest batches": ("*",
        {"run_part": rows("part count rank rep", ("compile", 1, None, None), ("recompile", 3, None, None),
                          ("compile_eval", 1, None, None), ("training", 90, None, None), ("compile", 1, 1, None),
                          ("training", None, None, 1)),
         "pipeline": rows("pipeline_id role epoch_batches batch_size batch_bytes", (0, "train", 8, 4, 96),
                          (1, "train", None, 2, None), (2, "eval", 80, 40, 960))},
        [(0, 6, 8, 4, 96, None), (1, 0, None, None, None, None)]),
    "without parts graphs are not known": ("compilations batch_rows",
        {"pipeline": [{"pipeline_id": 0, "role": "train", "batch_size": 4}]}, [(None, 4)]),
    "allocations count where each was recorded": ("rep allocations",
        {"allocation": rows("bytes evidence", (4, None), (8, None), (8, "inferred"))}, [(0, 2)]),
})  # fmt: skip

test_rows_of_compare_rep_curve = answers("compare/rep_curve", {
    "each step is a point when there is room": ("rep point steps dur_ns",
        {"step": [length(rep, 0, number, 10 * rep + number) for rep in (0, 1) for number in range(3)]},
        [(0, 0, 1, 0.0), (0, 1, 1, 1.0), (0, 2, 1, 2.0), (1, 0, 1, 10.0), (1, 1, 1, 11.0), (1, 2, 1, 12.0)],
        {"points": 5}),
    "neighbours share a point and none is lost": ("rep point steps dur_ns",
        {"step": [length(0, 0, number, number) for number in range(7)]},
        [(0, 0, 3, 1.0), (0, 1, 2, 3.5), (0, 2, 2, 5.5)], {"points": 3}),
    "warm up and other ranks are left out": ("rep point steps dur_ns",
        {"step": [length(0, 1, 0, 99, "warmup"), length(0, 1, 1, 10), length(0, 2, 1, 70),
                  length(0, 1, 2, 50, "eval")]}, [(0, 0, 1, 10.0)]),
    "warm up and other ranks are left out, too": ("rep point steps dur_ns", {"step": [length(0, 0, 0, 9, "warmup")]},
        []),
}, points=9)  # fmt: skip

test_rows_of_compare_rep_memory = answers("compare/rep_memory", {
    "the largest process counts": ("rep peak_bytes",
        {"memory": rows("device pid rss_bytes rss_peak_bytes rep", ("process", 1, 50, 70, None),
                        ("process", 2, 90, None, None), ("host", None, 1000, None, None), ("process", 3, 20, None, 1))},
        [(0, 90), (1, 20)]),
    "the peak of a process counts when it is known": ("peak_bytes",
        {"memory": [{"device": "process", "pid": 1, "rss_bytes": 50, "rss_peak_bytes": 70}]}, [(70,)]),
})  # fmt: skip

test_rows_of_compare_rep_op = answers("compare/rep_op", {
    "time and executions per step": ("*",
        {"op": [op(0, 1, 10), op(0, 1, 30), op(0, 2, 20), op(1, 1, 6)], "op_info": INFO, "step": steps(1, 2)},
        [(0, "Relu", "Relu", "", "", 3.0, 0.5), (0, "net/Conv2D-op1", "Conv2D", "1x3", "1x8", 30.0, 1.5)]),
    "ranks are averaged": ("self_ns executions",
        {"op": [op(0, 1, 10), op(0, 1, 30, rank=1)], "op_info": [*INFO, {**INFO[0], "rank": 1}], "step": steps(1)
         + steps(1, rank=1)}, [(20.0, 1.0)]),
})  # fmt: skip

test_rows_of_compare_rep_phase = answers("compare/rep_phase", {
    "the longest rank of each phase": ("rep phase mean_ns",
        {"step": [phased_step(0, 0, 10, 30, 35), phased_step(1, 35, 55, 65, 70), phased_step(0, 0, 5, 45, 50, rank=1)]},
        [(0, "data_wait", 15.0), (0, "forward_backward", 40.0), (0, "tail", 5.0)]),
})  # fmt: skip

test_rows_of_compare_rep_pipeline_op = answers("compare/rep_pipeline_op", {
    "settings and work of each stage": (tables(),
        ("op_id op_type name workers capacity uses_processes consumer_id",
         [(0, "BatchOp", None, 1, 16, None, None), (1, "MapOp", "decode", 2, 16, True, 0)]),
        ("op_id work_ns", [(0, None), (1, 50 * MS)])),
    "instructions of all functions of a stage": ("op_id instructions",
        tables(op_instructions=[KEY | {"op_id": 1, "part": part, "calls": 8, "median": 10.5 * (part + 1)}
                                for part in (0, 1)]), [(0, None), (1, 31.5)]),
})  # fmt: skip

test_rows_of_compare_rep_step = answers("compare/rep_step", {
    "each repetition shows its slowest rank": ("*",
        {"step": [step(0, 0, 100, "warmup"), step(1, 100, 110, fetch_wait_ns=4), step(2, 110, 130, fetch_wait_ns=8),
                  step(0, 0, 150, "warmup", rank=1), step(1, 150, 190, fetch_wait_ns=1, rank=1),
                  step(0, 0, 90, "warmup", rep=1), step(1, 90, 95, rep=1)]},
        [(0, 1, 1, 40.0, 40.0, 1.0, 150), (1, 0, 1, 5.0, 5.0, None, 90)]),
    "the wait is of the steps that fetched and the first step of the last rank": ("data_wait_ns first_step_ns",
        {"step": [step(0, 0, 10, fetch_wait_ns=4), step(1, 10, 20), step(2, 20, 30, fetch_wait_ns=8),
                  step(0, 0, 9, rank=1)]}, [(6.0, 10)]),
    "steps in windows do not count": ("steps median_ns p90_ns",
        {"step": [step(0, 0, 10), step(1, 10, 20), step(2, 20, 1020, in_window=True)]}, [(2, 10.0, 10.0)]),
    "evaluation is no training": ("", {"step": [step(0, 0, 10, "eval")]}, []),
})  # fmt: skip


@pytest.mark.parametrize("category", [None, "cpu_op", "user_annotation"])
def test_the_wait_for_a_data_loader_is_no_operator(ask, category):
    loader = {"op_id": 2, "name": "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "category": category}
    tables = {"op": [op(0, 1, 10), op(2, 1, 99)], "op_info": [*INFO, loader], "step": steps(1)}
    assert ask("compare/rep_op", tables, give="name self_ns") == [("net/Conv2D-op1", 10.0)]


@pytest.mark.parametrize("seed", range(12))
def test_executions_are_those_of_train_op(ask, look, seed):
    tables = drawn(seed)
    rows = look("SELECT rep, rank, name, type, step, self_ns FROM train_op", tables)
    found = ask("compare/rep_op", tables, give="rep name type self_ns executions")
    assert [row[:3] for row in found] == [row[:3] for row in expected(rows)]
    for one, other in zip(found, expected(rows), strict=True):
        assert one[3:] == tuple(value if value is None else pytest.approx(value) for value in other[3:])


def test_rows_of_a_source_and_bytes_where_every_row_has_as_many(ask):
    given = tables()
    given["pipeline_op"][1]["source_rows"] = 160
    for sizes, expected in (((8, 8), 8), ((8, 9), None), ((8, None), 8), ((None, None), None)):
        for call, size in zip(given["op_service"], sizes * 20, strict=True):
            call["out_bytes"] = size
        found = ask("compare/rep_pipeline_op", given, give="op_id source_rows row_bytes")
        assert found == [(0, None, None), (1, 160, expected)]
