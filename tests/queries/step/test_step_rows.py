"""Queries of steps."""

from math import sqrt

import pytest
import table_rows
from query_cases import answers, row, rows
from table_rows import MS, phased_step, step, steps

STEPS = [step(0, 0, 100), step(1, 100, 200)]
GIVE = "point source steps overlapped_ns exposed_ns unknown_ns"
COURSE = "block first_step steps dur_ns wait_ns compiled compile_ns neighbour_cores throttled_share floor_bytes"


def waited(number, start, end, wait, kind="train", **more):
    return table_rows.step(number, start, end, kind, fetch_wait_ns=wait, **more)


COLUMNS = "kind steps fetch_steps step_ns fetch_wait_ns data_wait_share median_fetch_wait_ns"


def spent(number, begin, end, kind="train", wait=None, **more):
    return table_rows.step(number, begin * MS, end * MS, kind, fetch_wait_ns=wait, **more)


SPENT = [
    spent(0, 0, 500, kind="warmup"), spent(1, 500, 600, wait=7), spent(2, 600, 700, wait=5), spent(3, 700, 1700, wait=0),
    spent(4, 1700, 1900, in_window=True),
]  # fmt: skip


def use(begin, end, part, cpu, wait=None):
    return {"start_ns": begin * MS, "end_ns": end * MS, "part": part, "cpu_ns": cpu * MS, "wait_ns": wait and wait * MS}


split_at = row("rank step start_ns fp_ns end_ns", kind="train")


def lasting(number, dur, start=0, **more):
    return phased_step(number, start, start + 2, start + 5, start + dur, **more)


def tables():
    starts, found = 0, []
    for number, dur in enumerate((50, 10, 20, 30)):
        found.append(lasting(number, dur, starts, kind="warmup" if number == 0 else "train"))
        starts += dur
    return {"step": [*found, lasting(9, 500, 500, kind="eval"), lasting(0, 70, rank=1)]}


POINTS = "rank point first_step last_step steps warmup_steps dur_ns max_ns data_wait_ns forward_backward_ns tail_ns"
PARTED = "position phase from_ns until_ns part_ns share mean_ns steps"


def sync(number, count, total, call="asnumpy", site="train.py:9", **more):
    return {"step": number, "call": call, "site": site, "count": count, "total_ns": total, "max_ns": total, **more}


ALL = steps(*["train"] * 4)
PARTS = ("forward", "backward", "gradients", "optimizer", "after")


def traced(number, start, end, *, in_window=False, parts=(), **more):
    known = {f"{name}_ns": time for name, time in zip(PARTS, parts, strict=False)}
    times = {"start_ns": start, "end_ns": end, "input_ns": 10}
    return {"step": number, "kind_step": number, "kind": "train", "in_window": in_window, **times, **known, **more}


TRACED = "phase measured steps parted_steps mean_ns"
ALL_PARTS = ("data_wait", "forward", "backward", "gradients", "optimizer", "after",
         "forward_backward", "tail", "compute", "whole")  # fmt: skip
KNOWN = [
    step(0, 0, 100, kind="warmup"),
    step(1, 100, 150, fp_ns=110),
    step(2, 150, 190, fp_ns=155, bp_ns=180, fetch_wait_ns=4),
    step(3, 190, 220, fp_ns=195, input_ns=6, forward_ns=5, backward_ns=10, gradients_ns=2, optimizer_ns=4, after_ns=3),
    step(4, 220, 260, fp_ns=210),  # before the step: not to be believed
]


def parts(row):
    return {name: row[f"{name}_ns"] for name in ALL_PARTS if row[f"{name}_ns"]}


def asked(ask, points):
    return ask("step/trace_curve", {"step": [*KNOWN, step(9, 0, 7, kind="eval")]}, points=points, rep=0, rank=0)


def varying(durations):
    clock, found = 0, []
    for number, dur in enumerate(durations):
        found.append({"step": number, "kind": "train", "start_ns": clock, "fp_ns": clock + 1, "end_ns": clock + dur})
        clock += dur
    return {"step": found}


