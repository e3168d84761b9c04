"""Length and phases of the training steps, the slowest ones, and the stages of the set-up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeprof.report.sections.block import Block, Section, filled, in_windows, portion, rows_at, timed_steps, times
from pipeprof.report.words import training
from pipeprof.report.words.names import INTERVALS, TRACE, title
from pipeprof.report.words.training import LEAST_WAIT, PARTS, repeated_passes
from pipeprof.units import format_count, format_ns, format_ratio

LEAST_STEPS = 5  # to speak of variation
CALLS = {"__str__": "printing it", "__repr__": "printing it", "__bool__": "if or while", "__float__": "float()",
         "__int__": "int()", "__index__": "as an index", "__array__": "NumPy", "__contains__": "in"}  # fmt: skip
STAGES = {
    **{stage: PARTS[stage] for stage in ("start", "import", "compile")},
    "build": "from the import until the first step", "warmup": "from the first step until steady ones",
    "steady": "from the first steady step until the last", "first_step": "launch until the first step is done",
}  # fmt: skip
BACKWARD_ENDS = {
    "update": "when the optimizer is called",
    "call": "when the compiled function that makes the gradients returns",
    "share": "at the same share of the time as in steps with recorded operators",
}  # by bp_source


def steps_section(content: dict[str, Any], focus: tuple[int, int]) -> Section:
    """The rank in focus; FP and BP of every rank that has them."""
    steps = content["steps"]
    section = Section("Steps")
    _chosen(section, content, focus)
    inference = training.is_inference(content["run"])
    rows = [
        [
            training.KINDS.get(row["kind"], row["kind"]) if inference else row["kind"],
            timed_steps(row),
            *times(row),
            format_ns(row["stddev_ns"]),
        ]
        for row in rows_at(steps["summary"], focus)
    ]
    if rows:
        section.blocks.append(
            Block(("kind", "steps", "mean", "median", "p90", "max", "std dev"), rows, frozenset(range(1, 7)))
        )
    parted = _trace(section, rows_at(steps["trace"], focus), windowed=in_windows(content))
    _waiting(section, content, focus)
    phases = [
        [INTERVALS[row["phase"]], str(row["steps"]), *times(row), format_ratio(row["share"])]
        for row in sorted(rows_at(steps["phases"], focus), key=lambda row: list(INTERVALS).index(row["phase"]))
    ]
    if phases and not parted and not inference:
        section.blocks.append(
            Block(
                (f"phase of a {training.unit(content['run'])}", "steps", "mean", "median", "p90", "max", "of a step"),
                phases,
                frozenset(range(1, 7)),
            )
        )
        section.notes.append(
            "before the forward pass: from the end of the previous step, so waiting for data and what the loop does "
            "besides; forward and backward pass and tail are from op windows, "
            "whose steps are a little slower"
            if in_windows(content)
            else "time before the forward pass: from the end of the previous step to FP; forward and backward pass: "
            "from FP to BP; tail: after BP"
        )
    section.notes += repeated_passes(steps["passes"], focus[1])
    _variation(section, rows_at(steps["variation"], focus))
    section.notes += [
        training.drift_sentence(content, row)
        for row in rows_at(steps["drift"], focus)
        if row["verdict"] in training.SLOWER
    ]
    _slowest(section, rows_at(steps["slowest"], focus), windowed=in_windows(content))
    _syncs(section, rows_at(steps["syncs"], focus), content["top"])
    where = ", in steps with recorded operators" if in_windows(content) else ""
    for name, point in steps["points"].items():
        fp, fp_choice, bp, bp_choice = (point.get(key, "N/A") for key in ("fp", "fp_choice", "bp", "bp_choice"))
        points = f"FP {fp} ({fp_choice}), BP {bp} ({bp_choice})"
        section.notes.append(f"{name}: {points}{where}")
    stages = {row["stage"]: row for row in rows_at(steps["stages"], focus)}
    listed = [
        [text, str(stages[name]["count"]), format_ns(stages[name]["dur_ns"])]
        for name, text in (STAGES | training.STAGES if inference else STAGES).items()
        if name in stages and not (name == "first_step" and content["run"]["source"].startswith("import:"))
    ]
    if listed:
        section.blocks.append(Block(("stage", "count", "time"), listed, frozenset((1, 2))))
    return section


def _chosen(section: Section, content: dict[str, Any], focus: tuple[int, int]) -> None:
    """The step that was asked for; of another rank where the one in focus has no such step."""
    parts = content["steps"]["chosen"]
    if not parts:
        return
    rows = rows_at(parts, focus) or rows_at(parts, (parts[0]["rep"], parts[0]["rank"]))
    named = {**INTERVALS, **TRACE}
    first = rows[0]
    listed = [
        [named[row["phase"]], *(format_ns(row[f"{name}_ns"]) for name in ("from", "until", "part")),
         format_ratio(row["share"]), format_ns(row["mean_ns"])]
        for row in rows
    ]  # fmt: skip
    duration = format_ns(first["dur_ns"])
    listed.append(["the whole step", format_ns(0), duration, duration, "", ""])
    head = (f"part of step {first['kind_step']}", "begins", "ends", "time", "of the step", "mean")
    section.blocks.append(Block(head, listed, frozenset(range(1, 6))))
    where = f"repetition {first['rep']}, rank {first['rank']}"
    epoch = "" if first["epoch"] is None else f", epoch {first['epoch']}"
    recorded = ", its operators were recorded" if first["in_window"] else ""
    section.notes.append(
        f"step {first['kind_step']} ({where}{epoch}{recorded}) began {format_ns(first['start_ns'])} after "
        f"{training.origin_of(content)}; "
        f"mean: of {format_count(first['steps'], 'step')} of its kind with the same parts, recorded alike"
    )
    if first["bp_source"] in BACKWARD_ENDS:
        said = f"{BACKWARD_ENDS[first['bp_source']]}{_off(first)}"
        section.notes.append(f"no operator was recorded in this step: its backward pass is taken to end {said}")


def _off(row: dict[str, Any]) -> str:
    """How far off that may be, where it is known."""
    if row["bp_error_ns"] is None:
        return ""
    at_most = format_ns(row["bp_error_ns"])
    return f", give or take {at_most}" if row["bp_source"] == "share" else f"; it may end {at_most} later"


def _trace(section: Section, rows: Sequence[dict[str, Any]], *, windowed: bool) -> bool:
    """The mean step in parts that add up to it; false where its parts are not known."""
    if all(row["measured"] for row in rows):
        return False
    listed = [[TRACE[row["phase"]], format_ns(row["mean_ns"]), format_ratio(row["share"])] for row in rows]
    total = sum(row["mean_ns"] for row in rows)
    listed.append(["the whole step", format_ns(total), format_ratio(1.0 if total else None)])
    section.blocks.append(Block(("part of a training step", "mean", "of a step"), listed, frozenset((1, 2))))
    first = rows[0]
    steps, parted = format_count(first["steps"], "step"), format_count(first["parted_steps"], "step")
    waiting = " and the wait for the batch are" if first["phase"] == "data_wait" else " is"
    said = f"the parts add up; the length of a step{waiting} measured in {steps}; the rest is divided as in {parted}"
    slower = (
        ""
        if first["inflation"] is None
        else f", which take {first['inflation']:.2f} times as long (medians, wait for data left out)"
    )
    what = "operators" if windowed else "passes"
    section.notes.append(f"{said} with recorded {what}{slower}")
    return True


def _waiting(section: Section, content: dict[str, Any], focus: tuple[int, int]) -> None:
    """The number of collect's summary, and the one that the diagnosis goes by where that is another."""
    diagnosis = content["diagnosis"]
    for row in rows_at(content["steps"]["data_wait"], focus):
        if row["data_wait_share"] is None:
            continue
        shown, steps = format_ratio(row["data_wait_share"]), format_count(row["steps"], "step")
        which = "warm-up left out" if row["kind"] == "train" else "all of them warm-up"
        which += "; those with recorded operators only if there are no others"
        text = f"waiting for data, inside the dataset iterator: {shown} of the time in all steps ({steps}, {which})"
        steady = format_ratio(diagnosis["data_wait_share"])
        little = max(row["data_wait_share"], diagnosis["data_wait_share"] or 0.0) < LEAST_WAIT
        if diagnosis.get("data_wait_share_all_steps") == row["data_wait_share"] and steady != shown and not little:
            text += (
                f"; {steady} in the steady state, after the first quarter of each iterator: the diagnosis goes by that"
            )
        section.notes.append(text)


