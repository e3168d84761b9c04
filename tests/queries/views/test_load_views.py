"""The views between the records and diagnose/load. Batches come every 100 ms, so the window is from 1075 ms on."""

import pytest
from query_cases import looked, rows
from table_rows import ENDS, KEY, MS, depths, fed, step, times

from pipeprof.verdict.decision import with_kinds

SERVICE = "SELECT source, work_ns, log_work_ns, hook_work_ns, rows_per_batch, cpu_share FROM load_service"
# Calls that ran ahead: 40 for each batch of 8 rows, as in a loop that ends early.
AHEAD = times(1, "hook", 1, ENDS[:5], rows=40) + times(0, "hook", 1, ENDS[:5], rows=3)
ROOM = "SELECT cores, idle_share, rank_cores, job_cores, delay_share FROM load_room"
USED = {"main": (300, 100), "mindspore_thread": (200, 150), "worker": (400, None), "launcher": (30, None),
        "other_rank": (500, None), "profiler": (20, None), "neighbour": (50, None)}  # fmt: skip


def account(*intervals):
    """Intervals of a rank that may use two cores, (begin, end, idle, part -> (CPU, waiting)) in ms, as two tables."""
    uses, room = [], []
    for begin, end, *others in intervals:
        idle, used = others or (500, USED)
        at = {"start_ns": begin * MS, "end_ns": end * MS}
        uses += [
            at | {"part": part, "cpu_ns": cpu * MS, "wait_ns": None if wait is None else wait * MS}
            for part, (cpu, wait) in used.items()
        ]
        room.append(at | {"cores": 2.0, "idle_ns": idle * MS})
    return {"cpu_use": uses, "cpu_room": room}


def threads_beside(processes):
    service = times(0, "hook", 10, cpu_ns=12 * MS, delay_ns=5 * MS)
    return fed(("MapOp", {"workers": 2, "uses_processes": processes}), op_service=service)


def slept(**facts):
    return fed(("GeneratorOp", facts), op_service=times(0, "hook", 1))


def in_process(**facts):
    return fed(("MapOp", facts), op_service=times(0, "hook", 80, cpu_ns=50 * MS))


def too_slow(capacity, rows):
    ops = [("BatchOp", {"capacity": capacity}), ("MapOp", {"capacity": capacity})]
    return fed(*ops, op_service=times(1, "log", 400 / rows, ENDS[:4], rows=rows))


LAW = "SELECT law_row_ns FROM pipeline_load WHERE op_id = 0"
CORES = "SELECT python_cores FROM pipeline_load ORDER BY op_id"
OWN = "SELECT round(busy, 3) FROM pipeline_load WHERE op_id >= 0 ORDER BY op_id"
CUT = "SELECT rate, overrun, work_ns FROM pipeline_load WHERE op_id = 1"
# An evaluation of two steps, in which the training's pipeline stands still with full queues.
EVALUATION = [step(n, at * MS, (at + 500) * MS, "eval", kind_step=n - 20) for n, at in ((20, 2000), (21, 2500))]
MEANWHILE = range(2001, 3001)
PACE = "SELECT side, batches, span_ns, wait_ns, rate, consumer_rate FROM pipeline_pace"


TURN = "SELECT op_type, chained, round(utilisation, 3), cores, python_cores FROM pipeline_load WHERE op_id >= 0 ORDER BY op_id"
STAGES = {"inlined": True, "is_python": True, "capacity": None}


def loader(workers, ends=ENDS):
    """40 ms of rows and 10 ms of what collates them for each batch, of which the loop takes one in 100 ms."""
    facts = STAGES | {"workers": workers or 1, "uses_processes": workers > 0}
    alone = STAGES | {"uses_processes": False}
    work = [(0, 10), (1, 40), (2, 1)]
    services = [row for op, cost in work for row in times(op, "hook", cost, ends, cpu_ns=MS)]
    return fed(("Collate", facts), ("Dataset", facts), ("Sampler", alone), op_service=services)


# A loop that ended at 4 s, behind which MindSpore works off the rest of the epoch, faster than before.
LATE = [
    KEY | {"op_id": 0, "t_ns": end * MS, "rows": 500, "batches": 0, "source": "hook", "avg_ns": MS}
    for end in (4500, 5000)
]

