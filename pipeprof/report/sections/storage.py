"""What reading costs the training in focus, and what caches and MindRecord would bring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pipeprof.report.sections.block import Block, Section, rows_at
from pipeprof.units import format_bytes, format_ratio
from pipeprof.verdict.storage import CachePoint

CHANGES = {
    "random": "random: every epoch would get the same",
    "order": "shuffles: every epoch would get one order",
    "batches": "if the source shuffles, every epoch would get the same batches",
}
DOUBTS = {
    "lock": (
        "Threads wait for the interpreter's lock (GIL) in this run, which cannot be told from waiting for a file:"
        " reading may be less than is shown"
    ),
    "no_core": "No core was idle: what a cache takes off the CPU may bring more than is shown",
    "not_timed": "Not every operator is timed: the speeds are as stated only if those others keep up",
}
MEASURED_BEFORE = "measured before, by `{}`:"
HOW = (
    "MindSpore's DatasetCache (dataset-cache --start) holds rows of native sources and of maps behind them, not of a"
    " GeneratorDataset: there, let the source keep its rows, or write them once, as MindRecord for instance"
)
SAME_ROWS = "A cache after an operator with Python of yours is right only if that gives the same for a row every time"
NOTHING_READ = "No source waits for what it reads"
NOT_TIMED = "What reading takes is not known: no operator that reads was timed"


def storage_section(content: dict[str, Any], focus: tuple[int, int]) -> Section:
    """The pipelines of the rank in focus, one after the other; where there are several, each with its place."""
    section = Section("Storage and caches")
    advice = rows_at(content["storage"], focus)
    made = rows_at(content["pipeline"]["pipelines"], focus) if len(advice) > 1 else []
    sites = {row["pipeline_key"]: f"Pipeline at {row['site'] or 'an unknown place'}: " for row in made}
    for pipeline in advice:
        _add(section, pipeline, sites.get(pipeline.get("pipeline_key"), ""))
    section.notes = list(dict.fromkeys(section.notes))
    return section


def _add(section: Section, pipeline: dict[str, Any], of: str) -> None:
    """One pipeline; `of` stands in front of what is of it alone."""
    caption = (of.rstrip(": "),) if of else ()
    section.strong.append(of + _split(pipeline["split"]))
    if pipeline["readers"]:
        section.blocks.append(replace(_curve(pipeline["curve"]), caption=caption))
    else:
        is_known = pipeline["split"]["reading"] is not None
        section.notes.append(of + (NOTHING_READ if is_known else NOT_TIMED))
    if pipeline["branches"]:
        section.notes.append(f"{of}Rows come from several sources: what one cache would bring cannot be said")
    points = [CachePoint(**one) for one in pipeline["points"]]
    if points:
        section.strong.append(of + _best(points, pipeline["best"]))
        section.blocks.append(replace(_points(points), caption=caption))
        section.notes.append(HOW)
    if any(point.python for point in points):
        section.notes.append(SAME_ROWS)
    section.notes += [of + DOUBTS[code] for code in pipeline["doubts"]]


def operator(point: Mapping[str, Any]) -> str:
    """`MapOp 3 decode`."""
    return " ".join(str(part) for part in (point["op_type"], point["op_id"], point["name"]) if part not in (None, ""))


def _split(split: dict[str, Any]) -> str:
    parts = [f"{format_ratio(split[name])} for {words}"
             for name, words in (("reading", "reading"), ("preparing", "preparing"), ("hand_over", "handing over"))
             if (split[name] or 0.0) > 0]  # fmt: skip
    of_them = f": {', '.join(parts)}" if parts else ""
    return f"In the steady state the loop waits for data {format_ratio(split['wait'])} of its time{of_them}"


def _curve(curve: list[dict[str, Any]]) -> Block:
    head = ("share of the data cached in memory", "batches/s", "speed")
    rows = [[format_ratio(one["cached"]), f"{one['rate']:.1f}", f"x{one['ratio']:.2f}"] for one in curve]
    return Block(head, rows, frozenset((0, 1, 2)))


def _best(points: Sequence[CachePoint], op_id: int | None) -> str:
    best = next((one for one in points if one.op_id == op_id), None)
    if best is None:
        return "No cache that leaves the data as it is would bring 2 % or more"
    size = "of unknown size" if best.bytes is None else f"of {format_bytes(best.bytes)}"
    site = f" ({best.site})" if best.site else ""
    origin = MEASURED_BEFORE.format(best.trial) if best.trial else "predicted"
    return f"Best cache: {size}, in memory, after {operator(best.op)}{site}: {origin} x{best.ratio:.2f}"


def _points(points: Sequence[CachePoint]) -> Block:
    head = ("cache after", "rows", "size", "in memory", "on the same storage", "changes the data")
    rows = [
        [
            operator(one.op),
            "-" if one.rows is None else f"{one.rows:.0f}",
            "-" if one.bytes is None else format_bytes(one.bytes),
            f"x{one.ratio:.2f}{' (measured)' if one.trial else ''}",
            "-" if one.disk_ratio is None else f"x{one.disk_ratio:.2f}",
            CHANGES.get(one.changes or "", "no sign of it"),
        ]
        for one in points
    ]
    return Block(head, rows, frozenset((1, 2, 3, 4)), spare=(1,))


# A MindRecord file of encoded pictures: `files` are the (path, label) of the script, in its order.
WRITE = (
    "from pathlib import Path",
    "from mindspore.mindrecord import FileWriter",
    'writer = FileWriter("train.mindrecord", overwrite=True)',
    'schema = {"image": {"type": "bytes"}, "label": {"type": "int32"}}',
    'writer.add_schema(schema, "rows")',
    "for path, label in files:",
    "    data = Path(path).read_bytes()",
    '    writer.write_raw_data([{"image": data, "label": label}])',
    "writer.commit()",
)
READ = (
    'data = ds.MindDataset("train.mindrecord", ["image", "label"])',
    'data = data.map(vision.Decode(), ["image"])  # RGB; cv2.imread gives BGR',
)


def mindrecord(source: Mapping[str, Any] | None) -> Section:
    """What to write instead of a source that waits for many small files, with the code that does it."""
    if not source:
        return Section("")
    site = f" ({source['site']})" if source["site"] else ""
    size = "" if source["read_bytes"] is None else f", {format_bytes(source['read_bytes'])} each"
    waits = f"waits {format_ratio(source['share'])} of a row's time for small files{size}"
    gain = f"as one MindRecord file at most x{source['most']:.2f}, its rows in another order where they are shuffled"
    code = [*WRITE, "# Then, in place of the source:", *READ]
    title = "Not tried: small files as one MindRecord"
    return Section(title, notes=[f"{operator(source)}{site} {waits}: {gain}."], code=code, language="python")