test_rows_of_step_communication_curve = answers("step/communication_curve", {
    # 20 of it beside the operator
    "communication beside operators and with nothing beside it": (GIVE,
        {"step": STEPS, "op_info": [{"op_id": 0, "phase": "forward"}],
         "op": [{"op_id": 0, "step": n, "start_ns": 100 * n + 10, "dur_ns": 40} for n in (0, 1)],
         "collective": [{"step": 0, "start_ns": 30, "dur_ns": 50}]},
        [(0, "parts", 1, 20, 30, 0), (1, "parts", 1, 0, 0, 0)]),
    # Collectives are recorded only inside op windows: of four steps two, one of them without any.
    "steps without recorded operators do not make the mean smaller": (GIVE,
        {"step": [step(n, 100 * n, 100 * n + 100) for n in range(4)], "op_info": [{"op_id": 0, "phase": "forward"}],
         "op": [{"op_id": 0, "step": n, "start_ns": 100 * n + 10, "dur_ns": 40} for n in (1, 2)],
         "collective": [{"step": 1, "start_ns": 160, "dur_ns": 30}]}, [(0, "parts", 2, 0, 15, 0)], {"points": 1}),
    "without communication nothing is drawn": ("",
        {"step": STEPS, "op_info": [{"op_id": 0, "phase": "forward"}],
         "op": [{"op_id": 0, "step": 0, "start_ns": 10, "dur_ns": 40}]}, []),
    "the profilers own division where no operator was recorded": (GIVE,
        {"step": STEPS, "step_split": [{"source": "step_trace_time", "computing_ns": 60, "overlapped_ns": 7,
                                        "exposed_ns": 30, "free_ns": 10, "step": 1, "source_step": 1}]},
        [(1, "split", 1, 7, 30, 0)]),
    "events alone do not say what runs beside them and points have means": (GIVE,
        {"step": STEPS, "collective": [{"step": 1, "start_ns": 130, "dur_ns": 50}]}, [(0, "trace", 2, 0, 0, 25)],
        {"points": 1}),
}, rep=0, rank=0, points=9)  # fmt: skip

test_rows_of_step_course = answers("step/course", {
    "each block has its median step and what lay in it": (COURSE,
        {"step": [step(0, 0, 500, "warmup"), step(1, 500, 600, fetch_wait_ns=10), step(2, 600, 720, fetch_wait_ns=30),
                  step(3, 720, 920), step(4, 920, 1320)],
         "stage": rows("stage start_ns dur_ns", ("compile", 730, 90), ("compile", 5, 7)),
         "cpu_use": rows("start_ns end_ns part cpu_ns", (500, 700, "neighbour", 100), (500, 700, "main", 200),
                         (800, 900, "neighbour", 150)),
         "cpu_room": [{"start_ns": 800, "end_ns": 900, "throttled_ns": 25}],
         "memory": [{"t_ns": at, "device": "process", "name": "trainer", "pid": 1, "rss_bytes": level}
                    for at, level in ((550, 70), (650, 60), (1000, 80))]},
        [(0, 1, 2, 110.0, 20.0, 0, 0, 0.5, None, 60), (1, 3, 2, 300.0, None, 1, 90, 1.5, 0.25, 80)]),
    "more blocks than steps leave blocks out": ("block steps dur_ns", {"step": [step(0, 0, 10), step(1, 10, 30)]},
        [(0, 1, 10.0), (12, 1, 20.0)], {"blocks": 24}),
    # The record has a row of the neighbours only where they took some.
    "a sampled time without other programs counts as none of their cpu": ("neighbour_cores",
        {"step": [step(0, 0, 30), step(1, 30, 100), step(2, 100, 200)],
         "cpu_use": rows("start_ns end_ns part cpu_ns", (10, 20, "main", 10), (40, 60, "main", 9),
                         (40, 60, "neighbour", 8), (60, 80, "main", 9))}, [(0.0,), (0.2,), (None,)], {"blocks": 3}),
}, blocks=2)  # fmt: skip

