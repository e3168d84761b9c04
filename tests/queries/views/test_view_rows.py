"""Views of the records."""

from collections import Counter

import pytest
import table_rows
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from query_cases import looked, row, rows
from table_rows import KEY, collectives, depths, op, phased_step, step

GIVE = """
SELECT rank, name, place, ranks, least_ns, waiting_ns, is_last, caused_ns
FROM comm_match ORDER BY name, place, rank
"""
PARTS_OF_COMM = "SELECT comm_ns, data_wait_comm_ns, forward_backward_comm_ns, tail_comm_ns FROM comm_part"
event = row("start_ns dur_ns", step=0)


def talked(*events):
    """A step from 0 to 100 with FP at 20 and BP at 70, and events in it."""
    return {"step": [phased_step()], "collective": [event(*one) for one in events]}


BATCH, MAP, SOURCE = (("BatchOp", 8, False), ("MapOp", 8, False), ("GeneratorOp", 8, False))


def ops(*facts):
    """Operators 0, 1, ... from (op_type, capacity, inlined)."""
    return [
        KEY | {"op_id": number, "op_type": kind, "capacity": capacity, "inlined": inlined}
        for number, (kind, capacity, inlined) in enumerate(facts)
    ]


def edges(*pairs):
    return [KEY | {"producer_id": producer, "consumer_id": consumer} for producer, consumer in pairs]


LINKS = "SELECT consumer_id, producer_id FROM queue_link ORDER BY consumer_id, producer_id"
PEERS = "SELECT rank, peers, basis FROM rank_peer ORDER BY rank"
SOURCES = "SELECT DISTINCT source FROM rank_phase"
OF_RANK = "SELECT phase, phase_ns, step_ns FROM rank_phase WHERE position = 0 AND rank = {} ORDER BY phase"
LIBRARY, OWN = "/env/lib/python3.11/site-packages/mindcv/data/loader.py:98", "/home/me/train.py:14"
FACTORY = f"/env/lib/python3.11/site-packages/mindcv/data/factory.py:7\n{OWN}\n/home/me/train.py:60"


def ranked(rank, number=0, **more):
    begin = 100 * number
    return phased_step(number, begin, begin + 10, begin + 70, begin + 100, rank=rank, **more)


def reduced(*ranks):
    """Tables of ranks with an all-reduce in the tail of their step."""
    made = [{"rank": rank, "step": 0, "start_ns": 60, "dur_ns": 20} for rank in ranks]
    return {"step": [ranked(rank) for rank in ranks], "collective": made}


def divided(*ranks):
    """As those, with the profiler's own division of the steps of these ranks."""
    names = "rank source source_step step computing_ns exposed_ns free_ns"
    return reduced(0, 1) | {"step_split": rows(names, *((rank, "step_trace_time", 0, 0, 60, 30, 10) for rank in ranks))}


def operated(*ranks):
    """As those, with operators of these ranks."""
    infos = [{"rank": rank, "op_id": 0, "phase": "forward"} for rank in ranks]
    return reduced(0, 1) | {"op": [op(0, 40, start=10, rank=rank) for rank in ranks], "op_info": infos}


def placed(*places):
    """Operators of these places: (site, callers)."""
    return [
        KEY | {"op_id": number, "op_type": "MapOp", "site": site, "callers": callers}
        for number, (site, callers) in enumerate(places)
    ]


def pipeline(*chains):
    """Rows of `collective` in which each chain's ranks pass a batch down and its gradients up, in groups of two."""
    rows = []
    for chain in chains:
        for place, rank in enumerate(chain):
            before, behind = chain[place - 1 : place], chain[place + 1 : place + 2]
            calls = [("receive", other) for other in before if place] + [("send", other) for other in behind]
            calls += [("receive", other) for other in behind] + [("send", other) for other in before if place]
            rows += [
                {"rank": rank, "step": 0, "name": kind, "kind": kind, "start_ns": number, "dur_ns": 1,
                 "group_name": "pair-{}-{}".format(*sorted((rank, other)))}
                for number, (kind, other) in enumerate(calls)
            ]  # fmt: skip
    return rows


