"""From records to the rule that names a stage. Batches come every 100 ms; times are the work of a batch in ms."""

import pytest
from query_cases import row
from table_rows import KEY, MS, depths, fed, times
from typed_rows import of_dicts

from pipeprof.verdict import decision

decide = of_dicts(decision.decide)
CHAIN = ("BatchOp", "MapOp", "GeneratorOp")
GIVE = "op_id rule kind verdict"


def run(ops=CHAIN, *, wait=60, works=None, fills=None, batches=60, edges=None, cpu=(), **facts):
    """A chain of operators, the sink first, and a loop that waits `wait` of every 100 ms.

    `works`: {op: ms of work for a batch, or (ms, ms of it computing)}; `fills`: {op: depth of 4, or None};
    `facts`: {opN: columns of its pipeline_op}; `cpu`: rows of the cpu table.
    """
    ends = range(100, 100 * batches + 1, 100)
    service = []
    for op, work in (works or {}).items():
        whole, busy = work if isinstance(work, tuple) else (work, None)
        service += times(op, "hook", whole, ends, cpu_ns=None if busy is None else busy * MS)
    more = {
        "queue": [row for op, depth in (fills or {}).items() for row in depths(op, depth, ends)],
        "op_service": service,
        "cpu": [{"t_ns": end * MS, **row} for row in cpu for end in ends],
    }
    chain = ((kind, facts.get(f"op{number}", {})) for number, kind in enumerate(ops))
    return fed(*chain, edges=edges, wait=wait, ends=ends, **more)


def stages(ask, tables, cores=8.0):
    """The decision, one dict per stage, the one that limits first; `doubts` as codes."""
    rows = [row for row in ask("diagnose/load", tables) if row["wait_share"] is not None]
    if not rows:
        return []
    found = decide(rows, cores)
    shared = {"rule": found.rule.code, "verdict": found.verdict, "holds_lock": found.holds_lock,
              "wait_share": found.facts.wait_share, "margin": found.facts.margin,
              "doubts": [doubt["code"] for doubt in found.doubts]}  # fmt: skip
    return [
        shared | {name: getattr(stage, name) for name in ("op_id", "op_type", "utilisation", "drop_ratio")}
        | {"kind": kind}
        for stage, kind in zip(found.stages, found.kinds, strict=True)
    ]  # fmt: skip


def first(ask, tables, give=GIVE, cores=8.0):
    found = stages(ask, tables, cores)
    return tuple(found[0][column] for column in give.split()) if found else None


gil = row("user_ratio", scope="gil", sys_ratio=0.0)
using = row("op_id user_ratio", scope="pipeline_op", pipeline_id=0, sys_ratio=0.0)


def test_a_loop_that_hardly_waits_limits_itself(ask):
    tables = run(wait=4, works={1: 90}, fills={0: 4, 1: 4, 2: 4})
    assert first(ask, tables) == (-1, "consumer", None, "consumer_bound")


def test_the_largest_drop_names_an_operator_without_times(ask):
    doubts = ["not_busy", "close", "none_busy"]
    weak = run(works={1: 20}, fills={0: 0, 1: 0, 2: 2})
    assert first(ask, weak, "op_id rule verdict doubts") == (1, "weak", "input_bound", doubts)
    untimed = run(works={1: 20}, fills={0: 0, 1: 0, 2: 0})
    assert first(ask, untimed, "op_id rule verdict doubts") == (2, "untimed", "input_bound", [])


LATE = {0: 0, 1: 0, 2: 4}  # the queues in front of the loop are empty, the source's is full
EMPTY = {0: 0, 1: 0, 2: 0}
GIL = {"op1": {"is_python": True}, "op2": {"is_python": True}, "op0": {"is_python": False}}
APART = GIL | {"op2": {"is_python": True, "uses_processes": True}}
INNER = {"op1": {"inlined": True, "capacity": None}}
OTHERS = {"op2": {"is_python": False}}


def two(kind):
    """Two sources of one operator, the first of which is late."""
    ops = ("BatchOp", kind, "GeneratorOp", "GeneratorOp")
    return run(ops, fills={0: 0, 2: 0, 3: 4}, edges=[(1, 0), (2, 1), (3, 1)], **INNER)


