"""Files of two ranks as torch_npu writes them, with drawn times; what each step holds is counted tick by tick.

A tick is a tenth of a microsecond: the files have times with one digit behind the point.
"""

import json
from collections import defaultdict
from random import Random

EPOCH_US = 1_700_000_000_000_000
KINDS = ("MatMul", "Conv2D", "Add", "Relu", "Cast")
STEPS, KERNELS, LENGTH = 3, 30, 12_000  # ticks of a step
FIRST = 50  # number of the first step
PARTS = ("Computing", "Communication(Not Overlapped)", "Overlapped", "Communication", "Free", "Stage")


def us(tick):
    return f"{EPOCH_US + tick // 10}.{tick % 10}00"


def dur(ticks):
    return f"{ticks // 10}.{ticks % 10}"


def csv_text(head, rows):
    return "\n".join(",".join(map(str, row)) for row in [head, *rows]) + "\n"


def kernels_of(chance, begin):
    """(name, type, stream, start, length) of a step's kernels, one after the other, and its two collectives."""
    at, found = begin + 400, []
    for number in range(KERNELS):
        length = chance.randint(20, 300)
        kind = KINDS[number % len(KINDS)]
        found.append((f"{kind}{number}", kind, 2, at, length))
        at += length + chance.choice([0, 5, 40])
    for number in range(2):
        start = begin + 3_000 + 4_000 * number + chance.randint(0, 900)
        found.append((f"hcom_allReduce__586_{number}_1", "hcom_allReduce_", 5, start, chance.randint(800, 2_500)))
    return found


def split_of(kernels, begin):
    """Ticks of each part of a step, counted one by one, and the stretches of the four that are drawn."""
    end = begin + LENGTH
    computing, communicating = set(), set()
    for _, kind, _, start, length in kernels:
        (communicating if kind.startswith("hcom") else computing).update(range(start, start + length))
    free = set(range(begin, end)) - computing - communicating
    marks = {"Computing": computing, "Communication": communicating, "Free": free,
             "Communication(Not Overlapped)": communicating - computing}  # fmt: skip
    ticks = {name: len(found) for name, found in marks.items()}
    ticks |= {"Overlapped": len(communicating & computing), "Stage": LENGTH}
    return ticks, {name: stretches(found) for name, found in marks.items()}


def stretches(ticks):
    """(start, length) of each run of neighbours."""
    found = []
    for tick in sorted(ticks):
        if found and sum(found[-1]) == tick:
            found[-1][1] += 1
        else:
            found.append([tick, 1])
    return found


def write_rank(folder, rank, chance):
    out = folder / f"rank{rank}_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    out.mkdir(parents=True)
    info = {"config": {"common_config": {"x": 1}}, "rank_id": rank}
    (out.parent / f"profiler_info_{rank}.json").write_text(json.dumps(info), encoding="utf-8")
    events = [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
        for pid, name in enumerate(["Python", "CANN", "Ascend Hardware", "HCCL", "Overlap Analysis"], 1)
    ]
    events += [{"ph": "M", "name": "thread_name", "pid": 4, "tid": 0, "args": {"name": "Group 0 Communication"}}]

    def event(name, pid, tid, start, length, **more):
        events.append(
            {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": us(start), "dur": float(dur(length)), **more}
        )

    details, splits, totals = [], [], defaultdict(list)
    for number in range(STEPS):
        begin, step = number * (LENGTH + 100), FIRST + number
        kernels = kernels_of(chance, begin)
        ticks, drawn = split_of(kernels, begin)
        splits.append(ticks)
        event(f"ProfilerStep#{step}", 1, 7, begin, LENGTH, cat="cpu_op")
        for name, kind, stream, start, length in kernels:
            collective = kind.startswith("hcom")
            event(name, 4 if collective else 3, 0 if collective else stream, start, length, **(
                {} if collective else {"args": {"Task Type": "AI_CORE"}}))  # fmt: skip
            core = "HCCL" if collective else "AI_CORE"
            details.append([step, 1, number, stream, name, kind, core, f"{us(start)}\t", dur(length), 0, "N/A", "N/A"])
            if not collective:
                totals[kind, core].append(length)
        for tid, (name, found) in enumerate(drawn.items()):
            for start, length in found:
                event(name, 5, tid, start, length)
    (out / "trace_view.json").write_text(json.dumps(events), encoding="utf-8")
    (out / "kernel_details.csv").write_text(
        csv_text(["Step Id", "Model ID", "Task ID", "Stream ID", "Name", "Type", "Accelerator Core", "Start Time(us)", "Duration(us)", "Wait Time(us)", "Input Shapes", "Output Shapes"], details))  # fmt: skip
    (out / "step_trace_time.csv").write_text(
        csv_text(["Step", *PARTS, "Bubble"], [[FIRST + at, *(dur(row[part]) for part in PARTS), 0]
                                              for at, row in enumerate(splits)]))  # fmt: skip
    (out / "op_statistic.csv").write_text(
        csv_text(["OP Type", "Core Type", "Count", "Total Time(us)", "Min Time(us)", "Avg Time(us)", "Max Time(us)", "Ratio(%)"], [
            [kind, core, len(found), dur(sum(found)), dur(min(found)), f"{sum(found) / 10 / len(found):.3f}", dur(max(found)), 1]
            for (kind, core), found in totals.items()]))  # fmt: skip
    write_memory(out, chance)
    return [{name: 100 * ticks for name, ticks in row.items()} for row in splits]


def write_memory(out, chance):
    """Blocks of the allocator, some of which are never released, and samples of two components."""
    whole, blocks, samples = STEPS * (LENGTH + 100), [], []
    for number in range(150):
        start, length = chance.randint(0, whole), chance.randint(1, whole // 3)
        kept = number % 12 == 0
        ends = ["", ""] if kept else [f"{us(start + length)}\t", dur(length)]
        blocks.append([f"aten::op{number % 9}", chance.choice([0.5, 2, 64, 1024, 3072.5]), f"{us(start)}\t", *ends])
    (out / "operator_memory.csv").write_text(
        csv_text(["Name", "Size(KB)", "Allocation Time(us)", "Release Time(us)", "Duration(us)"], blocks))  # fmt: skip
    for tick in sorted(chance.sample(range(whole), 120)):
        held = chance.randint(1, 4000) / 4
        samples.append(["PTA", f"{us(tick)}\t", held, held + 100, held, 7, "NPU:0"])
    samples += [["APP", f"{us(whole)}\t", "", 3000, "", "", "NPU:0"]]
    (out / "memory_record.csv").write_text(
        csv_text(["Component", "Timestamp(us)", "Total Allocated(MB)", "Total Reserved(MB)", "Total Active(MB)", "Stream Ptr", "Device Type"], samples))  # fmt: skip


def write(folder):
    """Two ranks; returns, of each rank and step, the ns of each part."""
    chance = Random(5)  # noqa: S311 - test data
    return [write_rank(folder, rank, chance) for rank in (0, 1)]