test_rows_of_step_data_wait = answers("step/data_wait", {
    "share is of the summed times": (COLUMNS,
        {"step": [waited(0, 0, 10, 1), waited(1, 10, 40, 9), waited(2, 40, 50, 2)]},
        [("train", 3, 3, 50, 12, 0.24, 2.0)]),
    "steps in windows and warmup are left out": (COLUMNS,
        {"step": [waited(0, 0, 900, 800, "warmup"), waited(1, 900, 910, 1), waited(2, 910, 1910, 999, in_window=True)]},
        [("train", 1, 1, 10, 1, 0.1, 1.0)]),
    "windows count when there is nothing else": ("from_window data_wait_share",
        {"step": [waited(0, 0, 10, 5, in_window=True)]}, [(True, 0.5)]),
    "a step that fetched nothing is time without waiting": (COLUMNS,
        {"step": [waited(0, 0, 10, 5), waited(1, 10, 20, None)]}, [("train", 2, 1, 20, 5, 0.25, 5.0)]),
    "share is unknown not zero when no fetch was seen": ("fetch_wait_ns data_wait_share",
        {"step": [waited(0, 0, 10, None)]}, [(None, None)]),
    "the start of a loaders later iterators is waited for between the steps": ("step_ns fetch_wait_ns data_wait_share",
        {"step": [waited(0, 0, 10, 5), waited(1, 60, 100, 5)],
         "pipeline": [table_rows.KEY | {"role": "train", "created_ns": 0, "ready_ns": 30, "closing_ns": 20}
                      | {"pipeline_id": number, "iteration": number} for number in (0, 1)]
         + [table_rows.KEY | {"role": "train", "created_ns": 0, "ready_ns": 30, "closing_ns": 20}
            | {"pipeline_id": 2, "iteration": None}]}, [(50, 10, 0.4)]),
})  # fmt: skip

test_rows_of_step_lengths = answers("step/lengths", {
    "steps of about the same length are counted together": ("steps total_ns median_ns wait_ns place own_cores",
        {"step": SPENT}, [(2, 200 * MS, 100 * MS, 12, 1 / 3, None), (1, 1000 * MS, 1000 * MS, 0, 5 / 6, None)]),
    "cpu is that of the sample in which a step ends": ("own_cores delay_cores neighbour_cores",
        {"step": SPENT, "cpu_use": [use(500, 1000, "main", 400), use(500, 1000, "mindspore_thread", 100, 250),
                                    use(500, 1000, "neighbour", 250), use(1000, 2000, "trainer", 500),
                                    use(1000, 2000, "profiler", 500), use(1000, 2000, "launcher", 500)]},
        [(1.0, 0.5, 0.5), (0.5, None, 0.0)]),
    "the data of a step is that of all its batches where each was weighed": ("steps input_bytes",
        {"step": SPENT, "fetch": [{"pipeline_id": number, "fetch": at, "step": step, "bytes": size}
                                  for at, (number, step, size) in enumerate(
            [(0, 1, 100), (1, 1, 20), (0, 2, 140), (0, 3, 900), (1, 3, None), (0, None, 7)])]},
        [(2, 130.0), (1, None)]),
})  # fmt: skip

