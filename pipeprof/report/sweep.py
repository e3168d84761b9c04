"""The result of a sweep as sentences and tables of text; its recommendation as variables or words of a command line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pipeprof.escape import command, line, shell_word
from pipeprof.report.document import Document
from pipeprof.report.sections import Block, Section
from pipeprof.units import format_bytes, format_count, format_ns, format_ratio, percent

Row = Mapping[str, Any]


TITLES = {
    "configure": "configure",
    "warmup_first": "first step",
    "warmup_second": "second step",
    "setup": "set-up",
    "steady": "steady step",
    "throughput": "throughput",
    "peak_memory": "peak memory",
    "total": "whole run",
    "cost": "launch to end",
}
DETAILS = ("configure", "warmup_first", "warmup_second", "throughput", "peak_memory")


def document(content: Mapping[str, Any]) -> Document:
    """What to take, then a section for each table."""
    from pipeprof.report.charts import variants  # noqa: PLC0415 - they need what is below

    sections = [
        Section("", strong=_lead(content), notes=list(content["notes"])),
        Section("Charts", charts=lambda: variants.charts_of(content)),
    ]
    for table in content["tables"]:
        blocks = [Block(*_main(table, content["judge"]))]
        details = _details(table)
        blocks += [details] if details else []
        about = ", ".join(part for part in (table["name"], table.get("about", "")) if part)
        sections.append(Section(about or "Variants", notes=_notes(table, content), blocks=blocks))
    return Document(content["title"] or "Sweep", sections)


def _lead(content: Mapping[str, Any]) -> list[str]:
    """The recommendation in words."""
    best = content["recommendation"]
    if best is None:
        return []
    said = f"best {TITLES[best['by']]}"
    if best["steps"] is not None:
        said = f"lowest total time for {format_count(best['steps'], 'step')}"
    text = f"Recommended: `{best['name']}` ({said})" + (f": {best['reason']}" if best["reason"] else "")
    lines = [text, *sentences(usable(best))]
    if best["not_told_apart"]:
        lines.append(f"As good within the noise: {', '.join(best['not_told_apart'])}")
    return lines


def _notes(table: Mapping[str, Any], content: Mapping[str, Any]) -> list[str]:
    lines = list(table["notes"])
    if table["noise"]:
        lines.append(f"noise {format_ratio(table['noise']['steady'])}: {table['noise']['from']}")
    if table["family"]:
        share = "has" if table["family"] == 1 else "share"
        lines.append(
            f"{format_count(table['family'], 'variant')} {share} alpha {table['alpha']:.3g} over looks at "
            f"{', '.join(map(str, table['looks']))} rounds; intervals are 95 %; reference: {table['reference']}"
        )
    quiet = [row["name"] for row in table["rows"] if row["verdict"] == "within noise"]
    lines += [f"within noise: {', '.join(quiet)}"] if quiet else []
    best = table["best"]
    if best and len(content["tables"]) > 1:
        lines.append(f"best here: {best['name']}")
    lines += [f"{row['name']}: {text}" for row in table["rows"] for text in row["failures"]]
    return lines


def _main(table: Mapping[str, Any], judge: str) -> tuple[list[str], list[list[str]], frozenset[int]]:
    """What is decided, with the interval of the stage that decides; the set-up, and from when on it pays."""
    rows = table["rows"]
    shown = [stage for stage in dict.fromkeys((judge, "setup", "cost")) if any(stage in row["stages"] for row in rows)]
    head = ["variant", "verdict"]
    for stage in shown:
        head += [TITLES[stage], "ratio"]
    head += ["ahead", "Pareto"]
    lines = []
    for row in rows:
        cells = [row["name"], row["verdict"]]
        for stage in shown:
            figures = row["stages"].get(stage)
            cells += [_value(figures), ratio(figures, with_interval=stage == judge)]
        lines.append([*cells, ahead(row["break_even"]), "*" if row["pareto"] else ""])
    return head, lines, frozenset(range(2, 2 + 2 * len(shown)))


def _details(table: Mapping[str, Any]) -> Block | None:
    """The other stages with their intervals, and how sure the break-even is."""
    rows = table["rows"]
    shown = [stage for stage in DETAILS if any(stage in row["stages"] for row in rows)]
    if not shown:
        return None
    spans = [span(row["break_even"]) for row in rows]
    last = ["ahead, range"] if any(spans) else []
    lines = [
        [row["name"], *(_ranged(row["stages"].get(stage)) for stage in shown), str(_reps(row["stages"]))]
        + ([ahead_span] if last else [])
        for row, ahead_span in zip(rows, spans, strict=True)
    ]
    head = ["variant", *(TITLES[stage] for stage in shown), "rounds", *last]
    return Block(head, lines, frozenset(range(1, len(shown) + 2)))


def _reps(stages: Mapping[str, Any]) -> int:
    return max((stage["reps"] for stage in stages.values()), default=0)


def _value(stage: Mapping[str, Any] | None) -> str:
    return "-" if stage is None else number(stage["value"], stage["unit"])


def _ranged(stage: Mapping[str, Any] | None) -> str:
    """`12.3 ms +-4.0 %`: half of the 95 % interval."""
    text = _value(stage)
    if stage is None or stage["low"] is None or not stage["value"]:
        return text
    return f"{text} +-{percent((stage['high'] - stage['low']) / 2 / stage['value'])}"


def number(value: float, unit: str) -> str:
    """A stage's value for people."""
    if unit == "bytes":
        return format_bytes(value)
    return f"{value:.4g} /s" if unit == "1/s" else format_ns(value)