test_rows_of_load_views = looked({
    "load op knows sources the sink and what is above": (
        "SELECT op_id, is_leaf, is_sink, below_concat, below_filter FROM load_op ORDER BY op_id",
        fed(("BatchOp", {}), ("ConcatOp", {"inlined": True}), ("MapOp", {}), ("TFReaderOp", {})),
        [(-1, False, False, False, False), (0, False, True, False, False), (1, False, False, False, False),
         (2, False, False, True, False), (3, True, False, True, False)]),
    "load op ends in a circle": ("SELECT op_id FROM load_op ORDER BY op_id",
        fed(("BatchOp", {}), ("MapOp", {}), edges=[(1, 0), (0, 1)]), [(-1,), (0,), (1,)]),
    "pipeline below names every operator on the way to the loop": (
        "SELECT op_id, consumer_id, consumer_type, links FROM pipeline_below ORDER BY op_id, links",
        fed(("BatchOp", {}), ("ZipOp", {}), ("MapOp", {}), ("MapOp", {}), edges=[(1, 0), (2, 1), (3, 1)]),
        [(1, 0, "BatchOp", 1), (2, 1, "ZipOp", 1), (2, 0, "BatchOp", 2), (3, 1, "ZipOp", 1), (3, 0, "BatchOp", 2)]),
    "load service computing is weighed and at most all": ("SELECT cpu_share FROM load_service",
        fed(("MapOp", {}), op_service=times(0, "hook", 10, cpu_ns=12 * MS)), [(1.0,)]),
    "load service leaves out time without a core": ("SELECT cpu_share, hook_cpu_ns, work_ns FROM load_service",
        fed(("MapOp", {}), op_service=times(0, "hook", 40, rows=2, cpu_ns=9 * MS, delay_ns=30 * MS)),
        [(0.9, 18.0 * MS, 80.0 * MS)]),
    "load service without its delay counts all time": ("SELECT cpu_share FROM load_service",
        fed(("MapOp", {}), op_service=times(0, "hook", 40, cpu_ns=10 * MS)), [(0.25,)]),
    "load fill looks from the window on": (
        "SELECT op_id, samples, input_ratio, output_ratio FROM load_fill ORDER BY op_id",
        fed(("BatchOp", {}), ("MapOp", {}), queue=depths(1, 4, ENDS[:9]) + depths(1, 1, ENDS[9:])),
        [(0, 30, 0.25, None), (1, 30, None, 0.25)]),
    "load cpu is the mean of user and system time": ("SELECT op_id, cores FROM load_cpu",
        fed(("BatchOp", {}), cpu=[KEY | {"scope": "pipeline_op", "op_id": 0, "sys_ratio": 0.25}
                                  | {"t_ns": end * MS, "user_ratio": 0.0 if end < 1000 else 0.5} for end in ENDS]),
        [(0, 0.75)]),
    "pipeline window begins after a quarter": ("SELECT first_ns, from_ns, to_ns, batches FROM pipeline_window",
        fed(("BatchOp", {})), [(100 * MS, 1075 * MS, 4000 * MS, 40)]),
    "pipeline window without batches is that of the samples": (
        "SELECT first_ns, from_ns, to_ns, batches FROM pipeline_window",
        fed(("BatchOp", {}), queue=[KEY | {"op_id": 0, "t_ns": at, "depth": 1, "capacity": 4} for at in (100, 500)],
            fetch=[]), [(100, 200, 500, 0)]),
    "pipeline pace without steps is from batch to batch": (PACE, fed(("BatchOp", {})),
        [("iterator", 29, 2900 * MS, 29 * 60 * MS, pytest.approx(10), pytest.approx(25))]),
    "pipeline load rates by workers and leaves out what is not measured": (
        "SELECT op_id, rate, utilisation FROM pipeline_load ORDER BY op_id",
        fed(("BatchOp", {}), ("MapOp", {"workers": 4}), ("RenameOp", {"inlined": True}), ("GeneratorOp", {}),
            op_service=times(1, "log", 10, rows=8) + times(3, "hook", 2, rows=8)),
        [(-1, pytest.approx(25), pytest.approx(0.4)), (0, None, None), (1, pytest.approx(50), pytest.approx(0.2)),
         (3, pytest.approx(62.5), pytest.approx(0.16))]),
    "computing is not known without cpu times": ("SELECT cpu_share FROM pipeline_load WHERE op_id = 0",
        fed(("MapOp", {}), op_service=times(0, "log", 10)), [(None,)]),
    # 160 rows/s for each thread, 32 rows a batch
    "a source with threads is bounded by its masters sleeps": ("SELECT rate FROM pipeline_load WHERE op_id = 0",
        fed(("GeneratorOp", {"workers": 2}), op_service=times(0, "hook", 0.1, rows=32)), [(pytest.approx(10),)]),
    "a stage of a loop that makes its own batches is as busy as its part of the turn": (TURN, loader(0),
        [("Collate", True, 0.25, None, 0.0), ("Dataset", True, 1.0, None, 0.0), ("Sampler", True, 0.025, None, 0.0)]),
    "calls after the last batch are of none": ("SELECT rows_per_batch, work_ns FROM load_service",
        fed(("FilterOp", {}), op_service=times(0, "hook", 10, rows=8) + LATE), [(8.0, 80.0 * MS)]),
    "the calls of a short loop count although they are told after it": ("SELECT rows_per_batch FROM load_service",
        fed(("FilterOp", {}), op_service=[LATE[0] | {"batches": 40}]), [(12.5,)]),
    "waits for the lock are of the time that a worker is busy": ("SELECT lock_share FROM pipeline_load WHERE op_id = 0",
        fed(("MapOp", {}), op_service=times(0, "hook", 50),
            cpu=[KEY | {"op_id": 0, "t_ns": end * MS, "scope": "lock_wait", "user_ratio": 0.2} for end in ENDS]
            + [KEY | {"op_id": 0, "t_ns": 4100 * MS, "scope": "lock_wait", "user_ratio": 9.0}]),
        [(pytest.approx(0.4),)]),
    # Lines of 10 ms while calls took 7 ms; later the calls take 20 ms, and the 3 ms of MindSpore's own stay.
    "load service adds what the lines had above the early calls": (
        "SELECT source, work_ns, log_work_ns, hook_work_ns FROM load_service",
        fed(("MapOp", {}), op_service=times(0, "log", 10, ENDS[:4]) + times(0, "hook", 7, ENDS[:4])
            + times(0, "hook", 20, ENDS[4:])),
        [("both", pytest.approx(23 * MS), pytest.approx(10 * MS), pytest.approx(20 * MS))]),
    "load service of lines alone": (SERVICE, fed(("MapOp", {}), op_service=times(0, "log", 10, rows=8)),
        [("log", 80.0 * MS, 80.0 * MS, None, 8.0, None)]),
    "load service of calls alone": (SERVICE, fed(("MapOp", {}), op_service=times(0, "hook", 10, rows=8)),
        [("hook", 80.0 * MS, None, 80.0 * MS, 8.0, None)]),
    "threads beside the one that makes a row are cores that it keeps busy in a worker": (
        "SELECT call_cores FROM pipeline_load WHERE op_id = 0", threads_beside(True), [(2.4,)]),
    "threads beside it are not its own in a process of all": ("SELECT call_cores FROM pipeline_load WHERE op_id = 0",
        threads_beside(False), [(None,)]),
    "load fill takes all of few samples": ("SELECT samples, output_ratio FROM load_fill WHERE op_id = 0",
        fed(("BatchOp", {}), queue=depths(0, 1, [100]) + depths(0, 2, [200]) + depths(0, 3, [3000])), [(3, 0.5)]),
    "lines count the rows of a batch whatever the graph says": ("SELECT rows_per_batch FROM load_service",
        fed(("BatchOp", {}), ("MapOp", {}), op_service=times(1, "log", 10, rows=7) + times(1, "hook", 9, rows=7),
            pipeline=[KEY | {"pipeline_key": "a", "role": "train", "batch_size": 8}]), [(7.0,)]),
    "load room is of the cores that the rank may use and tells ranks from others": (ROOM,
        fed(("BatchOp", {}), **account((0, 1000, 0, {"main": (1000, 900)}), (2000, 3000))),
        [pytest.approx((2.0, 0.25, 0.9, 1.45, 250 / 750))]),
    "load room counts the part of an interval that is steady": ("SELECT rank_cores, idle_share FROM load_room",
        fed(("BatchOp", {}), **account((575, 1575, 1000, {"main": (1000, 0)}), (1575, 2575))),
        [pytest.approx((1.4 / 1.5, 1.0 / 3))]),
    "load room counts the part of an interval that is no evaluation": (ROOM,
        fed(("BatchOp", {}), step=EVALUATION, **account((2000, 3000, 0, {"main": (9000, 0)}), (2500, 3500))),
        [pytest.approx((2.0, 0.25, 0.9, 1.45, 250 / 750))]),
    "an evaluation before the steady part of an interval takes nothing from it": (
        "SELECT rank_cores, idle_share FROM load_room",
        fed(("BatchOp", {}), step=[step(3, 600 * MS, 1000 * MS, "eval", kind_step=0)],
            **account((575, 1575, 1000, {"main": (1000, 0)}), (1575, 2575))), [pytest.approx((1.4 / 1.5, 1.0 / 3))]),
    "load host sums processes without the launcher": ("SELECT idle_share, process_cores, gil_share FROM load_host",
        fed(("BatchOp", {}), cpu=[{"t_ns": end * MS, "sys_ratio": 0.0} | row for end in ENDS
                                  for row in ({"scope": "host", "idle_ratio": 0.25},
            {"scope": "gil", "user_ratio": 1.0 if end < 1000 else 0.5},
            *rows("scope name pid user_ratio", ("process", "trainer", 1, 1.0), ("process", "worker", 2, 0.5),
                  ("process", "launcher", 3, 9.0)))]), [(0.25, 1.5, 0.5)]),
    "cpu is that of the training without its evaluations": (fed(("BatchOp", {}), step=EVALUATION,
            cpu=[KEY | {"t_ns": end * MS, "user_ratio": busy, "sys_ratio": 0.0} | row for end in ENDS
                 for busy in [0.0 if end in MEANWHILE else 0.5]
                 for row in ({"scope": "pipeline_op", "op_id": 0}, {"scope": "gil"},
                             {"scope": "host", "idle_ratio": 1.0 - busy})]),
        ("SELECT cores, samples FROM load_cpu", [(0.5, 20)]),
        ("SELECT idle_share, gil_share FROM load_host", [(0.5, 0.5)])),
    "without a master rows wait for no sleep": (LAW, slept(workers=1), [(None,)]),
    "a master of threads sleeps": (LAW, slept(workers=2), [(pytest.approx(100 / 32 * MS),)]),
    "a master of processes sleeps": (LAW, slept(workers=2, capacity=16, uses_processes=True),
        [(pytest.approx(100 / 32 * MS),)]),
    "a master with a short queue sleeps": (LAW, slept(workers=4, capacity=2, uses_processes=True),
        [(pytest.approx(100 / 8 * MS),)]),
    "a master with a queue that is no multiple sleeps": (LAW, slept(workers=4, capacity=5, uses_processes=True),
        [(pytest.approx(100 / 20 * MS),)]),
    "cores of python inside the process": (CORES, in_process(is_python=True), [(0.0,), (pytest.approx(0.5),)]),
    "cores of what may be python": (CORES, in_process(), [(0.0,), (pytest.approx(0.5),)]),
    "cores of what is not python": (CORES, in_process(is_python=False), [(0.0,), (0.0,)]),
    "cores of python in other processes": (CORES, in_process(uses_processes=True), [(0.0,), (0.0,)]),
    "the longest stage of workers is as busy as they are": (
        "SELECT op_type, chained, round(utilisation, 3) FROM pipeline_load WHERE op_id >= 0 ORDER BY op_id", loader(2),
        [("Collate", True, 0.063), ("Dataset", True, 0.25), ("Sampler", True, 0.01)]),
    "of a turn a stages own work takes its own part": (OWN, loader(0), [(0.1,), (0.4,), (0.01,)]),
    "of a turn of workers a stages own work takes its own part": (OWN, loader(2), [(0.05,), (0.2,), (0.01,)]),
    # Lines say 400 ms for a batch; 10 batches a second were taken, in 2.925 s.
    "work that there was no time for is cut to what was taken": (CUT, too_slow(4, 8),
        [(pytest.approx(29e9 / 2925e6), pytest.approx(29e9 / 2925e6 / 2.5), pytest.approx(2925e6 / 29))]),
    "queues that hold all were filled before": (CUT, too_slow(400, 8), [(2.5, None, 400 * MS)]),
})  # fmt: skip