INFO = [
    {"op_id": number, "phase": phase, "name": phase}
    for number, phase in enumerate(("forward", "backward", "optimizer", "communication", "other", "gradients", "after"))
]
FORWARD, BACKWARD, OPTIMIZER, COMMUNICATION, OTHER, GRADIENTS, AFTER, UNKNOWN = range(8)
PARTS = [
    "forward", "backward", "optimizer", "other", "gradients", "after", "exposed", "tail", "data_wait", "host_gap",
    "overlapped",
]  # fmt: skip


def did(op_id, start, stop, number=0, **more):
    return table_rows.op(op_id, stop - start, number, start, **more)


def parts(look, ops, fetches=(), collectives=(), info=(), **more):
    row = step(0, 100, 200, in_window=True, **more)
    infos = [*INFO, *info]
    tables = {"step": [row], "op": ops, "op_info": infos, "fetch": list(fetches), "collective": list(collectives)}
    columns = ", ".join(f"{part}_ns" for part in PARTS)
    text = f"SELECT {columns}, dur_ns FROM step_part"  # noqa: S608 - names of this file
    rows = look(text, {name: rows for name, rows in tables.items() if rows})
    assert len(rows) == 1
    *times, whole = rows[0]
    assert sum(times[:-1]) == whole == 100
    return {part: time for part, time in zip(PARTS, times, strict=True) if time}


PHASES = "SELECT step, phase, total_ns FROM step_phase ORDER BY step, phase"


@st.composite
def _steps(draw):
    clock = 0
    rows = []
    for number in range(draw(st.integers(1, 6))):
        parts = draw(st.lists(st.integers(0, 10**12), min_size=3, max_size=3))
        fp, bp, end = clock + parts[0], clock + sum(parts[:2]), clock + sum(parts)
        row = {"step": number, "kind": "train", "start_ns": clock, "end_ns": end}
        row |= {"fp_ns": draw(st.sampled_from([fp, None])), "bp_ns": draw(st.sampled_from([bp, None]))}
        rows.append(row)
        clock = end
    return rows


def samples(pipeline, op, *depths, capacity=4):
    return [
        {"pipeline_id": pipeline, "op_id": op, "t_ns": at, "depth": depth, "capacity": capacity}
        for at, depth in enumerate(depths)
    ]


def pipelines(*keys, role="train"):
    return [{"pipeline_id": number, "pipeline_key": key, "role": role} for number, key in enumerate(keys)]


CHOICE = "SELECT pipeline_key, pipeline_id FROM train_pipeline ORDER BY pipeline_key"


def batches(side, *depths):
    return [
        {"pipeline_id": 0, "fetch": at, "start_ns": 10 * at, "wait_ns": 1, "depth": depth, "side": side}
        for at, depth in enumerate(depths)
    ]


BATCHES = 'SELECT side, "fetch", t_ns, depth FROM train_batch ORDER BY side, "fetch"'
USAGE = (
    "SELECT op_id, capacity, has_queue, samples, empty_samples, mean_depth, usage_ratio, cpu_samples, mean_cores "
    "FROM pipeline_usage ORDER BY op_id"
)

test_rows_of_comm_match = looked({
    "the rank with the shortest event comes last and causes the waiting": (GIVE, collectives({"a": [30, 10, 50]}),
        [(0, "a", 1, 3, 10, 20, False, 0), (1, "a", 1, 3, 10, 0, True, 60), (2, "a", 1, 3, 10, 40, False, 0)]),
    "equal ranks are not last": ("SELECT is_last, caused_ns FROM comm_match", collectives({"a": [10, 10, 50]}),
        [(False, 0), (False, 0), (False, 0)]),
    "equal names of a step are matched in their order": (
        "SELECT rank, place, is_last FROM comm_match ORDER BY place, rank",
        collectives({"a": [30, 10], "again": [10, 30]}, name="a"),
        [(0, 1, False), (1, 1, True), (0, 2, True), (1, 2, False)]),
    "sends and what one rank has alone are left out": (GIVE, collectives({"a": [30, 10]}, kind="send"), []),
    "sends and what one rank has alone are left out, too": (GIVE, collectives({"a": [30, None], "b": [None, 10]}), []),
    "named groups are not mixed": ("SELECT rank, caused_ns FROM comm_match ORDER BY rank",
        collectives({"a": [30, 10, 20, 40]}) | {"collective": [
            row | {"group_name": "left" if row["rank"] < 2 else "right"}
            for row in collectives({"a": [30, 10, 20, 40]})["collective"]]},
        [(0, 0), (1, 20), (2, 20), (3, 0)]),
    "ranks of different stages are not mixed": ("SELECT rank, caused_ns FROM comm_match ORDER BY rank",
        collectives({"a": [30, 10, 20, 40]}) | {"step_split": rows("rank stage_index", (0, 0), (2, 1))},
        [(0, 0), (1, 20), (2, 20), (3, 0)]),
})  # fmt: skip

