"""The views between the records and diagnose/load. Batches come every 100 ms, so the window is from 1075 ms on."""

import pytest
from table_rows import ENDS, KEY, MS, depths, fed, step, times

from pipeprof.verdict.decision import with_kinds


def test_load_op_knows_sources_the_sink_and_what_is_above(look):
    tables = fed(("BatchOp", {}), ("ConcatOp", {"inlined": True}), ("MapOp", {}), ("TFReaderOp", {}))
    text = "SELECT op_id, is_leaf, is_sink, below_concat, below_filter FROM load_op ORDER BY op_id"
    assert look(text, tables) == [
        (-1, False, False, False, False),
        (0, False, True, False, False),
        (1, False, False, False, False),
        (2, False, False, True, False),
        (3, True, False, True, False),
    ]


def test_load_op_ends_in_a_circle(look):
    tables = fed(("BatchOp", {}), ("MapOp", {}), edges=[(1, 0), (0, 1)])
    assert look("SELECT op_id FROM load_op ORDER BY op_id", tables) == [(-1,), (0,), (1,)]


def test_pipeline_below_names_every_operator_on_the_way_to_the_loop(look):
    tables = fed(("BatchOp", {}), ("ZipOp", {}), ("MapOp", {}), ("MapOp", {}), edges=[(1, 0), (2, 1), (3, 1)])
    text = "SELECT op_id, consumer_id, consumer_type, links FROM pipeline_below ORDER BY op_id, links"
    direct = [(1, 0, "BatchOp", 1), (2, 1, "ZipOp", 1), (2, 0, "BatchOp", 2), (3, 1, "ZipOp", 1), (3, 0, "BatchOp", 2)]
    assert look(text, tables) == direct


SERVICE = "SELECT source, work_ns, log_work_ns, hook_work_ns, rows_per_batch, cpu_share FROM load_service"


def test_load_service_adds_what_the_lines_had_above_the_early_calls(look):
    # Lines of 10 ms while calls took 7 ms; later the calls take 20 ms, and the 3 ms of MindSpore's own stay.
    calls = times(0, "hook", 7, ENDS[:4]) + times(0, "hook", 20, ENDS[4:])
    tables = fed(("MapOp", {}), op_service=times(0, "log", 10, ENDS[:4]) + calls)
    (row,) = look(SERVICE, tables)
    assert row[0] == "both"
    assert row[1:4] == pytest.approx((23 * MS, 10 * MS, 20 * MS))


@pytest.mark.parametrize(("source", "log", "hook"), [("log", 80.0 * MS, None), ("hook", None, 80.0 * MS)])
def test_load_service_of_one_source(look, source, log, hook):
    tables = fed(("MapOp", {}), op_service=times(0, source, 10, rows=8))
    assert look(SERVICE, tables) == [(source, 80.0 * MS, log, hook, 8.0, None)]


def test_load_service_computing_is_weighed_and_at_most_all(look):
    tables = fed(("MapOp", {}), op_service=times(0, "hook", 10, cpu_ns=12 * MS))
    assert look("SELECT cpu_share FROM load_service", tables) == [(1.0,)]


@pytest.mark.parametrize(("processes", "cores"), [(True, 2.4), (False, None)])
def test_threads_beside_the_one_that_makes_a_row_are_cores_that_it_keeps_busy_in_a_worker(look, processes, cores):
    service = times(0, "hook", 10, cpu_ns=12 * MS, delay_ns=5 * MS)
    tables = fed(("MapOp", {"workers": 2, "uses_processes": processes}), op_service=service)
    assert look("SELECT call_cores FROM pipeline_load WHERE op_id = 0", tables) == [(cores,)]


def test_load_service_leaves_out_time_without_a_core(look):
    service = times(0, "hook", 40, rows=2, cpu_ns=9 * MS, delay_ns=30 * MS)
    text = "SELECT cpu_share, hook_cpu_ns, work_ns FROM load_service"
    assert look(text, fed(("MapOp", {}), op_service=service)) == [(0.9, 18.0 * MS, 80.0 * MS)]


def test_load_service_without_its_delay_counts_all_time(look):
    service = times(0, "hook", 40, cpu_ns=10 * MS)
    assert look("SELECT cpu_share FROM load_service", fed(("MapOp", {}), op_service=service)) == [(0.25,)]