@pytest.mark.parametrize(("seen", "cores"), [(0.0, 0.75), (0.875, 0.875)])
def test_load_cpu_of_worker_processes_is_their_sum_or_what_mindspore_saw_if_more(look, seen, cores):
    cpu = []
    for end in ENDS:
        at = KEY | {"op_id": 0, "t_ns": end * MS, "sys_ratio": 0.0}
        cpu += [at | {"scope": "process", "pid": pid, "user_ratio": share} for pid, share in ((1, 0.25), (2, 0.5))]
        cpu.append(at | {"scope": "pipeline_op", "t_ns": (end + 7) * MS, "user_ratio": seen})
    assert look("SELECT op_id, cores FROM load_cpu", fed(("BatchOp", {}), cpu=cpu)) == [(0, cores)]


@pytest.mark.parametrize(("ops", "below", "above"), [
    ((("BatchOp", {}), ("MapOp", {})), 8.0, 1.0),
    ((("BatchOp", {}), ("MapOp", {}), ("FilterOp", {}), ("GeneratorOp", {})), 8.0, 1.0),
    ((("FilterOp", {}), ("BatchOp", {}), ("MapOp", {})), 40.0, 1.0), ((("TakeOp", {}), ("MapOp", {})), 40.0, 1.0),
])  # fmt: skip
def test_a_batch_takes_the_rows_that_the_graph_says_though_calls_ran_ahead(look, ops, below, above):
    tables = fed(*ops, op_service=AHEAD)
    tables["pipeline"][0]["batch_size"] = 8
    text = "SELECT rows_per_batch FROM load_service ORDER BY op_id"
    assert look(text, tables) == [(above,), (below,)]