test_rows_of_step_phase_summary = answers("step/phase_summary", {
    "split phases come from windows and the others from outside": (
        "phase steps from_window mean_ns median_ns max_ns share",
        {"step": [phased_step(0, 0, 2, None, 10), phased_step(1, 10, 14, None, 20),
                  phased_step(2, 20, 60, 100, 120, in_window=True)]},
        [("compute", 2, False, 7.0, 7.0, 8, 0.7), ("data_wait", 2, False, 3.0, 3.0, 4, 0.3),
         ("forward_backward", 1, True, 40.0, 40.0, 40, 0.4), ("tail", 1, True, 20.0, 20.0, 20, 0.2)]),
    "data wait comes from windows when every step is in one": ("phase steps from_window share",
        {"step": [phased_step(0, 0, 3, 8, 10, in_window=True)]},
        [("data_wait", 1, True, 0.3), ("forward_backward", 1, True, 0.5), ("tail", 1, True, 0.2)]),
    "warmup stands in when there is no train step": ("rank phase kind mean_ns",
        {"step": [phased_step(0, 0, 1, None, 4, kind="warmup", rank=1), phased_step(0, 0, 1, None, 400, kind="warmup"),
                  phased_step(1, 400, 401, None, 404)]},
        [(0, "compute", "train", 3.0), (0, "data_wait", "train", 1.0), (1, "compute", "warmup", 3.0),
         (1, "data_wait", "warmup", 1.0)]),
    "steps without a forward start are one phase": ("phase steps mean_ns p90_ns share",
        {"step": [phased_step(0, 0, None, None, 10), phased_step(1, 10, None, None, 30)]},
        [("whole", 2, 15.0, 19.0, 1.0)]),
    "evaluation steps are left out": ("", {"step": [phased_step(0, 0, 1, 2, 3, kind="eval")]}, []),
})  # fmt: skip

test_rows_of_step_rank_spread = answers("step/rank_spread", {
    "names slowest and fastest rank of each phase": (
        "phase ranks slowest_rank slowest_median_ns fastest_rank fastest_median_ns spread_ratio",
        {"step": [split_at(0, 0, 0, 1, 10), split_at(1, 0, 0, 4, 10), split_at(2, 0, 0, 2, 10)]},
        [("compute", 3, 0, 9.0, 1, 6.0, 1.5), ("data_wait", 3, 1, 4.0, 0, 1.0, 4.0),
         ("step", 3, 0, 10.0, 0, 10.0, 1.0)]),
    "one rank has no spread": ("", {"step": [split_at(0, 0, 0, 1, 10), split_at(0, 1, 10, 11, 20)]}, []),
    "spread over a phase of no time is not known": ("phase spread_ratio",
        {"step": [split_at(0, 0, 0, 0, 10), split_at(1, 0, 0, 2, 10)]},
        [("compute", 10 / 8), ("data_wait", None), ("step", 1.0)]),
    "medians leave window steps out": ("phase slowest_rank slowest_median_ns fastest_median_ns",
        {"step": [split_at(0, 0, 0, 1, 10), split_at(0, 1, 10, 500, 900, in_window=True), split_at(1, 0, 0, 1, 20)]},
        [("compute", 1, 19.0, 9.0), ("data_wait", 0, 1.0, 1.0), ("step", 1, 20.0, 10.0)]),
})  # fmt: skip

test_rows_of_step_slowest = answers("step/slowest", {
    "slowest first and the earlier of equals": ("position step dur_ns",
        {"step": [step(0, 0, 20), step(1, 20, 50), step(2, 50, 80), step(3, 80, 90)]},
        [(1, 1, 30), (2, 2, 30), (3, 0, 20)]),
    "says how much was waiting and whether it was in a window": ("step in_window fetch_wait_ns fetch_wait_share",
        {"step": [step(0, 0, 20, fetch_wait_ns=5, in_window=True), step(1, 20, 30)]},
        [(0, True, 5, 0.25), (1, False, None, None)], {"top": 9}),
    "each rank has its own": ("rank step dur_ns",
        {"step": [step(0, 0, 20), step(1, 20, 30), step(0, 0, 7, rank=1), step(1, 7, 8, rank=1)]},
        [(0, 0, 20), (1, 0, 7)], {"top": 1}),
    "warmup and evaluation are no slow steps": ("step kind",
        {"step": [step(0, 0, 900, "warmup"), step(1, 900, 910), step(2, 910, 1900, "eval")]}, [(1, "train")],
        {"top": 5}),
}, top=3)  # fmt: skip

