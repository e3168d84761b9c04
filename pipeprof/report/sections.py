"""A report's content as titled sections of text tables: what the terminal and Markdown formats have in common."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipeprof.units import format_bytes, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PHASES = {
    "data_wait": "data wait",
    "compute": "compute (forward+backward and tail, not split)",
    "forward_backward": "forward+backward",
    "tail": "tail",
    "whole": "whole step",
}
STAGES = {
    "start": "Python starts",
    "import": "import of MindSpore",
    "build": "script, until its first step",
    "compile": "graph compilation",
    "warmup": "warm-up steps",
    "steady": "steady steps",
    "first_step": "launch until the first step is done",
}
VERDICTS = {
    "input_bound": "INPUT-BOUND: the training waits for its data",
    "consumer_bound": "not input-bound: the data is ready in time",
    "balanced": "BALANCED: the data pipeline and the training are equally fast",
    "not_measured": "not measured: no training step that fetches from a dataset was seen",
}

KINDS = {
    "cpu": "busy computing",
    "wait": "waiting (storage, network, sleep)",
    "gil": "computing in Python under the interpreter's lock (GIL)",
    "burst": "stalling now and then",
    "poll": "limited by the 100 ms polls of a source with several workers",
    "host_saturated": "short of CPU: the machine is busy with other work",
}
LIMITS = {
    "compute": "forward and backward operators take most of it",
    "communication": "exposed communication takes most of it",
    "optimizer": "the optimizer takes most of it",
    "host_gap": "most of the time no operator runs: Python and framework on the host",
    "imbalance": "the ranks wait for the slowest one",
    "compile": "graph compilation and the first steps take most of the run",
    "not_measured": "what it does was not measured",
}
SINK_STAGES = {
    "data_processing": "late: the dataset pipeline on the host",
    "data_transmission": "late: the way from the host to the device",
}
PROGRAMS = {
    "mindinsight": "MindInsight's rules",
    "mindspore": "MindSpore's own analyser",
    "autotune": "AutoTune's rule",
}


@dataclass
class Block:
    """A table of text cells; a column is right-aligned when `right` says so."""

    head: Sequence[str]
    rows: list[list[str]]
    right: frozenset[int] = frozenset()


@dataclass
class Section:
    """A title, sentences, and tables. `strong` sentences are the ones to read first."""

    title: str
    strong: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)


def sections(content: dict[str, Any]) -> list[Section]:
    """All sections that have something to say, the answer first."""
    focus = _focus(content)
    found = [
        _run(content, focus),
        _diagnosis(content),
        _steps(content, focus),
        _ranks(content),
        _pipeline(content, focus),
        _operators(content, focus),
        _communication(content, focus),
        _resources(content, focus),
        _missing(content),
    ]
    return [section for section in found if section.strong or section.notes or section.blocks]


def _focus(content: dict[str, Any]) -> tuple[int, int]:
    """The repetition and rank to show in detail: the one with the slowest median step."""
    rows = [row for row in content["steps"]["summary"] if row["kind"] != "eval"]
    steady = [row for row in rows if row["kind"] == "train"] or rows
    slowest = max(steady, key=lambda row: (row["median_ns"], -row["rep"], -row["rank"]), default=None)
    if slowest is None:  # no steps, but perhaps a pipeline
        slowest = next(iter(content["pipeline"]["pipelines"]), {"rep": 0, "rank": 0})
    return slowest["rep"], slowest["rank"]


def _at(rows: Iterable[dict[str, Any]], focus: tuple[int, int]) -> list[dict[str, Any]]:
    return [row for row in rows if (row["rep"], row["rank"]) == focus]


def _run(content: dict[str, Any], focus: tuple[int, int]) -> Section:
    run = content["run"]
    section = Section(f"Run {run['path']}")
    state = run["state"] + (f": {run['reason']}" if run["reason"] else "")
    section.strong.append(state)
    if run["command"]:
        section.notes.append("command: " + shlex.join(run["command"]))
    machine = run["fingerprint"]
    facts = [
        f"MindSpore {machine['mindspore']}" if machine.get("mindspore") else None,
        machine.get("device"),
        f"{machine['mode']} mode" if machine.get("mode") else None,
        f"Python {machine['python']}" if machine.get("python") else None,
        machine.get("cpu_model"),
        f"{machine['cpu_cores']} cores" if machine.get("cpu_cores") else None,
    ]
    section.notes.append(", ".join(fact for fact in facts if fact))
    measured = {(row["rep"], row["rank"]) for row in content["steps"]["summary"]}
    if len(measured) > 1:
        section.notes.append(f"details are of repetition {focus[0]}, rank {focus[1]}: the slowest of {len(measured)}")
    section.notes += [f"warning: {warning['message']}" for warning in run["warnings"]]
    return section


def _diagnosis(content: dict[str, Any]) -> Section:
    found = content["diagnosis"]
    section = Section("Diagnosis")
    share = found["data_wait_share"]
    text = VERDICTS[found["verdict"]]
    section.strong.append(text if share is None else f"{text} ({format_ratio(share)} of its time)")
    if found["op_id"] is not None:
        name = f" `{found['op_name']}`" if found["op_name"] else ""
        kind = f", {KINDS[found['kind']]}" if found["kind"] else ""
        section.strong.append(f"bottleneck: {found['op_type']} {found['op_id']}{name}{kind}")
    if found["stage"]:
        section.strong.append(SINK_STAGES[found["stage"]])
    doubts = f" ({'; '.join(found['doubts'])})" if found["doubts"] else ""
    if found["verdict"] != "not_measured":
        section.notes.append(f"confidence: {found['confidence']}{doubts}")
    section.notes += [_evidence(item) for item in found["evidence"]]
    section.notes += [_suggestion(item, content["run"]["path"]) for item in found["suggestions"]]
    _network(section, found["network"])
    for program, title in PROGRAMS.items():
        theirs = found["compatible"].get(program) or {}
        if theirs.get("named") is not None:
            section.notes.append(f"{title} would name: {_named(content, theirs['named'])}")
    return section


def _network(section: Section, found: dict[str, Any] | None) -> None:
    """What limits the step itself, when it is not its data."""
    if found is None:
        return
    section.strong.append(f"the step itself: {LIMITS[found['limit']]} (confidence: {found['confidence']})")
    if len(found["candidates"]) > 1 and found["limit"] != "compile":
        section.strong.append(f"nearly as much: {LIMITS[found['candidates'][1]]}")
    slow = found["slowest_rank"]
    if slow:
        extra = format_ns(slow["excess_ns"])
        section.strong.append(f"rank {slow['rank']} holds the others up: {extra} more for a step, in {slow['phase']}")
    section.notes += [_evidence(item) for item in found["evidence"]]
    section.notes += [f"try: {text}" for text in found["suggestions"]]


def _evidence(item: dict[str, Any]) -> str:
    return f"{item['what']}: {_value(item)} ({item['basis']}; query {item['source']})"


def _value(item: dict[str, Any]) -> str:
    value = item["value"]
    if value is None:
        return "not measured"
    if item["unit"] in ("ns", "ns per step"):
        return format_ns(value)
    if item["unit"].startswith("share"):
        return format_ratio(value)
    if item["unit"] == "times":
        return f"{value:.2f}x"
    return f"{value:.3g} {item['unit']}"


def _suggestion(item: dict[str, Any], run: str) -> str:
    parts = [f"try: {item['text']}"]
    if item.get("place"):
        parts.append(f"at {item['place']}")
    if item.get("not_when"):
        parts.append(
            f"not when {item['not_when']}" if not item["not_when"].startswith(("do not", "more")) else item["not_when"]
        )
    if item.get("verify"):
        parts.append("verify: " + item["verify"].replace("RUN", run) + " -- COMMAND")
    return "; ".join(parts)


def _named(content: dict[str, Any], ops: list[int]) -> str:
    if not ops:
        return "nothing"
    types = {
        op["op_id"]: op["op_type"]
        for row in content["pipeline"]["pipelines"]
        if row["role"] == "train"
        for op in row["ops"]
    }
    return ", ".join("nothing: the data is in time" if op < 0 else f"{types.get(op, 'operator')} {op}" for op in ops)


def _steps(content: dict[str, Any], focus: tuple[int, int]) -> Section:
    steps = content["steps"]
    section = Section("Steps")
    rows = [
        [row["kind"], _counted(row), *_times(row), format_ns(row["stddev_ns"])] for row in _at(steps["summary"], focus)
    ]
    if rows:
        section.blocks.append(
            Block(("kind", "steps", "mean", "median", "p90", "max", "std dev"), rows, frozenset(range(1, 7)))
        )
    phases = [
        [PHASES[row["phase"]], str(row["steps"]), *_times(row), format_ratio(row["share"])]
        for row in sorted(_at(steps["phases"], focus), key=lambda row: list(PHASES).index(row["phase"]))
    ]
    if phases:
        section.blocks.append(
            Block(
                ("phase of a training step", "steps", "mean", "median", "p90", "max", "share"),
                phases,
                frozenset(range(1, 7)),
            )
        )
        section.notes.append(
            "data wait ends where the forward pass begins; forward+backward and tail are from op windows, "
            "whose steps are a little slower"
        )
    _slowest(section, _at(steps["slowest"], focus)[:5])
    for name, point in steps["points"].items():
        section.notes.append(
            f"{name}: FP {point['fp']} ({point['fp_choice']}), BP {point['bp']} ({point['bp_choice']})"
        )
    stages = {row["stage"]: row for row in _at(steps["stages"], focus)}
    listed = [
        [text, str(stages[name]["count"]), format_ns(stages[name]["dur_ns"])]
        for name, text in STAGES.items()
        if name in stages
    ]
    if listed:
        section.blocks.append(Block(("stage", "count", "time"), listed, frozenset((1, 2))))
    return section


def _slowest(section: Section, rows: Sequence[dict[str, Any]]) -> None:
    listed = [
        [
            str(row["kind_step"]),
            "-" if row["epoch"] is None else str(row["epoch"]),
            format_ns(row["dur_ns"]),
            format_ratio(row["fetch_wait_share"]),
            "yes" if row["in_window"] else "",
        ]
        for row in rows
    ]
    if listed:
        section.blocks.append(
            Block(("slowest step", "epoch", "time", "waiting for data", "in op window"), listed, frozenset(range(4)))
        )


def _ranks(content: dict[str, Any]) -> Section:
    section = Section("Ranks and repetitions")
    rows = [row for row in content["steps"]["summary"] if row["kind"] == "train"]
    if len(rows) > 1:
        waits = {(row["rep"], row["rank"]): row["data_wait_share"] for row in content["steps"]["data_wait"]}
        listed = [
            [
                str(row["rep"]),
                str(row["rank"]),
                str(row["steps"]),
                *_times(row),
                format_ratio(waits.get((row["rep"], row["rank"]))),
            ]
            for row in rows
        ]
        section.blocks.append(
            Block(
                ("rep", "rank", "steps", "mean", "median", "p90", "max", "waiting for data"),
                listed,
                frozenset(range(8)),
            )
        )
    spread = [
        [
            str(row["rep"]), PHASES.get(row["phase"], row["phase"]), str(row["slowest_rank"]),
            format_ns(row["slowest_median_ns"]), str(row["fastest_rank"]), format_ns(row["fastest_median_ns"]),
            "-" if row["spread_ratio"] is None else f"{row['spread_ratio']:.2f}x",
        ]
        for row in content["steps"]["rank_spread"]
    ]  # fmt: skip
    if spread:
        section.blocks.append(
            Block(
                ("rep", "phase", "slowest rank", "median", "fastest rank", "median", "spread"),
                spread,
                frozenset((0, 2, 3, 4, 5, 6)),
            )
        )
    return section


def _pipeline(content: dict[str, Any], focus: tuple[int, int]) -> Section:
    section = Section("Data pipeline")
    for row in _at(content["pipeline"]["pipelines"], focus):
        if row["role"] == "hidden":
            continue
        what = f"{row['role']} pipeline at {row['site'] or 'unknown place'}"
        facts = [
            f"{row['iterators']} iterator(s)",
            f"batch size {row['batch_size']}" if row["batch_size"] else None,
            f"{row['batches']} batches, waited {format_ns(row['wait_ns'])} for them",
            f"first batch after {format_ns(row['first_batch_ns'])}" if row["first_batch_ns"] is not None else None,
        ]
        section.notes.append(f"{what}: " + ", ".join(fact for fact in facts if fact))
        if row["queues"] and row["queues"] != "recorded":
            section.notes.append(f"  its queues: {row['queues']}")
        if row["ops"]:
            section.blocks.append(_tree(row["ops"]))
    return section


def _tree(ops: Sequence[dict[str, Any]]) -> Block:
    """The operators, the one nearest the training loop first, each indented below its consumer."""
    depth: dict[int, int] = {}
    rows = []
    for op in sorted(ops, key=lambda op: op["op_id"]):
        parent = op["consumer_id"]
        depth[op["op_id"]] = 0 if parent is None else depth.get(parent, 0) + 1
        queue, service, cpu = op["queue"], op["service"], op["cpu"]
        rows.append(
            [
                "  " * depth[op["op_id"]] + f"{op['op_type']} {op['op_id']}",
                op["name"] or "",
                "-"
                if op["workers"] is None or op["inlined"]
                else str(op["workers"]) + (" proc" if op["uses_processes"] else ""),
                "-" if op["capacity"] is None else str(op["capacity"]),
                format_ratio(queue["mean_ratio"]) if queue else "-",
                format_ratio(queue["empty_share"]) if queue else "-",
                format_ratio(queue["full_share"]) if queue else "-",
                format_ns(service["mean_ns"]) if service else "-",
                format_ns(service["work_per_batch_ns"]) if service else "-",
                f"{cpu['mean_cores']:.2f}" if cpu and cpu["mean_cores"] is not None and not op["inlined"] else "-",
            ]
        )
    head = ("operator", "does", "workers", "queue", "fill", "empty", "full", "per row", "per batch", "cores")
    return Block(head, rows, frozenset(range(2, 10)))


def _operators(content: dict[str, Any], focus: tuple[int, int]) -> Section:
    section = Section("Operators (from op windows)")
    types = _at(content["ops"], focus)
    rows = [[row["type"] or "-", row["phase"] or "-", str(row["count"]), *_costs(row)] for row in types[:10]]
    if rows:
        section.blocks.append(
            Block(("type", "phase", "count", "total", "mean", "max", "share"), rows, frozenset(range(2, 7)))
        )
        section.notes.append(
            f"{len(rows)} of {len(types)} types; all of them: pipeprof ops {content['run']['path']} --top 0"
        )
    instances = [
        [_short(row["name"]), row["phase"] or "-", row["in_shapes"] or "-", str(row["count"]), *_costs(row)]
        for row in _at(content["op_instances"], focus)[:5]
    ]
    if instances:
        section.blocks.append(
            Block(
                ("operator", "phase", "input shapes", "count", "total", "mean", "max", "share"),
                instances,
                frozenset(range(3, 8)),
            )
        )
    return section


def _communication(content: dict[str, Any], focus: tuple[int, int]) -> Section:
    section = Section("Communication (from op windows)")
    rows = [
        [
            row["kind"], str(row["events"]), "-" if row["events_per_step"] is None else f"{row['events_per_step']:.1f}",
            *(format_ns(row[f"{name}_ns"]) for name in ("total", "median", "max", "tail")),
        ]
        for row in _at(content["steps"]["communication"], focus)
    ]  # fmt: skip
    if rows:
        section.blocks.append(
            Block(("kind", "events", "per step", "total", "median", "max", "in the tail"), rows, frozenset(range(1, 7)))
        )
    return section


def _resources(content: dict[str, Any], focus: tuple[int, int]) -> Section:
    section = Section("Memory and CPU")
    rows = []
    for row in _at(content["memory"], focus):
        what = {"host": "whole machine, in use"}.get(row["device"], f"{row['name'] or row['device']}")
        if row["name"] == "pool":
            what = f"{row['device']} memory pool, in use"
        peak = row["peak_rss_bytes"] if row["device"] == "process" else row["peak_allocated_bytes"]
        rows.append([what, format_bytes(peak), str(row["samples"])])
    if rows:
        section.blocks.append(Block(("memory", "peak", "samples"), rows, frozenset((1, 2))))
    cpu = []
    for row in _at(content["host"], focus):
        if row["scope"] == "host":
            cpu.append(["whole machine", f"{format_ratio(row['mean_busy_share'])} busy", str(row["samples"])])
        elif row["total_cores"] is not None:
            cpu.append(
                [
                    f"{row['name'] or 'process'} ({row['processes']})",
                    f"{row['total_cores']:.2f} cores",
                    str(row["samples"]),
                ]
            )
    if cpu:
        section.blocks.append(Block(("CPU", "mean", "samples"), cpu, frozenset((1, 2))))
    return section


def _missing(content: dict[str, Any]) -> Section:
    section = Section("Not measured")
    section.notes += [f"{item['what']}: {item['why']}" for item in content["not_measured"]]
    return section


def _counted(row: dict[str, Any]) -> str:
    """Steps whose time counts, and of how many when op windows took some out."""
    timed, steps = row["timed_steps"], row["steps"]
    return str(steps) if timed == steps else f"{timed} of {steps}"


def _times(row: dict[str, Any]) -> list[str]:
    return [format_ns(row[f"{name}_ns"]) for name in ("mean", "median", "p90", "max")]


def _costs(row: dict[str, Any]) -> list[str]:
    return [*(format_ns(row[f"{name}_ns"]) for name in ("total", "mean", "max")), format_ratio(row["share"])]


def _short(name: str) -> str:
    """The last two parts of a scoped name; the full one is in the JSON report and in `pipeprof ops`."""
    parts = name.split("/")
    return name if len(parts) < 3 else "/".join(["...", *parts[-2:]])