def test_an_epoch_starts_the_workers_of_a_loader_anew_and_ends_them(look):
    """40 batches of each of three iterators: the first start is not one of an epoch, all ends are known."""
    tables = fed(("Collate", {}), ("Dataset", {}))
    times = {"created_ns": 10 * MS, "ready_ns": 40 * MS, "closing_ns": 20 * MS, "pipeline_key": "a", "role": "train"}
    first = times | {"pipeline_id": 0, "iteration": 0, "ready_ns": 900 * MS}
    rows = [first, *(times | {"pipeline_id": number, "iteration": number} for number in (1, 2))]
    fetches = [row | {"pipeline_id": number} for number in range(3) for row in tables["fetch"]]
    text = "SELECT pipeline_key, restart_ns, epoch_batches FROM load_restart"
    assert look(text, tables | {"pipeline": rows, "fetch": fetches}) == [("a", 50.0 * MS, 40.0)]
    alone = tables | {"pipeline": [row | {"closing_ns": None} for row in rows], "fetch": fetches}
    assert look(text, alone) == [("a", 30.0 * MS, 40.0)]
    late = [row | {"wait_ns": 500 * MS if row["pipeline_id"] and not row["fetch"] else 10 * MS} for row in fetches]
    assert look(text, tables | {"pipeline": rows, "fetch": late}) == [("a", (50.0 + 490) * MS, 40.0)]
    for one in (first, first | {"iteration": None}):  # workers that live on, and a dataset of MindSpore's
        assert look(text, tables | {"pipeline": [one]}) == []