test_rows_of_step_curve = answers("step/curve", {
    "every step is a point when there are enough": (POINTS, tables(),
        [(0, 0, 0, 0, 1, 1, 50.0, 50, 2.0, 3.0, 45.0), (0, 1, 1, 1, 1, 0, 10.0, 10, 2.0, 3.0, 5.0),
         (0, 2, 2, 2, 1, 0, 20.0, 20, 2.0, 3.0, 15.0), (0, 3, 3, 3, 1, 0, 30.0, 30, 2.0, 3.0, 25.0),
         (1, 0, 0, 0, 1, 0, 70.0, 70, 2.0, 3.0, 65.0)], {"rep": -1, "rank": -1}),
    "fewer points stand for several steps": (POINTS, tables(),
        [(0, 0, 0, 1, 2, 1, 30.0, 50, 2.0, 3.0, 25.0), (0, 1, 2, 3, 2, 0, 25.0, 30, 2.0, 3.0, 20.0)], {"points": 2}),
    "communication of the steps": ("first_step comm_ns tail_comm_ns",
        {**tables(), "collective": [{"step": 1, "start_ns": 54, "dur_ns": 4}]},
        [(0, None, None), (1, 4.0, 3.0), (2, 0.0, 0.0), (3, 0.0, 0.0)], {"points": 9}),
}, rep=0, rank=0, points=4)  # fmt: skip

test_rows_of_step_parts = answers("step/parts", {
    "a step of a graph is wait launch passes and tail": (PARTED,
        {"step": [step(0, 0, 100, input_ns=20, fp_ns=30, bp_ns=90),
                  step(1, 100, 300, input_ns=60, fp_ns=170, bp_ns=270)]},
        [(1, "data_wait", 0, 60, 60, 0.3, 40.0, 2), (2, "launch", 60, 70, 10, 0.05, 10.0, 2),
         (3, "forward_backward", 70, 170, 100, 0.5, 80.0, 2), (4, "tail", 170, 200, 30, 0.15, 20.0, 2)], {"step": 1}),
    "a step trace of a device has no wait of its own": ("phase from_ns until_ns",
        {"step": [step(0, 0, 100, fp_ns=20, bp_ns=90)]},
        [("before_forward", 0, 20), ("forward_backward", 20, 90), ("tail", 90, 100)]),
    "passes that are told apart": ("phase until_ns",
        {"step": [step(0, 0, 100, input_ns=10, forward_ns=20, backward_ns=30, gradients_ns=0, optimizer_ns=25,
                       after_ns=15)]},
        [("data_wait", 10), ("forward", 30), ("backward", 60), ("gradients", 60), ("optimizer", 85), ("after", 100)]),
    # the forward pass of the last would begin before the step
    "what is not known is not divided": ({"step": [step(0, 0, 100, input_ns=10), step(1, 100, 200, fp_ns=130),
            step(2, 200, 300), step(3, 300, 400, fp_ns=7)]}, ("phase part_ns", [("data_wait", 10), ("compute", 90)]),
        ("phase part_ns", [("before_forward", 30), ("compute", 70)], {"step": 1}),
        ("phase part_ns", [("whole", 100)], {"step": 2}), ("phase part_ns", [("whole", 100)], {"step": 3})),
    "the mean is of steps that were recorded alike": ({"step": [step(0, 0, 900, kind="warmup"), step(1, 900, 1000),
            step(2, 1000, 1300), step(3, 1300, 2000, in_window=True)]}, ("mean_ns steps", [(200.0, 2)], {"step": 2}),
        ("mean_ns steps in_window", [(700.0, 1, True)], {"step": 3})),
    "no such step and evaluation": ("phase", {"step": [step(0, 0, 100), step(1, 100, 200, kind="eval")]}, [],
        {"step": 1}),
    "every rank has its own": ("rank part_ns", {"step": [step(0, 0, 100), step(0, 0, 150, rank=1)]},
        [(0, 100), (1, 150)]),
    "a step without operators has a backward end that is told otherwise": (
        "phase from_ns until_ns bp_source bp_error_ns",
        {"step": [step(0, 0, 100, input_ns=20, fp_ns=20, fp_source="fetch", bp_ns=70, bp_source="update",
                       bp_error_ns=3)]},
        [("data_wait", 0, 20, "update", 3), ("forward_backward", 20, 70, "update", 3), ("tail", 70, 100, "update", 3)]),
    "where passes are told apart the backward end divides nothing": ("bp_source bp_error_ns",
        {"step": [step(0, 0, 100, input_ns=10, fp_ns=10, bp_ns=60, bp_source="op", bp_error_ns=0, forward_ns=20,
                       backward_ns=30, gradients_ns=0, optimizer_ns=25, after_ns=15)]}, [(None, None)] * 6),
}, step=0)  # fmt: skip