def ratio(stage: Mapping[str, Any] | None, *, with_interval: bool = True) -> str:
    """`x0.512 (0.49 to 0.53)`, the interval only `with_interval`; `-` for the base and what was not measured."""
    if stage is None or stage.get("ratio") is None:
        return "-"
    text = f"x{stage['ratio']:.3f}"
    if stage["ratio_low"] is None or not with_interval:
        return text
    return f"{text} ({stage['ratio_low']:.3g} to {stage['ratio_high']:.3g})"


def ahead(break_even: Mapping[str, Any] | None) -> str:
    """From how many steady steps on a row is ahead of the base."""
    if break_even is None or break_even["kind"] == "unknown":
        return "-"
    kind = str(break_even["kind"])
    return f"{kind} {format_count(break_even['steps'], 'step')}" if kind in ("after", "until") else kind


def span(break_even: Mapping[str, Any] | None) -> str:
    """The range of break-even that the intervals allow: `20 to 120`, `20 to never`; empty when not known."""
    if break_even is None or break_even["low"] is None:
        return ""
    return f"{break_even['low']} to {break_even['high'] if break_even['high'] is not None else 'never'}"


def plain_rows(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """One flat row per table, variant and stage, for CSV."""
    for table in content["tables"]:
        for row in table["rows"]:
            even = row["break_even"] or {}
            about = {
                "table": table["name"], "key": row["key"], "variant": row["name"], "row_verdict": row["verdict"],
                "options": words(row["options"]), "break_even": even.get("kind"), "break_even_steps": even.get("steps"),
                "pareto": int(row["pareto"]), "failures": len(row["failures"]),
            }  # fmt: skip
            for stage, figures in (row["stages"] or {"": {}}).items():
                yield about | {"stage": stage} | {name: figures.get(name) for name in STAGE_COLUMNS}


STAGE_COLUMNS = (
    "value", "unit", "low", "high", "reps", "verdict", "ratio", "ratio_low", "ratio_high", "p_value", "alpha", "look",
)  # fmt: skip
COLUMNS: Sequence[str] = (
    "table", "key", "variant", "row_verdict", "options", "break_even", "break_even_steps", "pareto", "failures",
    "stage", *STAGE_COLUMNS,
)  # fmt: skip


def words(options: Mapping[str, Any]) -> str:
    """An option set in one line."""
    parts = [f"prepare:{shell_word(command(one))}" for one in options.get("prepare") or ()]
    parts += [f"command:{shell_word(command(options['command']))}"] if options.get("command") else []
    parts += [f"{name}={shell_word(str(value))}" for name, value in (options.get("env") or {}).items()]
    parts += [shell_word(word) for word in options.get("args") or ()]
    for name in ("dataset", "context"):
        settings = options.get(name)
        if settings:
            parts.append(name + ":" + ",".join(f"{key}={value}" for key, value in settings.items()))
    return " ".join(parts)


def export(content: Mapping[str, Any], form: str) -> str:
    """The recommendation of a sweep's result; what the form cannot hold follows as comments.

    env: `export NAME=value` lines for a shell. args: one line of words (comments before it). Without a recommendation,
    or when it is the base: only a comment.
    """
    best = content["recommendation"] or {"name": "base", "options": {}, "reason": "there is no recommendation"}
    reason = f": {best['reason']}" if best.get("reason") else ""
    head = _comments([f"{best['name']}{reason}"])
    options = usable(best)
    env = [f"export {name}={shell_word(str(value))}" for name, value in sorted((options.get("env") or {}).items())]
    args = [command(options["args"])] if options.get("args") else []
    shown, rest = (env, args) if form == "env" else (args, env)
    left = _comments([*rest, *sentences({**options, "env": {}, "args": ()})])
    return "\n".join([*head, *left, *shown]) + "\n"


def usable(best: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a recommendation, with the folder of what was prepared for it in place of `{artefacts}`."""
    folder = best.get("artefacts")
    return dict(best["options"] if folder is None else _placed(best["options"], folder))


def _placed(value: Any, folder: str) -> Any:
    if isinstance(value, str):
        return value.replace("{artefacts}", folder)
    if isinstance(value, dict):
        return {name: _placed(one, folder) for name, one in value.items()}
    return [_placed(one, folder) for one in value] if isinstance(value, (list, tuple)) else value


def _comments(texts: Iterable[str]) -> list[str]:
    """Lines that a shell leaves alone, whatever the texts hold: they may be of several lines."""
    return [f"# {line(part)}" for text in texts for part in text.splitlines() or [""]]


def sentences(options: Mapping[str, Any]) -> list[str]:
    """What to set, a line for each kind."""
    lines = []
    lines += [f"first run {command(words)}" for words in options.get("prepare") or ()]
    if options.get("command"):
        lines.append(f"run {command(options['command'])}")
    if options.get("env"):
        lines.append("set " + " ".join(f"{name}={shell_word(str(value))}" for name, value in options["env"].items()))
    if options.get("args"):
        lines.append(f"add {command(options['args'])}")
    change = options.get("dataset")
    if change:
        names = {"workers": "num_parallel_workers", "prefetch": "prefetch size", "processes": "python_multiprocessing"}
        settings = ", ".join(f"{name} = {change[key]}" for key, name in names.items() if key in change)
        lines.append(f"in the script: {change['op']} number {change.get('nth', 1)}: {settings}")
    context = options.get("context")
    if context:
        settings = ", ".join(f"{name} = {value}" for name, value in context.items())
        lines.append(f"in the script, in MindSpore's context: {settings}")
    return lines