def test_the_verdict_prefers_the_account_of_the_job_to_samples_of_the_machine(ask):
    cpu = [{"t_ns": end * MS, "scope": "host", "idle_ratio": 0.9, "sys_ratio": 0.0} for end in ENDS]
    give = "idle_share process_cores room_cores job_cores"
    known = ask("diagnose/load", fed(("BatchOp", {}), cpu=cpu, **account((2000, 3000))), give=give)
    assert known[0] == pytest.approx((0.25, 0.9, 2.0, 1.45))
    assert ask("diagnose/load", fed(("BatchOp", {}), cpu=cpu), give=give)[0] == (pytest.approx(0.9), None, None, None)


@pytest.mark.parametrize(("role", "filled"), [("train", (20, 0.25)), ("eval", (30, 0.5))])
def test_a_queue_is_not_looked_at_while_its_training_evaluates(look, role, filled):
    queue = [row for end in ENDS for row in depths(0, 4 if end in MEANWHILE else 1, [end])]
    tables = fed(("BatchOp", {}), queue=queue, step=EVALUATION)
    tables["pipeline"][0]["role"] = role
    assert look("SELECT samples, fill_ratio FROM queue_fill", tables) == [filled]


def test_pipeline_pace_is_of_steps_so_pauses_between_them_do_not_count(look):
    tables = fed(("BatchOp", {}), step=[])
    for number, row in enumerate(tables["fetch"]):
        row["step"] = number
        tables["step"].append(step(number, row["start_ns"], row["start_ns"] + 80 * MS))
    row = ("iterator", 30, 2400 * MS, 1800 * MS, pytest.approx(12.5), pytest.approx(50))
    assert look(PACE, tables) == [row]