test_rows_of_step_split = answers("step/split", {
    "means and shares of a rank": ({"step_split": [{"source": "step_trace_time", "source_step": n,
            "computing_ns": computing, "exposed_ns": 30, "overlapped_ns": 5, "free_ns": 20, "stage_ns": 60,
            "bubble_ns": 20, "preparing_ns": 7} for n, computing in ((1, 40), (2, 60))]},
        ("source steps step_ns computing_ns communication_ns exposed_ns free_ns stage_ns bubble_ns preparing_ns",
         [("step_trace_time", 2, 100.0, 50.0, 35.0, 30.0, 20.0, 60.0, 20.0, 7.0)]),
        ("computing_share exposed_share free_share bubble_share", [(0.5, 0.3, 0.2, 0.25)])),
    "what the source does not have is null": ("step_ns communication_ns free_ns bubble_ns free_share bubble_share",
        {"step_split": [{"source": "cluster_analyse", "computing_ns": 10, "exposed_ns": 30}]},
        [(40.0, None, None, None, None, None)]),
})  # fmt: skip

test_rows_of_step_stages = answers("step/stages", {
    "stages of a name are added up": ("stage count start_ns dur_ns",
        {"stage": rows("stage start_ns dur_ns", ("compile", 50, 10), ("compile", 20, 5), ("import", 1, 9))},
        [("compile", 2, 20, 15), ("import", 1, 1, 9)]),
    "the first step counts from the launch": ("stage count dur_ns",
        {"step": rows("step kind_step kind start_ns end_ns", (0, 0, "eval", 1, 3), (1, 0, "warmup", 5, 30),
                      (2, 1, "train", 30, 40))}, [("first_step", 1, 30)]),
})  # fmt: skip

test_rows_of_step_summary = answers("step/summary", {
    "times by kind": ("kind steps timed_steps mean_ns median_ns p90_ns min_ns max_ns",
        {"step": [step(0, 0, 100, "warmup"), step(1, 100, 110), step(2, 110, 130), step(3, 130, 160),
                  step(4, 160, 165, "eval")]},
        [("eval", 1, 1, 5.0, 5.0, 5.0, 5, 5), ("train", 3, 3, 20.0, 20.0, 28.0, 10, 30),
         ("warmup", 1, 1, 100.0, 100.0, 100.0, 100, 100)]),
    "steps in windows are counted but not timed": ("steps window_steps timed_steps from_window mean_ns max_ns",
        {"step": [step(0, 0, 10), step(1, 10, 20), step(2, 20, 1020, in_window=True)]}, [(3, 1, 2, False, 10.0, 10)]),
    "all count when every step is in a window": ("steps window_steps timed_steps from_window mean_ns",
        {"step": [step(0, 0, 10, in_window=True), step(1, 10, 40, in_window=True)]}, [(2, 2, 2, True, 20.0)]),
    "an unknown window counts as outside": ("timed_steps mean_ns",
        {"step": [step(0, 0, 10, in_window=None), step(1, 10, 1000, in_window=True)]}, [(1, 10.0)]),
    "deviation is the sample one and null for one step": ("kind stddev_ns",
        {"step": [step(0, 0, 10), step(1, 10, 40), step(2, 40, 41, "eval")]}, [("eval", None), ("train", sqrt(200))]),
    "repetitions and ranks stay apart": ("rep rank mean_ns",
        {"step": [step(0, 0, 10 * (1 + rep + 2 * rank), rep=rep, rank=rank) for rep in (1, 0) for rank in (1, 0)]},
        [(0, 0, 10.0), (0, 1, 30.0), (1, 0, 20.0), (1, 1, 40.0)]),
})  # fmt: skip

