from collections import defaultdict
from random import Random

import pytest

INFO = [
    {"op_id": 0, "name": "net/Conv2D-op1", "type": "Conv2D", "in_shapes": "1x3", "out_shapes": "1x8"},
    {"op_id": 1, "name": None, "type": "Relu"},
]


def op(op_id, step, self_ns, **more):
    return {"op_id": op_id, "step": step, "start_ns": step * 100, "dur_ns": self_ns, "self_ns": self_ns, **more}


def steps(*numbers, **more):
    return [{"step": n, "kind": "train", "start_ns": n, "end_ns": n + 1, "in_window": True, **more} for n in numbers]


def test_time_and_executions_per_step(ask):
    ops = [op(0, 1, 10), op(0, 1, 30), op(0, 2, 20), op(1, 1, 6)]
    found = ask("compare/rep_op", {"op": ops, "op_info": INFO, "step": steps(1, 2)})
    assert [tuple(row.values()) for row in found] == [
        (0, "Relu", "Relu", "", "", 3.0, 0.5),
        (0, "net/Conv2D-op1", "Conv2D", "1x3", "1x8", 30.0, 1.5),
    ]


def test_ranks_are_averaged(ask):
    info = [*INFO, {**INFO[0], "rank": 1}]
    ops = [op(0, 1, 10), op(0, 1, 30, rank=1)]
    tables = {"op": ops, "op_info": info, "step": steps(1) + steps(1, rank=1)}
    assert ask("compare/rep_op", tables, give="self_ns executions") == [(20.0, 1.0)]


@pytest.mark.parametrize("category", [None, "cpu_op", "user_annotation"])
def test_the_wait_for_a_data_loader_is_no_operator(ask, category):
    loader = {"op_id": 2, "name": "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "category": category}
    tables = {"op": [op(0, 1, 10), op(2, 1, 99)], "op_info": [*INFO, loader], "step": steps(1)}
    assert ask("compare/rep_op", tables, give="name self_ns") == [("net/Conv2D-op1", 10.0)]


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
    for rep, rank, name, kind, step, self_ns in rows:
        recorded[rep, rank] |= set() if step is None else {step}
        ranks[rep].add(rank)
        groups[rep, name if name is not None else kind or "", kind or ""].append((rank, self_ns))
    found = []
    for (rep, name, kind), group in sorted(groups.items()):
        parts = [(ns, len(recorded[rep, rank]) * len(ranks[rep])) for rank, ns in group if recorded[rep, rank]]
        times = [ns / number for ns, number in parts if ns is not None]
        counts = [1 / number for _, number in parts]
        found.append((rep, name, kind, sum(times) if times else None, sum(counts) if counts else None))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_executions_are_those_of_train_op(ask, look, seed):
    tables = drawn(seed)
    rows = look("SELECT rep, rank, name, type, step, self_ns FROM train_op", tables)
    found = ask("compare/rep_op", tables, give="rep name type self_ns executions")
    assert [row[:3] for row in found] == [row[:3] for row in expected(rows)]
    for one, other in zip(found, expected(rows), strict=True):
        assert one[3:] == tuple(value if value is None else pytest.approx(value) for value in other[3:])