test_rows_of_comm_part = looked({
    "phases that are not known are null and the sum stays": (PARTS_OF_COMM,
        {"step": [phased_step(bp_ns=None)], "collective": [event(10, 80)]}, [(80, 10, None, None)]),
    "phases that are not known are null and the sum stays, too": (PARTS_OF_COMM,
        {"step": [phased_step(fp_ns=None)], "collective": [event(10, 80)]}, [(80, None, None, None)]),
    "a step without events has none and a rank without events no row": (
        "SELECT rank, step, events, comm_ns FROM comm_part ORDER BY rank, step",
        {"step": [phased_step(), phased_step(1), phased_step(rank=1)], "collective": [event(30, 10)]},
        [(0, 0, 1, 10), (0, 1, 0, 0)]),
    "beside op windows nothing is known": ("SELECT step, comm_ns FROM comm_part",
        {"step": [phased_step(), phased_step(1, in_window=True)], "collective": [event(30, 10, step=1)]}, [(1, 10)]),
    "a windows step without anything recorded is not known": ("SELECT step, comm_ns FROM comm_part ORDER BY step",
        {"step": [phased_step(number, in_window=True) for number in range(3)], "collective": [event(30, 10, step=1)],
         "op": [{"op_id": 0, "step": 2, "start_ns": 1, "dur_ns": 1, "track": "0"}]}, [(1, 10), (2, 0)]),
    "the sources step number is the position": ("SELECT position FROM comm_part",
        {"step": [phased_step(source_step=40)], "collective": [event(30, 10)]}, [(40,)]),
    "an event before the forward pass": (PARTS_OF_COMM, talked((0, 10)), [(10, 10, 0, 0)]),
    "an event between": (PARTS_OF_COMM, talked((30, 10)), [(10, 0, 10, 0)]),
    "an event in the tail": (PARTS_OF_COMM, talked((80, 10)), [(10, 0, 0, 10)]),
    "an event across all": (PARTS_OF_COMM, talked((10, 80)), [(80, 10, 50, 20)]),
    "twice the same": (PARTS_OF_COMM, talked((30, 10), (30, 10)), [(10, 0, 10, 0)]),
    "events that overlap count once in each phase": (PARTS_OF_COMM, talked((30, 40), (35, 5), (60, 20)),
        [(50, 0, 40, 10)]),
    "events that are cut at the step": (PARTS_OF_COMM, talked((-50, 60), (95, 50)), [(15, 10, 0, 5)]),
    "an event outside": (PARTS_OF_COMM, talked((-50, 10)), [(0, 0, 0, 0)]),
})  # fmt: skip

test_rows_of_op_exec = looked({
    "an execution carries its operator and its step": (
        "SELECT op_id, step, kind, in_window, dur_ns, self_ns, name, type, phase, bytes FROM op_exec",
        {"step": [{"step": 3, "kind": "train", "in_window": True, "start_ns": 0, "end_ns": 9}],
         "op_info": [{"op_id": 1, "name": "Default/Add-op1", "type": "Add", "phase": "forward", "bytes": 8}],
         "op": [{"op_id": 1, "step": 3, "start_ns": 2, "dur_ns": 5, "self_ns": 4, "track": "0"}]},
        [(1, 3, "train", True, 5, 4, "Default/Add-op1", "Add", "forward", 8)]),
    "an execution without operator or step is kept": ("SELECT op_id, kind, type, dur_ns FROM op_exec",
        {"op": [{"op_id": 1, "dur_ns": 5}]}, [(1, None, None, 5)]),
    "ranks do not mix": ("SELECT rank, type, dur_ns FROM op_exec ORDER BY rank",
        {"op_info": rows("op_id type rank", (1, "Add", None), (1, "Sub", 1)),
         "op": rows("op_id dur_ns rank", (1, 5, None), (1, 6, 1))}, [(0, "Add", 5), (1, "Sub", 6)]),
})  # fmt: skip

