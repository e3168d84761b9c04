"""What limits a pipeline: by our own rules, and by those of MindSpore."""

import pytest
from query_cases import answers
from table_rows import ENDS, KEY, MS, depths, fed, times


def tables_of(*ops, edges=None, fetches=1, capacity=10):
    """Operators 0, 1, ... of (op_type, workers, samples or None, cores or None); a chain unless `edges` are given."""
    if edges is None:
        edges = [(number, number - 1) for number in range(1, len(ops))]
    return {
        "pipeline": [KEY | {"pipeline_key": "a", "role": "train"}],
        "pipeline_op": [
            KEY
            | {"op_id": number, "op_type": kind, "workers": workers}
            | {"capacity": None if depths is None else capacity, "inlined": depths is None}
            for number, (kind, workers, depths, _) in enumerate(ops)
        ],
        "pipeline_edge": [KEY | {"producer_id": up, "consumer_id": down} for up, down in edges],
        "queue": [
            KEY | {"op_id": number, "t_ns": at, "depth": depth, "capacity": capacity}
            for number, (_, _, depths, _) in enumerate(ops)
            for at, depth in enumerate(depths or [])
        ],
        "cpu": [
            KEY | {"t_ns": 0, "scope": "pipeline_op", "op_id": number, "user_ratio": cores, "sys_ratio": 0.0}
            for number, (_, _, _, cores) in enumerate(ops)
            if cores is not None
        ],
        "fetch": [KEY | {"fetch": at, "depth": 0, "capacity": 10, "side": "iterator"} for at in range(fetches)],
    }


CHANGES = "op_id workers_reason new_workers new_prefetch"


def lasting(tables, *depths):
    tables["fetch"] = [
        {"pipeline_id": 0, "fetch": at, "depth": depth, "capacity": 4, "side": "iterator"}
        for at, depth in enumerate(depths)
    ]
    return tables


def loaded(**more):
    """A map of 80 ms before a loop that waits 60 of every 100 ms."""
    facts = {"name": "f", "workers": 2, "is_python": True, "node": 1, "site": "a.py:1", "code": "a.py:9"}
    found = {
        "op_service": times(1, "hook", 10, rows=8, max_ns=12 * MS, cpu_ns=5 * MS),
        "queue": depths(0, 1),
        "cpu": [{"scope": "host", "t_ns": end * MS, "idle_ratio": 0.5} for end in ENDS],
    }
    return fed(("BatchOp", {}), ("MapOp", facts), **found | more)


STORED = "op_id consumer_id producers wait_share read_bytes in_bytes out_bytes source_rows epoch_batches batch_bytes"


def stored(**more):
    """A source of 10 ms, 5 of which it waits and 2 without a core, before a batch."""
    source = {"name": "F", "is_python": True, "source_rows": 160}
    timing = {"max_ns": 12 * MS, "cpu_ns": 3 * MS, "delay_ns": 2 * MS, "read_bytes": 900, "in_bytes": 0}
    service = times(1, "hook", 10, rows=8, out_bytes=1000, **timing)
    found = fed(("BatchOp", {}), ("GeneratorOp", source), **{"op_service": service, "queue": depths(0, 1)} | more)
    found["pipeline"][0] |= {"epoch_batches": 20, "batch_bytes": 8000}
    for row in found["fetch"]:
        row["depth"] = 0
    return found


def steps(*intervals_ms, kind="train"):
    return [
        {"step": number, "kind": kind, "start_ns": 100 * MS * number, "end_ns": 100 * MS * (number + 1)}
        | {"fp_ns": None if interval is None else int(100 * MS * number + interval * MS)}
        for number, interval in enumerate(intervals_ms)
    ]


def growing(capacity, workers):
    ops = ("BatchOp", workers, [0], 0.0), ("GeneratorOp", 1, [0], 0.0)
    return lasting(tables_of(*ops, capacity=capacity), 0)


def early(*later):
    """The source's calls, of which the first reads much."""
    changes = ({"read_bytes": 90_000}, *later)
    return stored(op_service=[row | more for row, more in zip(stored()["op_service"], changes, strict=False)])


