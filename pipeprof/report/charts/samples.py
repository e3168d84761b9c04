"""Panels of what was sampled over time: waits for batches, queues, CPU, memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pipeprof.escape import line
from pipeprof.report.charts.chart import COLOURS, alone, coloured, filled, middle_cut
from pipeprof.report.charts.overtime import ALONG, OWN, Panel, bands
from pipeprof.report.charts.overtime import seconds as _s
from pipeprof.report.words.names import CPU_USERS
from pipeprof.units import NS_PER_MS, byte_unit, format_bytes, format_ns, format_ratio

Row = dict[str, Any]

POINTS = 300
MOST = 8  # lines of a panel
MOST_LETTERS = 40  # of the name of one
_BELOW = "a line of the queues to the device is the mean of several batches, the band below it reaches to the least"
_NOTICED = 0.05  # cores
CONSUMERS = {
    "trainer": ("training process", COLOURS[0]),
    "pipeline": (CPU_USERS["dataset_thread"], COLOURS[1]),
    "worker": (CPU_USERS["worker"], COLOURS[5]),
    "other": ("everything else on the machine", COLOURS[7]),
}


def waits(rows: Sequence[Row]) -> Panel | None:
    """The longest wait for a batch, from rows of step/trace_curve; None when nothing was fetched."""
    fetched = [row for row in rows if row["max_fetch_ns"] is not None]
    if not fetched:
        return None
    longest = max(fetched, key=lambda row: (row["max_fetch_ns"], -row["first_step"]))
    said = f"the longest is {format_ns(longest['max_fetch_ns'])}, near step {longest['first_kind_step']}"
    bars = [
        {"from": _s(row["start_ns"]), "to": _s(row["end_ns"]), "of": "wait",
         "low": 0, "high": round(row["max_fetch_ns"] / NS_PER_MS, 6)}
        for row in fetched
    ]  # fmt: skip
    notes = ("of several waits the longest is drawn",) if any(row["steps"] > 1 for row in fetched) else ()
    return Panel(bands(bars, {"wait": COLOURS[1]}, "ms"), said, notes)


def queues(rows: Sequence[Row], names: Mapping[tuple[str, int], str], *, apart: bool = False) -> Panel | None:
    """The fill of the queues of the training, from rows of queue/curve; None when none was sampled.

    `names` of operators by pipeline and number.
    `apart`, here and below: on an axis of its own, where all samples are from before the first or after the last step.
    """
    of_training = [row for row in rows if row["role"] == "train"] or list(rows)
    sampled = [row for row in of_training if row["mean_ratio"] is not None]
    by_queue: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in sampled:
        by_queue[row["pipeline_key"], row["op_id"]].append(row)
    if not by_queue:
        return None
    fullest = sorted(by_queue, key=lambda queue: (_fill(by_queue[queue]), queue[1]))
    emptiest = by_queue[fullest[0]]
    shown = {queue: own for queue, own in by_queue.items() if queue in fullest[:MOST]}
    said = f"the emptiest on average is that behind `{_name(emptiest[0], names)}`, {format_ratio(_fill(emptiest))} full"
    several = len({key for key, _ in shown}) > 1
    points = [
        {
            "t": _s(row["t_ns"]),
            "fill": round(row["mean_ratio"], 4),
            "of": _name(row, names, several=several),
            **_reach(row),
        }
        for own in shown.values()
        for row in own
    ]
    notes = ["a queue that runs empty makes its reader wait", "queues are drawn from the start, in which they fill"]
    if len(by_queue) > MOST:
        notes.append(f"the {MOST} emptiest of {len(by_queue)} queues")
    if any("low" in point for point in points):
        notes.append("a line is the mean of several samples, the band around it reaches from the least to the most")
    return Panel(_lines(points, "fill", "full", "%", apart=apart), said, notes, _ends(points))


def sink(rows: Sequence[Row], *, apart: bool = False) -> Panel | None:
    """Batches in the queues on the host and on the device, from rows of queue/sink_curve; None without times."""
    names = {"host_queue": "host queue", "data_queue": "data queue on the device"}
    timed = [row for row in rows if row["t_ns"] is not None]
    if not timed:
        return None
    points = [
        {"t": _s(row["t_ns"]), "depth": round(row["mean_depth"], 3), "of": names[row["side"]], **_down(row)}
        for row in timed
    ]
    sides = {
        side: [row for row in timed if row["side"] == side] for side in dict.fromkeys(row["side"] for row in timed)
    }
    means = [
        f"the {names[side]} holds {_mean(own, 'mean_depth', 'batches'):.1f} batches on average"
        for side, own in sides.items()
    ]
    notes = [_BELOW] if any("low" in point for point in points) else []
    return Panel(_lines(points, "depth", "batches", apart=apart), "; ".join(means), notes, _ends(points))


def _down(row: Row) -> Row:
    """From the least depth up to the line, where several batches are one point."""
    return {"low": row["low_depth"], "high": round(row["mean_depth"], 3)} if row["batches"] > 1 else {}


def _mean(rows: Sequence[Row], value: str, count: str) -> float:
    mean: float = sum(row[value] * row[count] for row in rows) / sum(row[count] for row in rows)
    return mean


def _reach(row: Row) -> Row:
    """The least and the most fill, where several samples are one point."""
    if row["samples"] < 2 or not row["capacity"]:
        return {}
    return {end: round(row[f"{end}_depth"] / row["capacity"], 4) for end in ("low", "high")}


def _name(row: Row, names: Mapping[tuple[str, int], str], *, several: bool = False) -> str:
    """An operator by its name in the user's code, with the pipeline where there are several."""
    of = f" of {line(row['pipeline_key'])[:6]}" if several else ""
    name = names.get((row["pipeline_key"], row["op_id"])) or f"{line(row['op_type'] or 'operator')} {row['op_id']}"
    return f"{middle_cut(name, MOST_LETTERS)}{of}"