test_rows_of_pipeline_views = looked({
    "the tree names consumer key and role": (
        "SELECT pipeline_key, role, op_id, consumer_id, inlined FROM pipeline_tree ORDER BY op_id",
        {"pipeline": [KEY | {"pipeline_key": "a", "role": "eval"}], "pipeline_op": ops(BATCH, ("MapOp", 8, None)),
         "pipeline_edge": edges((1, 0))}, [("a", "eval", 0, None, False), ("a", "eval", 1, 0, False)]),
    "samples show a queue that the graph does not tell of": (LINKS,
        {"pipeline_op": ops(("BatchOp", None, False)), "queue": depths(0, 0, [0])}, [(-1, 0)]),
    "a chain ends in the loop": (LINKS,
        {"pipeline_op": ops(BATCH, MAP, SOURCE), "pipeline_edge": edges((1, 0), (2, 1))}, [(-1, 0), (0, 1), (1, 2)]),
    "inlined operators are looked through": (LINKS,
        {"pipeline_op": ops(("EpochCtrlOp", None, True), BATCH, ("RenameOp", 8, True), SOURCE),
         "pipeline_edge": edges((1, 0), (2, 1), (3, 2))}, [(-1, 1), (0, 1), (1, 3), (2, 3)]),
    "a zip has several inputs": (LINKS,
        {"pipeline_op": ops(("ZipOp", None, True), MAP, SOURCE), "pipeline_edge": edges((1, 0), (2, 0))},
        [(-1, 1), (-1, 2), (0, 1), (0, 2)]),
    "a circle ends": (LINKS, {"pipeline_op": ops(*[("MapOp", None, True)] * 2), "pipeline_edge": edges((0, 1), (1, 0))},
        []),
    "an operator of a library is at the users call": ("SELECT site FROM pipeline_tree ORDER BY op_id",
        {"pipeline_op": placed((LIBRARY, FACTORY), (LIBRARY, "/usr/lib/python3.11/threading.py:982"), (LIBRARY, None),
                               (OWN, "/home/me/train.py:60"), (None, None))},
        [(OWN,), (LIBRARY,), (LIBRARY,), (OWN,), (None,)]),
})  # fmt: skip

test_rows_of_rank_views = looked({
    "without stages all ranks are peers": (PEERS, {"step": [ranked(0), ranked(3)]}, [(0, 0, "all"), (3, 0, "all")]),
    "the division of a rank leaves out stages and warm up": (
        "SELECT rank, position, step_ns, receive_ns, communication_ns FROM rank_split ORDER BY rank, position",
        {"step": [ranked(0, 0, kind="warmup"), ranked(0, 1)],
         "step_split": rows("source computing_ns exposed_ns step source_step free_ns exposed_without_receive_ns overlapped_ns stage_index rank",
                            ("step_trace_time", 50, 30, 0, 1, None, None, None, None, None),
                            ("step_trace_time", 50, 30, 1, 2, 20, 10, 5, None, None),
                            ("step_trace_time", 50, 30, None, 2, None, None, None, 0, None),
                            ("step_trace_time", 50, 30, None, None, None, None, None, None, 1))},
        [(0, 2, 100, 20, 35), (1, 0, 80, None, None)]),
    "a stage goes from its first rank to the next stage": (
        "SELECT rank, peers, basis FROM rank_peer WHERE rank IN (0, 3, 4, 5, 9) ORDER BY rank",
        {"step": [ranked(rank) for rank in (0, 3, 4, 5, 9)],
         "step_split": rows("rank stage_index", (0, 0), (4, 1), (6, 2))},
        [(0, 0, "stage"), (3, 0, "stage"), (4, 1, "stage"), (5, 1, "stage"), (9, 2, "stage")]),
    "without every sender ranks are compared by how they send and receive": (
        "SELECT rank, peers FROM rank_peer ORDER BY rank",
        {"step": [ranked(rank) for rank in (1, 2, 3)],
         "collective": [row for row in pipeline((0, 1, 2, 3)) if row["rank"]]}, [(1, 1), (2, 1), (3, 0)]),
    "a step trace is compared without its communication": (reduced(0, 1), (SOURCES, [("trace",)]),
        (OF_RANK.format(0), [("communication", 20, 100), ("data_wait", 10, 100), ("forward_backward", 50, 100),
                             ("own", 80, 100), ("step", 100, 100), ("tail", 20, 100), ("until_bp", 70, 100)])),
    "without communication the plain phases are compared": ({"step": [ranked(0), ranked(1, bp_ns=None)]},
        (SOURCES, [("phase",)]),
        (OF_RANK.format(1), [("compute", 90, 100), ("data_wait", 10, 100), ("step", 100, 100)]),
        ("SELECT phase_ns, step_ns FROM rank_phase WHERE rank = 0 AND phase = 'until_bp'", [(70, 100)])),
    "the source that most ranks share is taken": (SOURCES, divided(0, 1), [("split",)]),
    "a source of one rank is not taken": (SOURCES, divided(0), [("trace",)]),
    "recorded operators count most": (operated(0, 1), (SOURCES, [("parts",)]),
        ("SELECT phase_ns, step_ns FROM rank_phase WHERE rank = 0 AND phase = 'own'", [(80, 100)]),
        ("SELECT phase_ns, step_ns FROM rank_phase WHERE rank = 1 AND phase = 'forward'", [(40, 100)])),
    "operators of one rank do not": (SOURCES, operated(0), [("trace",)]),
})  # fmt: skip