def last_queue(*depths):
    return lasting(tables_of(("BatchOp", 1, [0], 0.0), ("MapOp", 1, [10], 0.9)), *depths)


JUDGED = tables_of(("BatchOp", 1, [0], 0.0), ("GeneratorOp", 2, [0], 0.0))


def host(*idle):
    return [{"t_ns": number, "scope": "host", "idle_ratio": ratio} for number, ratio in enumerate(idle)]


test_rows_of_diagnose_mindspore = answers("diagnose/mindspore", {
    "of several matches the one nearest the loop is named": ("op_id bottleneck is_named",
        tables_of(("BatchOp", 1, [0], 0.0), ("MapOp", 1, [0], 0.9), ("GeneratorOp", 1, [10], 0.9)),
        [(0, "queue", True), (1, "cpu", False), (2, "cpu", False)]),
    "batch gets no queue detail and inlined operators are looked through": ("op_type input_id queue_detail",
        tables_of(("BatchOp", 1, [0], 0.5), ("RenameOp", 1, None, 0.0), ("MapOp", 1, [0], 0.5),
                  ("ProjectOp", 1, None, 0.0), ("GeneratorOp", 1, [10], 0.5)),
        [("BatchOp", 2, None), ("RenameOp", 2, None), ("MapOp", 4, "inner"), ("ProjectOp", 4, None),
         ("GeneratorOp", None, None)]),
    "without queue samples there is no row": ("", tables_of(("BatchOp", 1, None, 0.0)), []),
    "nothing is said without batches": ("missing cpu_detail queue_detail bottleneck is_named", JUDGED | {"fetch": []},
        [("batches", None, None, None, False)] * 2),
    "nothing is said without cpu samples": ("missing cpu_detail queue_detail bottleneck is_named", JUDGED | {"cpu": []},
        [("cpu", None, None, None, False)] * 2),
})  # fmt: skip

test_rows_of_diagnose_autotune = answers("diagnose/autotune", {
    "operators are asked from the source on and some never": ("position op_id skipped is_changed input_ratio",
        lasting(tables_of(("BatchOp", 1, [0], 0.0), ("ShuffleOp", 1, [0], 0.0), ("RenameOp", 1, None, 0.0),
                          ("MapOp", 2, [0], 0.0), ("GeneratorOp", 1, [10], 1.0)), 0),
        [(1, 4, "generator", False, 1.0), (2, 3, None, True, 1.0), (3, 0, None, True, 0.0)]),
    "a last queue of three quarters is full enough": ("verdict last_queue_ratio is_changed", last_queue(3, 3),
        [("ok", 0.75, False)] * 2),
    "a last queue of less is not": ("verdict last_queue_ratio is_changed", last_queue(3, 2),
        [("bottleneck", 0.625, True)] * 2),
    "a last queue of unknown depth decides nothing": ("verdict last_queue_ratio is_changed", last_queue(None),
        [(None, None, False)] * 2),
    "no batch decides nothing": ("verdict last_queue_ratio is_changed", last_queue(), [(None, None, False)] * 2),
})  # fmt: skip

test_rows_of_diagnose_load = answers("diagnose/load", {
    "the loop is a stage and its pace is in every row": (loaded(),
        ("side batches wait_share loop_rate consumer_rate",
         [("iterator", 29, pytest.approx(0.6), pytest.approx(10), pytest.approx(25))] * 3),
        ("op_id source", [(-1, "loop"), (0, None), (1, "hook")])),
    "queues and the machine": ("op_id samples input_ratio output_ratio drop_ratio idle_share process_cores gil_share",
        loaded(), [(-1, 30, 0.25, None, 0.25, 0.5, None, None), (0, 30, None, 0.25, None, 0.5, None, None),
                   (1, None, None, None, None, 0.5, None, None)]),
    "nothing without a training pipeline": ("", loaded(pipeline=[KEY | {"pipeline_key": "a", "role": "eval"}]), []),
})  # fmt: skip

