"""From records to the rule that names a stage. Batches come every 100 ms; times are the work of a batch in ms."""

import pytest
from table_rows import MS, depths, fed, times
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


def gil(share):
    return {"scope": "gil", "user_ratio": share, "sys_ratio": 0.0}


def using(op, cores):
    return {"scope": "pipeline_op", "pipeline_id": 0, "op_id": op, "user_ratio": cores, "sys_ratio": 0.0}


def test_a_loop_that_hardly_waits_limits_itself(ask):
    tables = run(wait=4, works={1: 90}, fills={0: 4, 1: 4, 2: 4})
    assert first(ask, tables) == (-1, "consumer", None, "consumer_bound")


def test_a_busy_loop_that_waits_a_little_limits_itself_if_no_operator_is_as_busy(ask):
    tables = run(wait=15, works={1: 50}, fills={0: 2, 1: 2, 2: 4})
    assert first(ask, tables) == (-1, "consumer", None, "consumer_bound")


def test_the_operator_that_works_all_the_time_limits(ask):
    tables = run(works={1: 99, 2: 20}, fills={0: 0, 1: 0, 2: 4})
    assert first(ask, tables, "op_id op_type rule verdict doubts") == (1, "MapOp", "utilisation", "input_bound", [])
    assert first(ask, tables, "utilisation margin drop_ratio wait_share") == pytest.approx((0.99, 0.59, 1.0, 0.6))


def test_rows_are_in_the_order_of_utilisation(ask):
    tables = run(works={0: 10, 1: 99, 2: 20}, fills={0: 0, 1: 0, 2: 4})
    assert [row["op_id"] for row in stages(ask, tables)] == [1, -1, 2, 0]


@pytest.mark.parametrize(("busy", "kind"), [(80, "cpu"), (10, "wait"), (None, None)])
def test_the_kind_is_from_the_time_its_thread_computed(ask, busy, kind):
    tables = run(works={1: (99, busy)}, fills={0: 0, 1: 0, 2: 4})
    assert first(ask, tables, "op_id kind") == (1, kind)


GIL = {"op1": {"is_python": True}, "op2": {"is_python": True}, "op0": {"is_python": False}}


@pytest.mark.parametrize(("share", "expected"), [(0.9, (2, "gil", "gil", "input_bound")), (0.1, (1, "utilisation"))])
def test_another_operator_that_holds_the_lock_limits(ask, share, expected):
    tables = run(works={1: (99, 10), 2: (85, 85)}, fills={0: 0, 1: 0, 2: 4}, cpu=[gil(share), using(2, 1.5)], **GIL)
    assert first(ask, tables)[: len(expected)] == expected


def test_without_measured_lock_python_that_keeps_one_core_busy_holds_it(ask):
    tables = run(works={1: (99, 10), 2: (85, 85)}, fills={0: 0, 1: 0, 2: 4}, **GIL)
    assert first(ask, tables, "op_id rule doubts") == (2, "gil", ["indirect"])


def test_processes_do_not_share_a_lock(ask):
    apart = GIL | {"op2": {"is_python": True, "uses_processes": True}}
    tables = run(works={1: (99, 10), 2: (85, 85)}, fills={0: 0, 1: 0, 2: 4}, cpu=[gil(0.9)], **apart)
    assert first(ask, tables, "op_id rule") == (1, "utilisation")


def test_the_largest_drop_names_an_operator_without_times(ask):
    tables = run(works={1: 20}, fills={0: 0, 1: 0, 2: 2})
    assert first(ask, tables, "op_id rule verdict doubts") == (
        1,
        "weak",
        "input_bound",
        ["not_busy", "close", "none_busy"],
    )
    tables = run(works={1: 20}, fills={0: 0, 1: 0, 2: 0})
    assert first(ask, tables, "op_id rule verdict doubts") == (2, "untimed", "input_bound", [])