test_rows_of_step_part = looked({
    "steps without operators and evaluation have no row": ("SELECT step FROM step_part",
        {"step": [step(n, 0, 10, kind, in_window=True) for n, kind in enumerate(("train", "train", "eval"))],
         "op": [did(FORWARD, 0, 5, 1), did(FORWARD, 0, 5, 2), did(FORWARD, 0, 5, None)], "op_info": INFO}, [(1,)]),
    "warmup does not stand for training steps without operators": ("SELECT step FROM step_part",
        {"step": [step(n, 0, 10, kind, in_window=True) for n, kind in enumerate(("warmup", "train"))],
         "op": [did(FORWARD, 0, 5, 0)]}, []),
})  # fmt: skip

test_rows_of_step_phase = looked({
    "phases by what is known of a step": (PHASES,
        {"step": rows("step kind start_ns fp_ns bp_ns end_ns", (0, "train", 0, 1, 7, 10),
                      (1, "train", 10, 12, None, 20), (2, "train", 20, None, None, 30),
                      (3, "train", 30, None, 35, 40))},
        [(0, "data_wait", 1), (0, "forward_backward", 6), (0, "tail", 3), (1, "compute", 8), (1, "data_wait", 2),
         (2, "whole", 10), (3, "whole", 10)]),
    "a step keeps what the step table says of it": (
        "SELECT kind_step, kind, epoch, pipeline_id, in_window, phase FROM step_phase",
        {"step": [{"step": 5, "kind_step": 3, "kind": "eval", "epoch": 2, "pipeline_id": 1, "in_window": True,
                   "start_ns": 0, "end_ns": 9}]}, [(3, "eval", 2, 1, True, "whole")]),
    "a backward end that no operator tells divides no phase": ({"step": [
            {"step": n, "kind": "train", "start_ns": 0, "fp_ns": 1, "bp_ns": 7, "end_ns": 10, "bp_source": source}
            for n, source in enumerate(["op", "update", None])]},
        ("SELECT step, phase FROM step_phase WHERE phase = 'tail' ORDER BY step", [(0, "tail"), (2, "tail")]),
        ("SELECT step, bp_ns FROM train_step ORDER BY step", [(0, 7), (1, None), (2, 7)])),
})  # fmt: skip