RULES = {
    "a busy loop that waits a little limits itself if no operator is as busy": (
        run(wait=15, works={1: 50}, fills={0: 2, 1: 2, 2: 4}), GIVE, (-1, "consumer", None, "consumer_bound")),
    "the operator that works all the time limits": (run(works={1: 99, 2: 20}, fills=LATE),
        "op_id op_type rule verdict doubts", (1, "MapOp", "utilisation", "input_bound", [])),
    "how far it is from the next": (run(works={1: 99, 2: 20}, fills=LATE), "utilisation margin drop_ratio wait_share",
        pytest.approx((0.99, 0.59, 1.0, 0.6))),
    "a thread that computed is of the cpu": (run(works={1: (99, 80)}, fills=LATE), "op_id kind", (1, "cpu")),
    "a thread that did not compute waited": (run(works={1: (99, 10)}, fills=LATE), "op_id kind", (1, "wait")),
    "a thread of which nobody knows has no kind": (run(works={1: (99, None)}, fills=LATE), "op_id kind", (1, None)),
    "another operator that holds the lock limits": (
        run(works={1: (99, 10), 2: (85, 85)}, fills=LATE, cpu=[gil(0.9), using(2, 1.5)], **GIL), GIVE,
        (2, "gil", "gil", "input_bound")),
    "another operator does not limit while the lock is free": (
        run(works={1: (99, 10), 2: (85, 85)}, fills=LATE, cpu=[gil(0.1), using(2, 1.5)], **GIL), "op_id rule",
        (1, "utilisation")),
    "without measured lock python that keeps one core busy holds it": (
        run(works={1: (99, 10), 2: (85, 85)}, fills=LATE, **GIL), "op_id rule doubts", (2, "gil", ["indirect"])),
    "processes do not share a lock": (run(works={1: (99, 10), 2: (85, 85)}, fills=LATE, cpu=[gil(0.9)], **APART),
        "op_id rule", (1, "utilisation")),
    "by elimination of queues alone": (run(works={}, fills=EMPTY), "op_id rule doubts", (2, "untimed", ["indirect"])),
    "by elimination of a busy stage": (run(works={1: 60}, fills=EMPTY), "op_id rule doubts",
        (2, "untimed", ["indirect"])),
    "by elimination of a smaller drop": (run(works={1: 20}, fills={0: 0, 1: 1, 2: 1}), "op_id rule doubts",
        (2, "untimed", ["indirect"])),
    "an untimed stage whose threads compute is of the cpu": (
        run(works={1: 20}, fills=EMPTY, cpu=[using(2, 0.9)], **OTHERS), "op_id kind", (2, "cpu")),
    "an untimed stage whose threads do not compute waits": (
        run(works={1: 20}, fills=EMPTY, cpu=[using(2, 0.1)], **OTHERS), "op_id kind", (2, "wait")),
    "a stage that is hardly used does not contend": (
        run(works={0: 65, 1: 5}, fills={0: 0, 1: 2, 2: 4}, cpu=[using(1, 0.7)]), "op_id rule", (0, "weak")),
    "a loop that does not wait is not doubted for a close stage": (run(wait=2, works={1: 92}, fills={0: 2, 1: 2, 2: 4}),
        "op_id rule doubts", (-1, "consumer", [])),
    "no operator without times is blamed while a timed one is busy": (run(works={1: 95}, fills=EMPTY),
        "op_id rule doubts", (1, "utilisation", ["queues_elsewhere"])),
    "two that are as busy are balanced": (run(wait=10, works={1: 92}, fills={0: 2, 1: 2, 2: 4}), "op_id verdict",
        (1, "balanced")),
    "a loop that is a little busier is balanced with it": (run(wait=10, works={1: 85}, fills={0: 2, 1: 2, 2: 4}),
        "op_id verdict", (-1, "balanced")),
    "queues and times that agree come before the one that computes most": (
        run(works={0: 5, 1: 60, 2: 30}, fills=LATE, cpu=[using(0, 0.7), using(1, 0.1)]), "op_id rule", (1, "weak")),
    "when there is no better sign the busiest is named weakly": (
        run(works={0: 5, 1: 30, 2: 60}, fills={0: 0, 1: 2, 2: 4}), "op_id rule", (2, "weak")),
    "the queue behind a part of a zip says what is late": (two("ZipOp"), "op_id rule", (2, "untimed")),
    "few batches are a doubt": (run(batches=15, works={1: 99}, fills=LATE), "op_id doubts", (1, ["few_batches"])),
    "no queue samples are a doubt": (run(works={1: 99}), "op_id doubts", (1, ["no_queues"])),
    "depths that were not read are no samples": (run(works={1: 99}, fills={0: None, 1: None, 2: None}),
        "op_id rule drop_ratio", (1, "utilisation", None)),
    "edges in a circle end": (run(works={1: 99, 2: 20}, fills=LATE, edges=[(1, 0), (2, 1), (1, 2)]), "op_id rule",
        (1, "utilisation")),
}  # fmt: skip