test_rows_of_diagnose_storage = answers("diagnose/storage", {
    "what a source waits for and what it hands on": (STORED, stored(),
        [(0, None, 1, None, None, None, None, None, 20, 8000),
         (1, 0, 0, pytest.approx(5 / 8), 900, 0, 1000, 160, 20, 8000)]),
    "a native source says how long it reads": ("wait_share read_bytes",
        stored(op_service=times(1, "log", 10, rows=8, io_ns=4 * MS)), [(None, None), (pytest.approx(0.4), None)]),
    "calls before the steady state do not count": ("read_bytes", early(*[{}] * 99), [(None,), (900,)]),
    "calls before the steady state count alone": ("read_bytes", early(), [(None,), (90_000,)]),
})  # fmt: skip

test_rows_of_diagnose_mindinsight_advice = answers("diagnose/mindinsight_advice", {
    "steps without a forward start say nothing": ("", {"step": steps(None, None, None)}, []),
    "evaluation does not count": ("", {"step": steps(9, 9, 9, kind="eval")}, []),
    "samples before the first batch do not count": ("samples value",
        {"cpu": host(1.0, 1.0, 0.0), "pipeline": [{"pipeline_id": 0, "role": "train"}],
         "fetch": [{"pipeline_id": 0, "fetch": 0, "start_ns": 1, "wait_ns": 1, "depth": 0, "side": "iterator"}]},
        [(1, 100.0)]),
    "a mean interval of half a ms without the first step": ("rule samples value advised", {"step": steps(90, 0.5, 0.5)},
        [("step_trace", 2, pytest.approx(0.5), False)]),
    "a mean interval above half a ms": ("rule samples value advised", {"step": steps(0, 0.5, 0.7)},
        [("step_trace", 2, pytest.approx(0.6), True)]),
    "an interval that is not known does not count": ("rule samples value advised", {"step": steps(0, None, 2)},
        [("step_trace", 1, pytest.approx(2.0), True)]),
    "a host busy for 80 percent": ("rule samples value advised", {"cpu": host(0.25, 0.15)}, [("cpu", 2, 80.0, False)]),
    "a host busy for more": ("rule samples value advised", {"cpu": host(0.0, 0.375)}, [("cpu", 2, 81.0, True)]),
    "a sample that is not known does not count": ("rule samples value advised", {"cpu": host(0.0, None)},
        [("cpu", 1, 100.0, True)]),
})  # fmt: skip


def test_the_longest_row_is_not_a_mean_of_the_intervals(ask):
    rows = [row | {"max_ns": 900 * MS if row["t_ns"] == 2000 * MS else 12 * MS} for row in loaded()["op_service"]]
    usual, longest = ask("diagnose/load", loaded(op_service=rows), give="longest_ns max_row_ns")[2]
    assert (usual < 50 * MS, longest) == (True, 900 * MS)


def test_hand_over_is_the_shortest_wait_with_batches_behind(ask):
    found = stored()
    assert ask("diagnose/storage", found, give="hand_over_ns")[-1] == (None,)
    for number, row in enumerate(found["fetch"][-5:]):
        row |= {"depth": 1, "wait_ns": (number + 2) * MS}
    assert ask("diagnose/storage", found, give="hand_over_ns")[-1] == (2 * MS,)


def chain(op, feed, cores=0.5):
    """An operator between a source whose queue holds `feed` of 10 and a batch."""
    return tables_of(("BatchOp", 1, [5], 0.5), op, ("GeneratorOp", 1, [feed], cores))


def unsampled():
    found = tables_of(("BatchOp", 1, [0], 0.9), ("MapOp", 1, [9], 0.0), ("GeneratorOp", 1, [9], 0.0))
    return lasting(found | {"queue": [row for row in found["queue"] if row["op_id"] != 1]}, 0)