def cpu(rows: Sequence[Row]) -> Panel | None:
    """Cores in use, from rows of host/cpu_curve; None when they were not sampled."""
    by_slot: dict[int, dict[str, Row]] = defaultdict(dict)
    for row in rows:
        by_slot[row["slot"]][row["consumer"]] = row
    bars, total = [], []
    for own in by_slot.values():
        below = 0.0
        for consumer, (name, _) in CONSUMERS.items():
            if consumer in own and own[consumer]["cores"]:
                row, above = own[consumer], below + own[consumer]["cores"]
                bars.append({"from": _s(row["start_ns"]), "to": _s(row["end_ns"]), "of": name,
                             "low": round(below, 4), "high": round(above, 4)})  # fmt: skip
                below = above
        total.append(below)
    if not bars:
        return None
    first = [next(iter(own.values())) for own in by_slot.values()]
    most = [{"t": _s(row["start_ns"]), "cores": round(row["most_cores"], 4)} for row in first]
    highest = max(one["cores"] for one in most)
    said = f"up to {highest:.1f} cores of the machine are busy"
    seen = highest > max(total) + _NOTICED
    drawn = bands(bars, dict(CONSUMERS.values()), "cores", {"zero": True}, most=most if seen else [])
    notes = ("cores are means of several samples, the line above them is the busiest one",) if seen else ()
    return Panel(drawn, said, notes)


def memory(rows: Sequence[Row], *, apart: bool = False) -> Panel | None:
    """The levels of one rank from rows of memory/curve, without the whole machine's; None when there are none."""
    levels: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row["device"] != "host" and row["high_bytes"] is not None:
            levels[_level_name(row)].append(row)
    peaks = sorted(levels, key=lambda name: (-max(row["high_bytes"] for row in levels[name]), name))
    if not peaks:
        return None
    highest = max(levels[peaks[0]], key=lambda row: (row["high_bytes"], -row["high_ns"]))
    said = (
        f"the highest level is {format_bytes(highest['high_bytes'])} ({peaks[0]}), at {format_ns(highest['high_ns'])}"
    )
    unit, size = byte_unit(highest["high_bytes"])
    points = [
        {"t": _s(row["high_ns"]), "level": (high := round(row["high_bytes"] / size, 3)), "of": name,
         **({"low": round(row["low_bytes"] / size, 3), "high": high} if row["samples"] > 1 else {})}
        for name in peaks[:MOST]
        for row in levels[name]
    ]  # fmt: skip
    notes = [f"the {MOST} highest of {len(levels)} levels"] if len(levels) > MOST else []
    if any("low" in point for point in points):
        notes.append("a line of the memory is the most of several samples, the band below it reaches to the least")
    ends = _ends([point | {"of": ""} for point in points])  # processes may end before the first step
    return Panel(_lines(points, "level", unit, apart=apart), said, notes, ends)


def _level_name(row: Row) -> str:
    process = f" {row['pid']}" if row["pid"] else ""
    return line(f"{row['device']} {row['name']}".strip() + process)


def _lines(points: Sequence[Row], field: str, title: str, form: str | None = None, *, apart: bool) -> Row:
    names = list(dict.fromkeys(point["of"] for point in points))
    return filled(
        "lines", points=points, field=field, title=title, along=OWN if apart else ALONG,
        axis={"tickCount": 4, **({"format": form} if form else {})},
        scale={"domain": [0, 1]} if form else {"zero": True},
        names=coloured(dict(zip(names, COLOURS, strict=False))),
        reaches=any("low" in point for point in points), single=alone(points, "of"),
    )  # fmt: skip


def _ends(points: Sequence[Row]) -> list[tuple[float, float]]:
    """First and last time of each line, s."""
    times: dict[str, list[float]] = defaultdict(list)
    for point in points:
        times[point["of"]].append(point["t"])
    return [(min(own), max(own)) for own in times.values()]


def _fill(rows: Sequence[Row]) -> float:
    return _mean(rows, "mean_ratio", "samples")