@pytest.mark.parametrize(
    ("works", "fill"), [({}, 0), ({1: 60}, 0), ({1: 20}, 1)], ids=["queues alone", "a busy stage", "a smaller drop"]
)
def test_by_elimination_only_when_the_others_are_known_not_to_be_busy(ask, works, fill):
    tables = run(works=works, fills={0: 0, 1: 0, 2: 0} | {1: fill, 2: fill})
    assert first(ask, tables, "op_id rule doubts") == (2, "untimed", ["indirect"])


@pytest.mark.parametrize(("cores", "kind"), [(0.9, "cpu"), (0.1, "wait")])
def test_the_kind_of_an_untimed_stage_is_from_its_threads(ask, cores, kind):
    reader = {"op2": {"is_python": False}}
    tables = run(works={1: 20}, fills={0: 0, 1: 0, 2: 0}, cpu=[using(2, cores)], **reader)
    assert first(ask, tables, "op_id kind") == (2, kind)


def test_a_stage_that_is_hardly_used_does_not_contend(ask):
    tables = run(works={0: 65, 1: 5}, fills={0: 0, 1: 2, 2: 4}, cpu=[using(1, 0.7)])
    assert first(ask, tables, "op_id rule") == (0, "weak")


@pytest.mark.parametrize("wait", [2, 10, 20])
@pytest.mark.parametrize(("share", "op", "rule"), [(0.7, 2, "gil"), (0.42, 2, "gil"), (0.2, -1, "consumer")])
def test_a_loop_whose_lock_the_pipeline_holds_is_not_all_its_own(ask, wait, share, op, rule):
    tables = run(
        wait=wait, works={1: 10, 2: (70, 70)}, fills={0: 3, 1: 3, 2: 4}, cpu=[gil(share), using(2, 0.7)], **GIL
    )
    assert first(ask, tables, "op_id rule") == (op, rule)
    if rule == "gil":
        assert first(ask, tables, "verdict kind") == ("balanced", "gil")


@pytest.mark.parametrize(("share", "doubtful"), [(0.5, True), (0.26, True), (0.2, False)])
def test_a_lock_that_is_often_held_is_a_doubt_about_the_loop(ask, share, doubtful):
    tables = run(wait=10, works={1: 80, 2: (50, 50)}, fills={0: 3, 1: 3, 2: 4}, cpu=[gil(share), using(2, 0.5)], **GIL)
    assert first(ask, tables, "op_id rule") == (-1, "consumer")
    assert ("holds_lock" in first(ask, tables, "doubts")[0]) == doubtful
    assert first(ask, tables, "holds_lock") == (doubtful,)
    order = [row["op_id"] for row in stages(ask, tables)]
    assert order[:2] == [-1, 2 if doubtful else 1]


def test_a_loop_that_does_not_wait_is_not_doubted_for_a_close_stage(ask):
    tables = run(wait=2, works={1: 92}, fills={0: 2, 1: 2, 2: 4})
    assert first(ask, tables, "op_id rule doubts") == (-1, "consumer", [])


def test_no_operator_without_times_is_blamed_while_a_timed_one_is_busy(ask):
    tables = run(works={1: 95}, fills={0: 0, 1: 0, 2: 0})
    assert first(ask, tables, "op_id rule doubts") == (1, "utilisation", ["queues_elsewhere"])


@pytest.mark.parametrize(("wait", "work", "op"), [(10, 92, 1), (10, 85, -1)])
def test_two_that_are_as_busy_are_balanced(ask, wait, work, op):
    tables = run(wait=wait, works={1: work}, fills={0: 2, 1: 2, 2: 4})
    assert first(ask, tables, "op_id verdict") == (op, "balanced")


def test_when_nobody_is_busy_the_one_that_computes_most_contends(ask):
    tables = run(works={0: 5, 1: 30, 2: 60}, fills={0: 0, 1: 2, 2: 4}, cpu=[using(1, 0.7), using(2, 0.1)])
    assert first(ask, tables, "op_id rule") == (1, "contention")
    assert "none_busy" in first(ask, tables, "doubts")[0]