def _syncs(section: Section, rows: Sequence[dict[str, Any]], top: int) -> None:
    """Where Python waits for the network, most time first."""
    listed = [
        [
            (row["site"] or "not known").rpartition("/")[2], CALLS.get(row["call"], row["call"] or "-"),
            row["via"] or "-", f"{row['per_step']:.2f}", format_ns(row["mean_ns"]), format_ns(row["max_ns"]),
            format_ratio(row["share"]),
        ]
        for row in rows[:top]
    ]  # fmt: skip
    if listed:
        head = ("waits for the network", "by", "in", "per step", "mean", "max", "of the steps")
        section.blocks.append(filled(head, listed, words=(0, 1, 2)))
        section.notes.append(
            f"reading a tensor waits until it is computed: {len(listed)} of {len(rows)} such lines; in every step they "
            "keep Python from launching the next one"
        )


def _slowest(section: Section, rows: Sequence[dict[str, Any]], *, windowed: bool) -> None:
    listed = [
        [
            str(row["kind_step"]),
            "-" if row["epoch"] is None else str(row["epoch"]),
            format_ns(row["dur_ns"]),
            format_ratio(row["fetch_wait_share"]),
            "yes" if windowed and row["in_window"] else "-",
        ]
        for row in rows
    ]
    if listed:
        head = ("slowest step", "epoch", "time", "waiting for data", "in op window")
        section.blocks.append(filled(head, listed, words=(4,)))