def test_pipeline_pace_in_sink_mode_is_the_devices(look):
    host = fed(("BatchOp", {}))["fetch"]
    device = [row | {"side": "data_queue", "wait_ns": 10 * MS, "start_ns": row["start_ns"] + 50 * MS} for row in host]
    fetches = [row | {"side": "host_queue"} for row in host] + device
    assert look("SELECT side, wait_ns FROM pipeline_pace", fed(("BatchOp", {}), fetch=fetches)) == [
        ("data_queue", 290 * MS)
    ]


CALLED = times(0, "hook", 1, rows=64)  # a batch of 64 ms


def stalling(longest, computing=0, until=4001):
    """64 rows of 1 ms a batch: one of 30 ms is half a batch's work, and the batches take the same time."""
    return [
        row | {"cpu_ns": computing * MS, "max_ns": (longest if row["t_ns"] < until * MS else 2) * MS} for row in CALLED
    ]


def busy(computing):
    return times(0, "hook", 90, cpu_ns=computing * MS)


PYTHON = ("MapOp", {"is_python": True})
KINDS = {
    "a source as slow as its masters sleeps": (("GeneratorOp", {"workers": 2}), times(0, "hook", 0.1, rows=32), None,
        "poll"),
    "few long batches": (("MapOp", {}), times(0, "log", 10, ENDS[::10])
        + times(0, "log", 0.1, [end for end in ENDS if end % 1000 != 100]), None, "burst"),
    "long rows": (("MapOp", {}), times(0, "hook", 10, max_ns=50 * MS), None, "burst"),
    "computing while the lock is held": (PYTHON, busy(80), 0.9, "gil"),
    "computing while it is not": (PYTHON, busy(80), 0.2, "cpu"),
    "waiting while the lock is held": (PYTHON, busy(10), 0.9, "wait"),
    "rare long calls in a big batch": (("MapOp", {}), stalling(30), None, "burst"),
    "calls that are not that long": (("MapOp", {}), stalling(10), None, "wait"),
    "long calls that compute": (("MapOp", {}), stalling(30, computing=1), None, "cpu"),
    "long calls in a few intervals": (("MapOp", {}), stalling(30, until=1500), None, "wait"),
    "a hiccup of 20 ms in 1,000 rows of 1 ms": (("MapOp", {}), times(0, "hook", 1, rows=1000, cpu_ns=0, max_ns=20 * MS),
        None, "wait"),
    "nothing tells": (("MapOp", {}), times(0, "hook", 90), None, None),
}  # fmt: skip


@pytest.mark.parametrize(("op", "service", "lock", "kind"), KINDS.values(), ids=KINDS)
def test_the_kind_of_a_single_operator_is_from_its_times(ask, op, service, lock, kind):
    cpu = [{"t_ns": end * MS, "scope": "gil", "user_ratio": lock, "sys_ratio": 0.0} for end in ENDS if lock]
    found = with_kinds(ask("diagnose/load", fed(op, op_service=service, cpu=cpu)))
    assert found[1]["kind"] == kind