MINDSPORE, AUTOTUNE = "diagnose/mindspore", "diagnose/autotune"
CPU, QUEUE = "cpu_detail bottleneck is_named", "queue_detail bottleneck"
ONE = {
    "numbers are percentages rounded to two decimals": (MINDSPORE,
        "queue_average_size queue_utilization_pct queue_empty_freq_pct avg_cpu_pct avg_cpu_pct_per_worker input_id",
        tables_of(("BatchOp", 2, [0, 0, 1], 0.5), ("GeneratorOp", 1, [10], 0.0)), 0, (0.33, 3.3, 66.67, 50.0, 25.0, 1)),
    "a busy worker": (MINDSPORE, CPU, chain(("MapOp", 1, [5], 0.76), 6), 1, ("high", "cpu", True)),
    "two workers that are not busy enough": (MINDSPORE, CPU, chain(("MapOp", 2, [5], 1.5), 6), 1, (None, None, False)),
    "two busy workers": (MINDSPORE, CPU, chain(("MapOp", 2, [5], 1.52), 6), 1, ("high", "cpu", True)),
    "an idle worker": (MINDSPORE, CPU, chain(("MapOp", 1, [5], 0.1), 6), 1, (None, None, False)),
    "two idle workers": (MINDSPORE, CPU, chain(("MapOp", 2, [5], 0.38), 6), 1, ("low", None, False)),
    "two workers that are not idle enough": (MINDSPORE, CPU, chain(("MapOp", 2, [5], 0.4), 6), 1, (None, None, False)),
    "an input fuller by more than 50": (MINDSPORE, QUEUE, chain(("MapOp", 1, [0], 0.0), 6), 1, ("inner", None)),
    "an input not fuller by 50": (MINDSPORE, QUEUE, chain(("MapOp", 1, [0], 0.0), 5), 1, (None, None)),
    "an empty input": (MINDSPORE, QUEUE, chain(("MapOp", 1, [5], 0.0), 0), 1, (None, "queue")),
    "an output fuller by more than 50": (MINDSPORE, QUEUE, chain(("MapOp", 1, [8], 0.0), 2), 1, (None, "queue")),
    "an input of 10 is not below 10": (MINDSPORE, QUEUE, chain(("MapOp", 1, [6], 0.0), 1), 1, (None, None)),
    "a source with a queue at half": (MINDSPORE, QUEUE,
        tables_of(("BatchOp", 1, [5], 0.5), ("GeneratorOp", 1, [5], 0.0)), 1, ("leaf", None)),
    "a source with a queue above half": (MINDSPORE, QUEUE,
        tables_of(("BatchOp", 1, [5], 0.5), ("GeneratorOp", 1, [6], 0.0)), 1, (None, None)),
    "shuffle is never judged": (MINDSPORE, "cpu_detail queue_detail bottleneck", chain(("ShuffleOp", 1, [0], 0.9), 10),
        1, (None, None, None)),
    "of several inputs the first counts": (MINDSPORE, "op_id input_id bottleneck",
        tables_of(("MapOp", 1, [10], 0.0), ("ZipOp", 1, None, 0.0), ("MapOp", 1, [10], 0.5),
                  ("GeneratorOp", 1, [0], 0.5), edges=[(1, 0), (2, 1), (3, 1)]), 0, (0, 2, None)),
    "a device queue that waits for the dataset": (MINDSPORE, "op_type queue_detail bottleneck",
        tables_of(("DeviceQueueOp", 1, None, 0.0), ("BatchOp", 1, [0, 0, 0, 1], 0.5)), 0,
        ("DeviceQueueOp", "device_queue", None)),
    "an input fuller than the output": (AUTOTUNE, CHANGES, lasting(chain(("MapOp", 1, [5], 0.5), 9, 0), 0), 1,
        (1, "queue", 3, None)),
    "an input not fuller by enough": (AUTOTUNE, CHANGES, lasting(chain(("MapOp", 1, [5], 0.5), 8, 0), 0), 1,
        (1, None, None, None)),
    "a busy worker gets another": (AUTOTUNE, CHANGES, lasting(chain(("MapOp", 1, [5], 0.8), 8, 0), 0), 1,
        (1, "cpu", 3, None)),
    "a worker that is not busy enough": (AUTOTUNE, CHANGES, lasting(chain(("MapOp", 1, [5], 0.75), 8, 0), 0), 1,
        (1, None, None, None)),
    "an idle worker with a full input": (AUTOTUNE, CHANGES, lasting(chain(("MapOp", 1, [5], 0.1), 9, 0), 0), 1,
        (1, "queue", 3, None)),
    "an idle worker with an empty input": (AUTOTUNE, CHANGES, lasting(chain(("MapOp", 1, [4], 0.3), 4, 0), 0), 1,
        (1, None, None, 14)),
    "a worker that is not idle": (AUTOTUNE, CHANGES, lasting(chain(("MapOp", 1, [4], 0.4), 4, 0), 0), 1,
        (1, None, None, None)),
    "an output fuller than the input": (AUTOTUNE, CHANGES, lasting(chain(("MapOp", 1, [9], 0.3), 5, 0), 0), 1,
        (1, None, None, 14)),
    "an output not fuller by enough": (AUTOTUNE, CHANGES, lasting(chain(("MapOp", 1, [8], 0.3), 5, 0), 0), 1,
        (1, None, None, None)),
    "a reader without random access is left alone": (AUTOTUNE, "op_id skipped is_changed",
        lasting(tables_of(("BatchOp", 1, [5], 0.5), ("TFReaderOp", 4, [0], 4.0)), 0), 0, (1, "non_mappable", False)),
    "the last operator has a full input": (AUTOTUNE, "input_ratio workers_reason new_workers",
        lasting(tables_of(("BatchOp", 1, [5], 0.5), ("ImageFolderOp", 8, [6], 4.0)), 0), 0, (1.0, "queue", 10)),
    "a queue grows to 128 at most": (AUTOTUNE, "new_workers new_prefetch", growing(126, 1), 1, (None, 128)),
    "a queue grows to the workers at least": (AUTOTUNE, "new_workers new_prefetch", growing(1, 9), 1, (None, 9)),
    "a queue grows by 4": (AUTOTUNE, "new_workers new_prefetch", growing(16, 1), 1, (None, 20)),
    "without cpu samples only the queues decide": (AUTOTUNE, f"{CHANGES} cpu_pct_per_worker",
        lasting(tables_of(("BatchOp", 1, [0], None), ("MapOp", 1, [9], None), ("GeneratorOp", 1, [0], None)), 0),
        slice(1, None), [(1, None, None, None, None), (0, "queue", 3, None, None)]),
    "a queue without samples decides nothing": (AUTOTUNE, f"{CHANGES} input_ratio output_ratio", unsampled(),
        slice(1, None), [(1, None, None, None, 0.9, None), (0, "cpu", 3, None, None, 0.0)]),
    "a timed operator with its capacity": ("diagnose/load",
        "op_id op_type name workers capacity is_python node site code source rows_per_batch work_ns row_ns rate",
        loaded(), 2, (1, "MapOp", "f", 2, 4, True, 1, "a.py:1", "a.py:9", "hook", 8.0, 80.0 * MS, 10.0 * MS, 25.0)),
    "utilisation and computing": ("diagnose/load", "utilisation cpu_share cores python_cores longest_ns timed_batches",
        loaded(), 2, (pytest.approx(0.4), 0.5, pytest.approx(0.4), pytest.approx(0.4), 12.0 * MS, 30)),
    "the loop is shown without batches": ("diagnose/load", "op_id rate utilisation loop_rate wait_share",
        loaded(fetch=[]), 0, (-1, None, None, None, None)),
    "operators are shown without batches": ("diagnose/load", "op_id rate utilisation loop_rate wait_share",
        loaded(fetch=[]), 2, (1, 25.0, None, None, None)),
}  # fmt: skip


@pytest.mark.parametrize(("query", "columns", "tables", "place", "expected"), ONE.values(), ids=ONE)
def test_what_is_said_of_one_operator(ask, query, columns, tables, place, expected):
    assert ask(query, tables, give=columns)[place] == expected