def _variation(section: Section, rows: Sequence[dict[str, Any]]) -> None:
    """From step to step; of few steps nothing can be said."""
    named = {"step": title("step"), **INTERVALS}
    listed = [
        [
            named[row["phase"]], format_ns(row["spread_ns"]), format_ratio(row["spread_ratio"]),
            "-" if not row["long_steps"] else f"{row['long_steps']} (+{format_ns(row['long_ns'])})",
            format_ns(row["drift_ns"]),
        ]
        for row in sorted(rows, key=lambda row: list(named).index(row["phase"]))
        if row["steps"] >= LEAST_STEPS
    ]  # fmt: skip
    if listed:
        head = ("varies from step to step", "spread", "of its median", "much longer steps", "2nd half - 1st half")
        section.blocks.append(filled(head, listed))
        section.notes.append(
            "spread: interquartile range / 1.349; much longer: by more than 10 % and 3 spreads than the median, with "
            "what they take beyond it together; last column: difference of the medians"
        )


MOST_RANKS = 16


def split_section(content: dict[str, Any]) -> Section:
    """Means per step; the ranks with the longest steps when there are many."""
    section = Section("Steps, as their profiler divides them")
    rows = content["steps"]["split"]
    longest = sorted(rows, key=lambda row: (-(row["step_ns"] or 0), row["rep"], row["rank"]))[:MOST_RANKS]
    several = len({row["rep"] for row in rows}) > 1
    longest = sorted(longest, key=lambda row: (row["rep"], row["rank"]))
    if not longest:
        return section
    names = [[str(row["rep"]) if several else "-", str(row["rank"])] for row in longest]
    parts = [[str(row["steps"]), *(portion(row, name) for name in ("computing", "exposed", "free"))] for row in longest]
    head = ("rep", "rank", "steps", "computing", "exposed communication", "free")
    section.blocks.append(filled(head, [name + part for name, part in zip(names, parts, strict=True)], words=()))
    pipelined = any(row["bubble_ns"] or row["receive_ns"] for row in rows)
    more = [
        [format_ns(row["overlapped_ns"]), format_ns(row["receive_ns"]) if pipelined else "-",
         format_ns(row["stage_ns"]) if pipelined else "-", portion(row, "bubble") if pipelined else "-",
         format_ns(row["preparing_ns"])]
        for row in longest
    ]  # fmt: skip
    if any(cell != "-" for cells in more for cell in cells):
        further = ("rep", "rank", "overlapped", "receiving", "stage", "bubble", "preparing")
        section.blocks.append(filled(further, [name + part for name, part in zip(names, more, strict=True)], words=()))
    section.notes.append(
        "means per step, and shares of computing, exposed communication and free time together; exposed: no computing "
        "beside it; overlapped: computing beside it; free: neither; preparing: host time before the first device task"
        + ("; stage: the step without waiting for other pipeline stages, bubble: that waiting" if pipelined else "")
    )
    if len(rows) > len(longest):
        section.notes.append(f"the {len(longest)} longest of {len(rows)}; all of them: --format json")
    return section