test_rows_of_training_views = looked({
    "of equal pipelines the first with samples stands for all": (CHOICE,
        {"pipeline": pipelines("a", "a", "a", "b"), "queue": samples(1, 0, 1) + samples(2, 0, 1) + samples(3, 0, 1)},
        [("a", 1), ("b", 3)]),
    "only training has a choice": (CHOICE, {"pipeline": pipelines("a", role="eval"), "queue": samples(0, 0, 1)}, []),
    "batches of the iterator are the host side": (BATCHES,
        {"pipeline": pipelines("a"), "fetch": batches("iterator", 3, None, 0)},
        [("host", 0, 1, 3), ("host", 2, 21, 0)]),
    "a queue to the device replaces the iterator": (BATCHES,
        {"pipeline": pipelines("a"), "fetch": batches("iterator", 3) + batches("host_queue", 2)
         + batches("data_queue", 1)}, [("device", 0, 1, 1), ("host", 0, 1, 2)]),
    "use is the mean over all graphs of a key": (USAGE,
        {"pipeline": pipelines("a", "a"),
         "pipeline_op": [{"pipeline_id": pipeline, "op_id": op, "capacity": capacity, "inlined": capacity is None}
                         for pipeline in (0, 1) for op, capacity in ((0, 4), (1, None))],
         "pipeline_edge": [{"pipeline_id": pipeline, "producer_id": 1, "consumer_id": 0} for pipeline in (0, 1)],
         "queue": samples(0, 0, 0, 4, None) + samples(1, 0, 2),
         "cpu": rows("t_ns scope op_id user_ratio pipeline_id sys_ratio", (0, "pipeline_op", 0, 0.5, 0, 0.25),
                     (0, "pipeline_op", 0, 0.5, 1, None))},
        [(0, 4, True, 3, 1, 2.0, 0.5, 1, 0.75), (1, None, False, 0, 0, None, None, 0, None)]),
    "queues of changing size are averaged by fill": ("SELECT capacity, mean_depth, usage_ratio FROM pipeline_usage",
        {"pipeline": pipelines("a"), "pipeline_op": [{"pipeline_id": 0, "op_id": 0, "capacity": 4}],
         "queue": [*samples(0, 0, 4), {"pipeline_id": 0, "op_id": 0, "t_ns": 9, "depth": 4, "capacity": 8}]},
        [(4, 4.0, 0.75)]),
})  # fmt: skip


@pytest.mark.parametrize(
    "chains", [((0, 2, 4, 6), (1, 3, 5, 7)), ((7, 5, 3, 1), (6, 4, 2, 0)), ((0, 1, 2, 3), (4, 5, 6, 7))]
)
def test_stages_in_the_middle_are_told_apart_by_what_they_receive_from(look, chains):
    found = look(PEERS, {"step": [ranked(rank) for rank in range(8)], "collective": pipeline(*chains)})
    assert {rank: peers for rank, peers, _basis in found} == {
        rank: stage for chain in chains for stage, rank in enumerate(chain)
    }


@pytest.mark.parametrize(("name", "category"), [
    ("my range", "user_annotation"), ("train.py(7): main", "python_function"), ("ProfilerStep*", "cpu_op"),
    ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "cpu_op"),
])  # fmt: skip
def test_what_a_trace_has_around_its_operators_is_none(look, name, category):
    """It takes the whole step: what it does not do in operators is waiting for data, and the host."""
    info = [{"op_id": 20, "name": name, "phase": "other", "category": category}]
    fetch = {"step": 0, "start_ns": 100, "wait_ns": 30}
    found = parts(look, [did(20, 100, 200), did(FORWARD, 140, 160)], [fetch], info=info)
    assert found == {"data_wait": 30, "forward": 20, "host_gap": 50}
    tables = {"step": [step(0, 100, 200)], "op": [did(20, 100, 200)], "op_info": info}
    assert look("SELECT step FROM step_part", tables) == []


# `look` makes a new run folder each time, so one of them serves all examples.
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=_steps())
def test_phases_add_up_to_the_step(steps, look):
    sums = Counter()
    for number, _, total_ns in look(PHASES, {"step": steps}):
        sums[number] += total_ns
    assert sums == {row["step"]: row["end_ns"] - row["start_ns"] for row in steps}