test_rows_of_step_sync = answers("step/sync", {
    "lines are ordered by their time and divided by all steps": (
        "position call site via count steps total_ns mean_ns max_ns per_step share",
        {"step": ALL,
         "sync": [sync(0, 2, 30), sync(1, 1, 10), sync(3, 4, 20, "__str__", "train.py:12", via="_loss_monitor.py")]},
        [(1, "asnumpy", "train.py:9", None, 3, 2, 40, 40 / 3, 30, 0.75, 0.1),
         (2, "__str__", "train.py:12", "_loss_monitor.py", 4, 1, 20, 5.0, 20, 1.0, 0.05)]),
    "what is outside of training steps does not count": ("count",
        {"step": [*ALL, step(4, 400, 500, "eval")], "sync": [sync(4, 9, 90), sync(None, 9, 90)]}, []),
    "calls of no known line are counted together": ("call site count",
        {"step": ALL, "sync": [sync(0, 1, 5, None, None), sync(1, 1, 5, None, None)]}, [(None, None, 2)]),
})  # fmt: skip

test_rows_of_step_trace = answers("step/trace", {
    "what windows saw divides all steps and adds up": (TRACED,
        {"step": [traced(0, 0, 110), traced(1, 110, 222),
                  traced(2, 222, 432, in_window=True, parts=(100, 50, 0, 0, 50))]},
        [("data_wait", True, 2, 1, 10), ("forward", False, 2, 1, 51), ("backward", False, 2, 1, 25),
         ("gradients", False, 2, 1, 0), ("optimizer", False, 2, 1, 0), ("after", False, 2, 1, 25)]),
    "inflation is of what follows the batch": ("inflation",
        {"step": [traced(0, 0, 110), traced(1, 110, 320, in_window=True, parts=(100, 50, 0, 0, 50))]}, [(2.0,)] * 6),
    "a compiled step keeps fp and bp": (TRACED,
        {"step": [traced(0, 0, 110), traced(1, 110, 220, in_window=True, fp_ns=130, bp_ns=180)]},
        [("data_wait", True, 1, 1, 10), ("launch", False, 1, 1, 10), ("forward_backward", False, 1, 1, 50),
         ("tail", False, 1, 1, 40)]),
    # Three windows of one step each; the first, cold one has a tail of 1,000. Of all steps 60 and 40 are spent.
    "the first steps of a training do not decide how all are divided": ("phase mean_ns",
        {"step": [*[traced(number, 110 * number, 110 * (number + 1), input_ns=0) for number in range(7)],
                  *[traced(10 + number, start, end, in_window=True, input_ns=0, fp_ns=fp, bp_ns=bp)
                    for number, (start, fp, bp, end) in enumerate(
            [(2000, 2010, 2070, 3070), (4000, 4010, 4070, 4110), (5000, 5010, 5070, 5110)])]]},
        [("data_wait", 0), ("launch", 10), ("forward_backward", 60), ("tail", 40)]),
    # Two updates with each batch: the second one is a step of its own.
    "a step that fetches nothing does not wait": (TRACED,
        {"step": [traced(0, 0, 110), traced(1, 110, 200, input_ns=None)]},
        [("data_wait", True, 2, 0, 5), ("compute", True, 2, 0, 95)]),
    "what windows saw divides the time behind the mean wait": ("phase mean_ns",
        {"step": [traced(0, 0, 110), traced(1, 110, 200, input_ns=None),
                  traced(2, 200, 410, in_window=True, parts=(100, 50, 0, 0, 50))]},
        [("data_wait", 5), ("forward", 48), ("backward", 23), ("gradients", 0), ("optimizer", 0), ("after", 24)]),
})  # fmt: skip