def test_load_fill_looks_from_the_window_on(look):
    queue = depths(1, 4, ENDS[:9]) + depths(1, 1, ENDS[9:])
    tables = fed(("BatchOp", {}), ("MapOp", {}), queue=queue)
    text = "SELECT op_id, samples, input_ratio, output_ratio FROM load_fill ORDER BY op_id"
    assert look(text, tables) == [(0, 30, 0.25, None), (1, 30, None, 0.25)]


def test_load_fill_takes_all_of_few_samples(look):
    queue = [KEY | {"op_id": 0, "t_ns": at * MS, "depth": at // 100, "capacity": 4} for at in (100, 200, 3000)]
    queue[2]["depth"] = 3
    text = "SELECT samples, output_ratio FROM load_fill WHERE op_id = 0"
    assert look(text, fed(("BatchOp", {}), queue=queue)) == [(3, 0.5)]


def test_load_cpu_is_the_mean_of_user_and_system_time(look):
    row = {"scope": "pipeline_op", "op_id": 0, "sys_ratio": 0.25}
    cpu = [KEY | row | {"t_ns": end * MS, "user_ratio": 0.0 if end < 1000 else 0.5} for end in ENDS]
    assert look("SELECT op_id, cores FROM load_cpu", fed(("BatchOp", {}), cpu=cpu)) == [(0, 0.75)]


@pytest.mark.parametrize(("seen", "cores"), [(0.0, 0.75), (0.875, 0.875)])
def test_load_cpu_of_worker_processes_is_their_sum_or_what_mindspore_saw_if_more(look, seen, cores):
    cpu = []
    for end in ENDS:
        at = KEY | {"op_id": 0, "t_ns": end * MS, "sys_ratio": 0.0}
        cpu += [at | {"scope": "process", "pid": pid, "user_ratio": share} for pid, share in ((1, 0.25), (2, 0.5))]
        cpu.append(at | {"scope": "pipeline_op", "t_ns": (end + 7) * MS, "user_ratio": seen})
    assert look("SELECT op_id, cores FROM load_cpu", fed(("BatchOp", {}), cpu=cpu)) == [(0, cores)]


# Calls that ran ahead: 40 for each batch of 8 rows, as in a loop that ends early.
AHEAD = times(1, "hook", 1, ENDS[:5], rows=40) + times(0, "hook", 1, ENDS[:5], rows=3)


@pytest.mark.parametrize(
    ("ops", "below", "above"),
    [
        ((("BatchOp", {}), ("MapOp", {})), 8.0, 1.0),
        ((("BatchOp", {}), ("MapOp", {}), ("FilterOp", {}), ("GeneratorOp", {})), 8.0, 1.0),
        ((("FilterOp", {}), ("BatchOp", {}), ("MapOp", {})), 40.0, 1.0),
        ((("TakeOp", {}), ("MapOp", {})), 40.0, 1.0),
    ],
)
def test_a_batch_takes_the_rows_that_the_graph_says_though_calls_ran_ahead(look, ops, below, above):
    tables = fed(*ops, op_service=AHEAD)
    tables["pipeline"][0]["batch_size"] = 8
    text = "SELECT rows_per_batch FROM load_service ORDER BY op_id"
    assert look(text, tables) == [(above,), (below,)]


def test_lines_count_the_rows_of_a_batch_whatever_the_graph_says(look):
    tables = fed(("BatchOp", {}), ("MapOp", {}), op_service=times(1, "log", 10, rows=7) + times(1, "hook", 9, rows=7))
    tables["pipeline"][0]["batch_size"] = 8
    assert look("SELECT rows_per_batch FROM load_service", tables) == [(7.0,)]


ROOM = "SELECT cores, idle_share, rank_cores, job_cores, delay_share FROM load_room"
USED = {"main": (300, 100), "mindspore_thread": (200, 150), "worker": (400, None), "launcher": (30, None),
        "other_rank": (500, None), "profiler": (20, None), "neighbour": (50, None)}  # fmt: skip


def account(begin, end, used=USED, idle=500):
    """An interval of a rank that may use two cores: part -> (CPU, waiting), ms."""
    at = {"start_ns": begin * MS, "end_ns": end * MS}
    parts = [
        at | {"part": part, "cpu_ns": cpu * MS, "wait_ns": None if wait is None else wait * MS}
        for part, (cpu, wait) in used.items()
    ]
    return parts, [at | {"cores": 2.0, "idle_ns": idle * MS}]


def test_load_room_is_of_the_cores_that_the_rank_may_use_and_tells_ranks_from_others(look):
    parts, room = account(2000, 3000)
    before, earlier = account(0, 1000, {"main": (1000, 900)}, idle=0)
    tables = fed(("BatchOp", {}), cpu_use=before + parts, cpu_room=earlier + room)
    assert look(ROOM, tables) == [pytest.approx((2.0, 0.25, 0.9, 1.45, 250 / 750))]


def test_load_room_counts_the_part_of_an_interval_that_is_steady(look):
    (first, room), (last, more) = account(575, 1575, {"main": (1000, 0)}, idle=1000), account(1575, 2575)
    tables = fed(("BatchOp", {}), cpu_use=first + last, cpu_room=room + more)
    assert look("SELECT rank_cores, idle_share FROM load_room", tables) == [pytest.approx((1.4 / 1.5, 1.0 / 3))]


def test_the_verdict_prefers_the_account_of_the_job_to_samples_of_the_machine(look, ask):
    cpu = [{"t_ns": end * MS, "scope": "host", "idle_ratio": 0.9, "sys_ratio": 0.0} for end in ENDS]
    parts, room = account(2000, 3000)
    tables = fed(("BatchOp", {}), cpu=cpu, cpu_use=parts, cpu_room=room)
    give = "idle_share process_cores room_cores job_cores"
    assert ask("diagnose/load", tables, give=give)[0] == pytest.approx((0.25, 0.9, 2.0, 1.45))
    assert ask("diagnose/load", fed(("BatchOp", {}), cpu=cpu), give=give)[0] == (pytest.approx(0.9), None, None, None)


def test_load_host_sums_processes_without_the_launcher(look):
    cpu = []
    for end in ENDS:
        at = {"t_ns": end * MS, "sys_ratio": 0.0}
        cpu += [
            at | {"scope": "host", "idle_ratio": 0.25},
            at | {"scope": "process", "name": "trainer", "pid": 1, "user_ratio": 1.0},
            at | {"scope": "process", "name": "worker", "pid": 2, "user_ratio": 0.5},
            at | {"scope": "process", "name": "launcher", "pid": 3, "user_ratio": 9.0},
            at | {"scope": "gil", "user_ratio": 1.0 if end < 1000 else 0.5},
        ]
    text = "SELECT idle_share, process_cores, gil_share FROM load_host"
    assert look(text, fed(("BatchOp", {}), cpu=cpu)) == [(0.25, 1.5, 0.5)]


# An evaluation of two steps, in which the training's pipeline stands still with full queues.
EVALUATION = [step(n, at * MS, (at + 500) * MS, "eval", kind_step=n - 20) for n, at in ((20, 2000), (21, 2500))]
MEANWHILE = range(2001, 3001)


@pytest.mark.parametrize(("role", "filled"), [("train", (20, 0.25)), ("eval", (30, 0.5))])
def test_a_queue_is_not_looked_at_while_its_training_evaluates(look, role, filled):
    depths = {end: 4 if end in MEANWHILE else 1 for end in ENDS}
    queue = [KEY | {"op_id": 0, "t_ns": end * MS, "depth": depth, "capacity": 4} for end, depth in depths.items()]
    tables = fed(("BatchOp", {}), queue=queue, step=EVALUATION)
    tables["pipeline"][0]["role"] = role
    assert look("SELECT samples, fill_ratio FROM queue_fill", tables) == [filled]


def test_cpu_is_that_of_the_training_without_its_evaluations(look):
    cpu = []
    for end in ENDS:
        busy = 0.0 if end in MEANWHILE else 0.5
        at = KEY | {"t_ns": end * MS, "user_ratio": busy, "sys_ratio": 0.0}
        cpu += [at | {"scope": "pipeline_op", "op_id": 0}, at | {"scope": "gil"}]
        cpu.append(at | {"scope": "host", "idle_ratio": 1.0 - busy})
    tables = fed(("BatchOp", {}), cpu=cpu, step=EVALUATION)
    assert look("SELECT cores, samples FROM load_cpu", tables) == [(0.5, 20)]
    assert look("SELECT idle_share, gil_share FROM load_host", tables) == [(0.5, 0.5)]


def test_load_room_counts_the_part_of_an_interval_that_is_no_evaluation(look):
    (whole, room), (half, more) = account(2000, 3000, {"main": (9000, 0)}, idle=0), account(2500, 3500)
    tables = fed(("BatchOp", {}), cpu_use=whole + half, cpu_room=room + more, step=EVALUATION)
    assert look(ROOM, tables) == [pytest.approx((2.0, 0.25, 0.9, 1.45, 250 / 750))]


def test_an_evaluation_before_the_steady_part_of_an_interval_takes_nothing_from_it(look):
    (first, room), (last, more) = account(575, 1575, {"main": (1000, 0)}, idle=1000), account(1575, 2575)
    evaluation = [step(3, 600 * MS, 1000 * MS, "eval", kind_step=0)]
    tables = fed(("BatchOp", {}), cpu_use=first + last, cpu_room=room + more, step=evaluation)
    assert look("SELECT rank_cores, idle_share FROM load_room", tables) == [pytest.approx((1.4 / 1.5, 1.0 / 3))]


def test_pipeline_window_begins_after_a_quarter(look):
    text = "SELECT first_ns, from_ns, to_ns, batches FROM pipeline_window"
    assert look(text, fed(("BatchOp", {}))) == [(100 * MS, 1075 * MS, 4000 * MS, 40)]


def test_pipeline_window_without_batches_is_that_of_the_samples(look):
    queue = [KEY | {"op_id": 0, "t_ns": at, "depth": 1, "capacity": 4} for at in (100, 500)]
    text = "SELECT first_ns, from_ns, to_ns, batches FROM pipeline_window"
    assert look(text, fed(("BatchOp", {}), queue=queue, fetch=[])) == [(100, 200, 500, 0)]


PACE = "SELECT side, batches, span_ns, wait_ns, rate, consumer_rate FROM pipeline_pace"


def test_pipeline_pace_without_steps_is_from_batch_to_batch(look):
    row = ("iterator", 29, 2900 * MS, 29 * 60 * MS, pytest.approx(10), pytest.approx(25))
    assert look(PACE, fed(("BatchOp", {}))) == [row]


def test_pipeline_pace_is_of_steps_so_pauses_between_them_do_not_count(look):
    tables = fed(("BatchOp", {}))
    tables["step"] = []
    for number, row in enumerate(tables["fetch"]):
        begin = row["start_ns"]
        row["step"] = number
        tables["step"].append(step(number, begin, begin + 80 * MS))
    row = ("iterator", 30, 2400 * MS, 1800 * MS, pytest.approx(12.5), pytest.approx(50))
    assert look(PACE, tables) == [row]


def test_pipeline_pace_in_sink_mode_is_the_devices(look):
    tables = fed(("BatchOp", {}))
    device = [
        row | {"side": "data_queue", "wait_ns": 10 * MS, "start_ns": row["start_ns"] + 50 * MS}
        for row in tables["fetch"]
    ]
    tables["fetch"] = [row | {"side": "host_queue"} for row in tables["fetch"]] + device
    (row,) = look(PACE, tables)
    assert row[0] == "data_queue"
    assert row[3] == 29 * 10 * MS


def test_pipeline_load_rates_by_workers_and_leaves_out_what_is_not_measured(look):
    ops = [("BatchOp", {}), ("MapOp", {"workers": 4}), ("RenameOp", {"inlined": True}), ("GeneratorOp", {})]
    tables = fed(*ops, op_service=times(1, "log", 10, rows=8) + times(3, "hook", 2, rows=8))
    text = "SELECT op_id, rate, utilisation FROM pipeline_load ORDER BY op_id"
    assert look(text, tables) == [
        (-1, pytest.approx(25), pytest.approx(0.4)),
        (0, None, None),
        (1, pytest.approx(50), pytest.approx(0.2)),
        (3, pytest.approx(62.5), pytest.approx(0.16)),
    ]


def test_computing_is_not_known_without_cpu_times(look):
    tables = fed(("MapOp", {}), op_service=times(0, "log", 10))
    assert look("SELECT cpu_share FROM pipeline_load WHERE op_id = 0", tables) == [(None,)]


def test_a_source_with_threads_is_bounded_by_its_masters_sleeps(look):
    tables = fed(("GeneratorOp", {"workers": 2}), op_service=times(0, "hook", 0.1, rows=32))
    # 160 rows/s for each thread, 32 rows a batch
    assert look("SELECT rate FROM pipeline_load WHERE op_id = 0", tables) == [(pytest.approx(10),)]


@pytest.mark.parametrize(
    ("facts", "law"),
    [
        ({"workers": 1}, None),
        ({"workers": 2}, 100 / 32),
        ({"workers": 2, "capacity": 16, "uses_processes": True}, 100 / 32),
        ({"workers": 4, "capacity": 2, "uses_processes": True}, 100 / 8),
        ({"workers": 4, "capacity": 5, "uses_processes": True}, 100 / 20),
    ],
    ids=["no master", "threads", "processes", "a short queue", "a queue that is no multiple"],
)
def test_the_time_between_rows_that_a_masters_sleeps_allow(look, facts, law):
    tables = fed(("GeneratorOp", facts), op_service=times(0, "hook", 1))
    (row,) = look("SELECT law_row_ns FROM pipeline_load WHERE op_id = 0", tables)
    assert row == (law if law is None else pytest.approx(law * MS),)


@pytest.mark.parametrize(
    ("facts", "cores"),
    [({"is_python": True}, 0.5), ({}, 0.5), ({"is_python": False}, 0.0), ({"uses_processes": True}, 0.0)],
    ids=["python", "not known", "C++", "processes"],
)
def test_cores_of_python_inside_the_process(look, facts, cores):
    tables = fed(("MapOp", facts), op_service=times(0, "hook", 80, cpu_ns=50 * MS))
    text = "SELECT python_cores FROM pipeline_load ORDER BY op_id"
    assert look(text, tables) == [(0.0,), (pytest.approx(cores),)]


@pytest.fixture
def kind(ask):
    """The kind of a single operator with these service times."""

    def kind_of(op, service, cpu=()):
        cpu = [{"t_ns": end * MS, "sys_ratio": 0.0} | row for row in cpu for end in ENDS]
        return with_kinds(ask("diagnose/load", fed(op, op_service=service, cpu=cpu)))[1]["kind"]

    return kind_of


def test_a_source_as_slow_as_its_masters_sleeps_polls(kind):
    assert kind(("GeneratorOp", {"workers": 2}), times(0, "hook", 0.1, rows=32)) == "poll"


def test_a_stage_of_few_long_batches_or_rows_stalls(kind):
    stalls = times(0, "log", 10, ENDS[::10]) + times(0, "log", 0.1, [end for end in ENDS if end % 1000 != 100])
    assert kind(("MapOp", {}), stalls) == "burst"
    assert kind(("MapOp", {}), times(0, "hook", 10, max_ns=50 * MS)) == "burst"


@pytest.mark.parametrize(("computing", "lock", "expected"), [(80, 0.9, "gil"), (80, 0.2, "cpu"), (10, 0.9, "wait")])
def test_computing_and_the_lock_make_the_kind(kind, computing, lock, expected):
    service = times(0, "hook", 90, cpu_ns=computing * MS)
    assert kind(("MapOp", {"is_python": True}), service, [{"scope": "gil", "user_ratio": lock}]) == expected


@pytest.mark.parametrize(
    ("longest", "computing", "until", "expected"),
    [(30, 0, 4001, "burst"), (10, 0, 4001, "wait"), (30, 1, 4001, "cpu"), (30, 0, 1500, "wait")],
    ids=["rare long calls", "not that long", "computing", "in a few intervals"],
)
def test_stalls_of_single_rows_in_a_big_batch(kind, longest, computing, until, expected):
    """64 rows of 1 ms a batch: one of 30 ms is half a batch's work, and the batches take the same time."""
    service = [
        row | {"cpu_ns": computing * MS, "max_ns": (longest if row["t_ns"] < until * MS else 2) * MS}
        for row in times(0, "hook", 1, rows=64)
    ]
    assert kind(("MapOp", {}), service) == expected


def test_one_call_of_many_is_no_stall_whatever_its_length(kind):
    """A hiccup of 20 ms in 1,000 rows of 1 ms."""
    assert kind(("MapOp", {}), times(0, "hook", 1, rows=1000, cpu_ns=0, max_ns=20 * MS)) == "wait"


def test_there_is_no_kind_when_nothing_tells(kind):
    assert kind(("MapOp", {}), times(0, "hook", 90)) is None


TURN = "SELECT op_type, chained, round(utilisation, 3), cores, python_cores FROM pipeline_load WHERE op_id >= 0 ORDER BY op_id"
STAGES = {"inlined": True, "is_python": True, "capacity": None}


def loader(workers, ends=ENDS):
    """40 ms of rows and 10 ms of what collates them for each batch, of which the loop takes one in 100 ms."""
    facts = STAGES | {"workers": workers or 1, "uses_processes": workers > 0}
    alone = STAGES | {"uses_processes": False}
    work = [(0, 10), (1, 40), (2, 1)]
    services = [row for op, cost in work for row in times(op, "hook", cost, ends, cpu_ns=MS)]
    return fed(("Collate", facts), ("Dataset", facts), ("Sampler", alone), op_service=services)


def test_a_stage_of_a_loop_that_makes_its_own_batches_is_as_busy_as_its_part_of_the_turn(look):
    assert look(TURN, loader(0)) == [
        ("Collate", True, 0.25, None, 0.0), ("Dataset", True, 1.0, None, 0.0), ("Sampler", True, 0.025, None, 0.0),
    ]  # fmt: skip


def test_the_longest_stage_of_workers_is_as_busy_as_they_are(look):
    assert [row[:3] for row in look(TURN, loader(2))] == [
        ("Collate", True, 0.063), ("Dataset", True, 0.25), ("Sampler", True, 0.01),
    ]  # fmt: skip


@pytest.mark.parametrize(("workers", "busy"), [(0, [0.1, 0.4, 0.01]), (2, [0.05, 0.2, 0.01])])
def test_of_a_turn_a_stages_own_work_takes_its_own_part(look, workers, busy):
    text = "SELECT round(busy, 3) FROM pipeline_load WHERE op_id >= 0 ORDER BY op_id"
    assert [row[0] for row in look(text, loader(workers))] == busy


# A loop that ended at 4 s, behind which MindSpore works off the rest of the epoch, faster than before.
LATE = [
    KEY | {"op_id": 0, "t_ns": end * MS, "rows": 500, "batches": 0, "source": "hook", "avg_ns": MS}
    for end in (4500, 5000)
]


def test_calls_after_the_last_batch_are_of_none(look):
    early = times(0, "hook", 10, rows=8)
    text = "SELECT rows_per_batch, work_ns FROM load_service"
    assert look(text, fed(("FilterOp", {}), op_service=early + LATE)) == [(8.0, 80.0 * MS)]


def test_the_calls_of_a_short_loop_count_although_they_are_told_after_it(look):
    (row,) = look(
        "SELECT rows_per_batch FROM load_service", fed(("FilterOp", {}), op_service=[LATE[0] | {"batches": 40}])
    )
    assert row == (12.5,)


@pytest.mark.parametrize(
    ("capacity", "rows", "rate", "overrun"),
    [(4, 8, 1e10 / 975e6, 1e10 / 975e6 / 2.5), (400, 8, 2.5, None)],
    ids=["queues hold little", "queues hold all"],
)
def test_work_that_there_was_no_time_for_is_cut_to_what_was_taken(look, capacity, rows, rate, overrun):
    # Lines say 400 ms for a batch; 10 batches a second were taken, in 2.925 s.
    ops = [("BatchOp", {"capacity": capacity}), ("MapOp", {"capacity": capacity})]
    tables = fed(*ops, op_service=times(1, "log", 400 / rows, ENDS[:4], rows=rows))
    (found,) = look("SELECT rate, overrun, work_ns FROM pipeline_load WHERE op_id = 1", tables)
    taken = 29e9 / 2925e6
    assert found == (
        (pytest.approx(taken), pytest.approx(taken / 2.5), pytest.approx(1e9 / taken))
        if overrun
        else (2.5, None, 400 * MS)
    )


def test_waits_for_the_lock_are_of_the_time_that_a_worker_is_busy(look):
    cpu = [KEY | {"op_id": 0, "t_ns": end * MS, "scope": "lock_wait", "user_ratio": 0.2} for end in ENDS]
    after = [KEY | {"op_id": 0, "t_ns": 4100 * MS, "scope": "lock_wait", "user_ratio": 9.0}]
    tables = fed(("MapOp", {}), op_service=times(0, "hook", 50), cpu=cpu + after)
    assert look("SELECT lock_share FROM pipeline_load WHERE op_id = 0", tables) == [(pytest.approx(0.4),)]


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