FETCH, LONG = ([{"step": 0, "start_ns": 100, "wait_ns": wait}] for wait in (10, 50))
PART = {
    "a step of all parts": (
        [did(FORWARD, 120, 140), did(BACKWARD, 145, 160), did(COMMUNICATION, 150, 180), did(OPTIMIZER, 185, 190)],
        {"data_wait": 10, "forward": 20, "backward": 15, "exposed": 10, "tail": 10, "optimizer": 5, "host_gap": 30,
         "overlapped": 10}, {"fetches": FETCH, "bp_ns": 170}),
    "operators in each other": ([did(FORWARD, 100, 130), did(FORWARD, 110, 120)], {"forward": 30, "host_gap": 70}),
    "operators that overlap": ([did(FORWARD, 100, 130), did(FORWARD, 120, 150)], {"forward": 50, "host_gap": 50}),
    "twice the same": ([did(FORWARD, 100, 130), did(FORWARD, 100, 130)], {"forward": 30, "host_gap": 70}),
    "one after the other": ([did(FORWARD, 100, 130), did(FORWARD, 130, 140)], {"forward": 40, "host_gap": 60}),
    "over the ends of the step": ([did(FORWARD, 90, 110), did(FORWARD, 190, 230)], {"forward": 20, "host_gap": 80}),
    "empty and outside": ([did(FORWARD, 150, 150), did(FORWARD, 10, 50), did(FORWARD, 110, 111)],
        {"forward": 1, "host_gap": 99}),
    "forward counts before backward before optimizer before others": (
        [did(FORWARD, 100, 120), did(BACKWARD, 110, 140), did(OPTIMIZER, 130, 160), did(OTHER, 150, 180)],
        {"forward": 20, "backward": 20, "optimizer": 20, "other": 20, "host_gap": 20}),
    "work on gradients and behind the optimizer count before communication": (
        [did(GRADIENTS, 110, 130), did(AFTER, 120, 150), did(COMMUNICATION, 140, 160), did(FORWARD, 105, 115)],
        {"forward": 10, "gradients": 15, "after": 20, "exposed": 10, "overlapped": 10, "host_gap": 45}),
    "an operator nothing is known of is other": ([did(UNKNOWN, 100, 120)], {"other": 20, "host_gap": 80}),
    "a collective seen as operator and as event counts once": ([did(COMMUNICATION, 150, 170)],
        {"exposed": 20, "host_gap": 80}, {"collectives": [{"step": 0, "start_ns": 150, "dur_ns": 20}]}),
    "without a backward end nothing is in the tail": ([did(COMMUNICATION, 150, 170)], {"exposed": 20, "host_gap": 80},
        {"bp_ns": None}),
    "fetching beside operators is no wait": ([did(FORWARD, 110, 200)], {"data_wait": 10, "forward": 90},
        {"fetches": LONG}),
    # The kernel of the step before runs into this one, that of this one when the host is a step ahead.
    "on a device what ran there counts of whatever step and the host does not": ([did(FORWARD, 100, 150, side="host"),
            did(BACKWARD, 150, 195, side="host"), did(OPTIMIZER, 90, 110, number=7, side="device"),
            did(FORWARD, 120, 130, side="device"), did(BACKWARD, 250, 260, side="device")],
        {"optimizer": 10, "forward": 10, "host_gap": 80}),
    "an operator of no step counts only on a device": ([did(FORWARD, 110, 120), did(BACKWARD, 130, 140, number=None)],
        {"forward": 10, "host_gap": 90}),
}  # fmt: skip


@pytest.mark.parametrize("case", PART.values(), ids=PART)
def test_every_moment_of_a_step_counts_once_for_the_first_thing_it_is(look, case):
    ops, expected, *more = case
    assert parts(look, ops, **dict(*more)) == expected


def test_ranks_that_send_and_receive_alike_are_peers(look):
    kinds = [("send", "receive"), ("send", "receive"), ("receive", "send"), ("all_reduce",)]
    moves = [
        {"rank": rank, "step": 0, "name": f"{kind}{place}", "kind": kind, "start_ns": place, "dur_ns": 1}
        for rank, calls in enumerate(kinds)
        for place, kind in enumerate(calls)
    ]
    found = look(PEERS, {"step": [ranked(rank) for rank in range(4)], "collective": moves})
    assert [row[2] for row in found] == ["send_receive"] * 4
    groups = [row[1] for row in found]
    assert groups[0] == groups[1]
    assert len({groups[0], groups[2], groups[3]}) == 3