def test_queues_and_times_that_agree_come_before_the_one_that_computes_most(ask):
    tables = run(works={0: 5, 1: 60, 2: 30}, fills={0: 0, 1: 0, 2: 4}, cpu=[using(0, 0.7), using(1, 0.1)])
    assert first(ask, tables, "op_id rule") == (1, "weak")


def test_when_there_is_no_better_sign_the_busiest_is_named_weakly(ask):
    tables = run(works={0: 5, 1: 30, 2: 60}, fills={0: 0, 1: 2, 2: 4})
    assert first(ask, tables, "op_id rule") == (2, "weak")


@pytest.mark.parametrize(
    ("idle", "process", "cores", "kind"),
    [(0.05, 2.0, 8.0, "host_saturated"), (0.05, 7.0, 8.0, "cpu"), (0.5, 2.0, 8.0, "cpu"), (0.05, 2.0, 0.0, "cpu")],
    ids=["others", "itself", "idle", "cores not known"],
)
def test_a_machine_that_others_keep_busy(ask, idle, process, cores, kind):
    host = {"scope": "host", "idle_ratio": idle, "user_ratio": 1 - idle, "sys_ratio": 0.0}
    own = {"scope": "process", "name": "trainer", "user_ratio": process, "sys_ratio": 0.0}
    tables = run(works={1: (99, 80)}, fills={0: 0, 1: 0, 2: 4}, cpu=[host, own])
    op, found, doubts = first(ask, tables, "op_id kind doubts", cores=cores)
    assert (op, found) == (1, kind)
    assert ("other_load" in doubts) == (kind == "host_saturated")


def test_the_queue_behind_a_part_of_a_concatenation_says_nothing(ask):
    ops = ("BatchOp", "ConcatOp", "GeneratorOp", "GeneratorOp")
    inner = {"op1": {"inlined": True, "capacity": None}}
    fills = {0: 0, 2: 0, 3: 4}
    edges = [(1, 0), (2, 1), (3, 1)]
    concat = first(ask, run(ops, fills=fills, edges=edges, **inner), "op_id rule")
    assert concat != (2, "untimed")
    ops = ("BatchOp", "ZipOp", "GeneratorOp", "GeneratorOp")
    assert first(ask, run(ops, fills=fills, edges=edges, **inner), "op_id rule") == (2, "untimed")


def test_few_batches_are_a_doubt(ask):
    tables = run(batches=15, works={1: 99}, fills={0: 0, 1: 0, 2: 4})
    assert first(ask, tables, "op_id doubts") == (1, ["few_batches"])


def test_no_queue_samples_are_a_doubt(ask):
    assert first(ask, run(works={1: 99}), "op_id doubts") == (1, ["no_queues"])


def test_depths_that_were_not_read_are_no_samples(ask):
    tables = run(works={1: 99}, fills={0: None, 1: None, 2: None})
    assert first(ask, tables, "op_id rule drop_ratio") == (1, "utilisation", None)


def test_edges_in_a_circle_end(ask):
    tables = run(works={1: 99, 2: 20}, fills={0: 0, 1: 0, 2: 4}, edges=[(1, 0), (2, 1), (1, 2)])
    assert first(ask, tables, "op_id rule") == (1, "utilisation")


def test_a_pipeline_that_is_not_the_trainings_is_not_judged(ask):
    tables = run(works={1: 99})
    tables["pipeline"][0]["role"] = "eval"
    assert first(ask, tables) is None


@pytest.mark.parametrize("missing", ["pipeline", "fetch"])
def test_nothing_is_said_without(ask, missing):
    tables = run(works={1: 99}, fills={0: 0, 1: 0, 2: 4})
    assert first(ask, {name: rows for name, rows in tables.items() if name != missing}) is None