@pytest.mark.parametrize(("tables", "give", "expected"), RULES.values(), ids=RULES)
def test_what_limits_by_which_rule(ask, tables, give, expected):
    assert first(ask, tables, give) == expected


def test_rows_are_in_the_order_of_utilisation(ask):
    assert [row["op_id"] for row in stages(ask, run(works={0: 10, 1: 99, 2: 20}, fills=LATE))] == [1, -1, 2, 0]


@pytest.mark.parametrize("wait", [2, 10, 20])
@pytest.mark.parametrize(("share", "op", "rule"), [(0.7, 2, "gil"), (0.42, 2, "gil"), (0.2, -1, "consumer")])
def test_a_loop_whose_lock_the_pipeline_holds_is_not_all_its_own(ask, wait, share, op, rule):
    held = {"works": {1: 10, 2: (70, 70)}, "fills": {0: 3, 1: 3, 2: 4}, "cpu": [gil(share), using(2, 0.7)]}
    tables = run(wait=wait, **held, **GIL)
    assert first(ask, tables, "op_id rule") == (op, rule)
    if rule == "gil":
        assert first(ask, tables, "verdict kind") == ("balanced", "gil")


@pytest.mark.parametrize(("share", "doubtful"), [(0.5, True), (0.26, True), (0.2, False)])
def test_a_lock_that_is_often_held_is_a_doubt_about_the_loop(ask, share, doubtful):
    tables = run(wait=10, works={1: 80, 2: (50, 50)}, fills={0: 3, 1: 3, 2: 4}, cpu=[gil(share), using(2, 0.5)], **GIL)
    op, rule, doubts, holds_lock = first(ask, tables, "op_id rule doubts holds_lock")
    assert (op, rule, "holds_lock" in doubts, holds_lock) == (-1, "consumer", doubtful, doubtful)
    assert [row["op_id"] for row in stages(ask, tables)][:2] == [-1, 2 if doubtful else 1]


def test_when_nobody_is_busy_the_one_that_computes_most_contends(ask):
    tables = run(works={0: 5, 1: 30, 2: 60}, fills={0: 0, 1: 2, 2: 4}, cpu=[using(1, 0.7), using(2, 0.1)])
    assert first(ask, tables, "op_id rule") == (1, "contention")
    assert "none_busy" in first(ask, tables, "doubts")[0]


@pytest.mark.parametrize(
    ("idle", "process", "cores", "kind"),
    [(0.05, 2.0, 8.0, "host_saturated"), (0.05, 7.0, 8.0, "cpu"), (0.5, 2.0, 8.0, "cpu"), (0.05, 2.0, 0.0, "cpu")],
    ids=["others", "itself", "idle", "cores not known"],
)
def test_a_machine_that_others_keep_busy(ask, idle, process, cores, kind):
    host = {"scope": "host", "idle_ratio": idle, "user_ratio": 1 - idle, "sys_ratio": 0.0}
    own = {"scope": "process", "name": "trainer", "user_ratio": process, "sys_ratio": 0.0}
    op, found, doubts = first(ask, run(works={1: (99, 80)}, fills=LATE, cpu=[host, own]), "op_id kind doubts", cores)
    assert (op, found, "other_load" in doubts) == (1, kind, kind == "host_saturated")


def test_the_queue_behind_a_part_of_a_concatenation_says_nothing(ask):
    assert first(ask, two("ConcatOp"), "op_id rule") != (2, "untimed")


@pytest.mark.parametrize("change", [{"pipeline": []}, {"fetch": []}, {"pipeline": [KEY | {"role": "eval"}]}])
def test_nothing_is_said_without_batches_of_a_training_pipeline(ask, change):
    assert first(ask, run(works={1: 99}, fills=LATE) | change) is None