test_rows_of_step_trace_curve = answers("step/trace_curve", {
    "training steps are numbered without the evaluation between them": (
        "first_step last_step max_step first_kind_step last_kind_step max_kind_step",
        {"step": [step(0, 0, 10), step(1, 10, 20, kind="eval"), step(2, 20, 30), step(3, 30, 90)]},
        [(0, 3, 3, 0, 2, 2)]),
}, points=1, rep=0, rank=0)  # fmt: skip

test_rows_of_step_variation = answers("step/variation", {
    "spread long steps and drift": ("phase steps median_ns spread_ns spread_ratio long_steps long_ns drift_ns",
        varying([100, 100, 100, 200, 100, 100, 100, 100]),
        [("compute", 8, 99.0, 0.0, 0.0, 1, 100.0, 0.0), ("data_wait", 8, 1.0, 0.0, 0.0, 0, 0.0, 0.0),
         ("step", 8, 100.0, 0.0, 0.0, 1, 100.0, 0.0)]),
    "the spread is that of the middle half": ("phase spread_ns drift_ns", varying([10, 20, 30, 40, 50]),
        [("compute", pytest.approx(20 / 1.349), 25.0), ("data_wait", 0.0, 0.0),
         ("step", pytest.approx(20 / 1.349), 25.0)]),
    "one step does not drift": ("phase spread_ns drift_ns", varying([10]),
        [("compute", 0.0, None), ("data_wait", 0.0, None), ("step", 0.0, None)]),
})  # fmt: skip

test_rows_of_step_with_operators = answers("step/with_operators", {
    "training steps with operators and their executions": ("kind_step count",
        {"step": rows("step kind kind_step", (0, "warmup", 0), (1, "eval", 0), (2, "train", 1), (3, "train", 2)),
         "op": [{"op_id": 1, "step": step} for step in (0, 1, 3, 3, None)]}, [(0, 1), (2, 2)]),
})  # fmt: skip


@pytest.mark.parametrize(("more", "expected"), [
    ({}, [("data_wait", True, 1, 0, 10), ("compute", True, 1, 0, 90)]),
    ({"input_ns": None}, [("whole", True, 1, 0, 100)]),
])  # fmt: skip
def test_without_windows_only_what_is_measured_in_every_step(ask, more, expected):
    assert ask("step/trace", {"step": [traced(0, 0, 100, **more)]}, give=TRACED) == expected


def test_a_step_has_the_finest_parts_that_are_known_and_they_add_up(ask):
    rows = asked(ask, 9)
    assert [parts(row) for row in rows] == [
        {"whole": 100},
        {"data_wait": 10, "compute": 40},
        {"data_wait": 5, "forward_backward": 25, "tail": 10},
        {"data_wait": 6, "forward": 5, "backward": 10, "gradients": 2, "optimizer": 4, "after": 3},
        {"whole": 40},
    ]
    assert [(row["first_step"], row["warmup_steps"], row["max_fetch_ns"]) for row in rows] == [
        (0, 1, None), (1, 0, None), (2, 0, 4), (3, 0, None), (4, 0, None),
    ]  # fmt: skip


def test_fewer_points_keep_the_longest_step_and_its_place_and_still_add_up(ask):
    rows = asked(ask, 2)
    assert [(row["steps"], row["start_ns"], row["end_ns"], row["dur_ns"]) for row in rows] == [
        (3, 0, 190, 190 / 3), (2, 190, 260, 35.0),
    ]  # fmt: skip
    assert [(row["max_ns"], row["max_step"], row["max_start_ns"]) for row in rows] == [(100, 0, 0), (40, 4, 220)]
    for one in rows:
        assert abs(sum(parts(one).values()) - one["dur_ns"]) < 1e-6
