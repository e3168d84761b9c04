"""Where a report states the same quantity twice: each function yields (what, one, other) of a report's content.

`one` and `other` are equal when the report agrees with itself.
"""

from __future__ import annotations

import math
import re
from statistics import median
from typing import TYPE_CHECKING, Any

from pipeprof.report.sections.block import focus_of
from pipeprof.report.sections.of_run import sections
from pipeprof.report.words.training import NEAR_WAITS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeprof.query.engine import Engine

    Content = dict[str, Any]
    Pair = tuple[str, Any, Any]

MASTER = "GeneratorOp"


def pipelines(content: Content) -> Iterator[Pair]:
    """The operators of the pipeline table and the stages that the diagnosis goes by."""
    table = {
        (row["rep"], row["rank"], row["pipeline_key"], op["op_id"]): op
        for row in content["pipeline"]["pipelines"]
        for op in row["ops"]
    }
    for stage in content["pipeline"]["load"]:
        if stage["op_id"] < 0:
            continue
        op = table[stage["rep"], stage["rank"], stage["pipeline_key"], stage["op_id"]]
        service, queue, cpu = (op[part] or {} for part in ("service", "queue", "cpu"))
        who = f"{op['op_type']} {op['op_id']}"
        yield f"work of {who} for a batch", service.get("work_per_batch_ns"), stage["work_ns"]
        yield f"batches that the times of {who} are from", service.get("batches"), stage["timed_batches"]
        yield f"rows of {who} for a batch", service.get("rows_per_batch"), stage["rows_per_batch"]
        yield f"fill behind {who}", queue.get("mean_ratio"), stage["output_ratio"]
        yield f"cores of {who}", cpu.get("mean_cores"), stage["cores"]
        if op["workers"] is not None:
            yield f"workers of {who}", op["workers"], stage["workers"]
        if service:
            per_batch = service["mean_ns"] * service["rows_per_batch"]
            yield f"time of {who} for a row x rows", per_batch, service["work_per_batch_ns"]
        if stage["work_ns"] and stage["loop_rate"] and (stage["op_type"] != MASTER or stage["workers"] == 1):
            used = stage["work_ns"] * stage["loop_rate"] / 1e9 / stage["workers"]
            yield f"work of {who} x pace / workers", used, stage["utilisation"]


def evidence(content: Content) -> Iterator[Pair]:
    """Every number that the diagnosis gives as a reason stands in the table of its stages."""
    known = {value for row in content["pipeline"]["load"] for value in row.values() if isinstance(value, (int, float))}
    known |= {min(1.0, row["utilisation"]) for row in content["pipeline"]["load"] if row["utilisation"] is not None}
    for item in content["diagnosis"]["evidence"]:
        if item["source"] == "diagnose/load" and item["value"]:
            yield item["what"], True, item["value"] in known


def waiting(content: Content) -> Iterator[Pair]:
    """The share of the time that the training waits, in the verdict and in its stages."""
    found = content["diagnosis"]
    shares = {row["wait_share"] for row in content["pipeline"]["load"]}
    if found["data_wait_share"] is not None and shares:
        yield "share of waiting", True, found["data_wait_share"] in shares
    for row in content["steps"]["data_wait"]:
        (timed,) = (item for item in content["steps"]["summary"] if _same(item, row))
        yield "steps whose time counts", row["steps"], timed["timed_steps"]
        yield "summed time of the steps", row["step_ns"], timed["mean_ns"] * timed["timed_steps"]
        yield "share of waiting", row["data_wait_share"], row["fetch_wait_ns"] and row["fetch_wait_ns"] / row["step_ns"]


def said_to_wait(content: Content, summary: str) -> Iterator[Pair]:
    """The share of all steps as collect's summary, the sections and the first screen say it, each to its own digits.

    A number without "in the steady state" beside it is that of all steps, too. Of several ranks the summary says the
    largest, and the first screen may speak of another.
    """
    measured = {(row["rep"], row["rank"]): row["data_wait_share"] for row in content["steps"]["data_wait"]}
    shares = [share for share in measured.values() if share is not None]
    shown = {section.name: " ".join((*section.strong, *section.notes)) for section in sections(content)}
    of_all, of_focus = _worded(max(shares), 1), f"{measured[focus_of(content)] * 100:.1f} %"
    yield "collect's summary", {of_all}, _in_all_steps(summary)
    yield "section on steps", {of_focus}, _in_all_steps(shown["steps"])
    screen = f"{content['first_screen']['sentence']} {content['first_screen']['cause']}"
    if len(shares) == 1 and " % of the time" in screen:
        rounded = f"{shares[0] * 100:.{0 if shares[0] >= 0.1 else 1}f} %"
        both = max(shares[0], content["diagnosis"]["data_wait_share"] or 0.0)
        said = {rounded, _worded(shares[0], 1), f"less than {math.floor(both * 100) + 1} %"}
        yield "first screen", True, _agrees(screen, said, shares[0])
        yield "diagnosis", True, _agrees(shown["diagnosis"], said | {of_focus, of_all}, shares[0])


def _worded(share: float, digits: int) -> str:
    """What is below one percent is said without digits outside of the section on steps."""
    return f"{share * 100:.{digits}f} %" if share >= 0.01 else "less than 1 %"


def _agrees(text: str, said: set[str], share: float) -> bool:
    """Whether a text says one of these, or "about" what is no other piece of news."""
    near = re.search("about ([0-9.]+) % of the time", text)
    return abs(float(near[1]) / 100 - share) < NEAR_WAITS + 0.005 if near else bool(said & _in_all_steps(text))


def _in_all_steps(text: str) -> set[str]:
    """`38 %` of "32 % of the time, 38 % with the first quarter of each epoch" and of "38 % of the time"."""
    share = "((?:less than )?[0-9.]+ %)"
    found = re.search(f"{share} of the time(?:, {share} with the first quarter of each epoch)?", text)
    return {found[2] or found[1]} if found else set()


def phases(content: Content) -> Iterator[Pair]:
    """The phases of a step and the step."""
    for row in content["steps"]["summary"]:
        mine = {item["phase"]: item for item in content["steps"]["phases"] if _same(item, row)}
        parts = [mine[name] for name in ("data_wait", "compute") if name in mine]
        if len(parts) == 2 and parts[0]["steps"] == parts[1]["steps"] == row["timed_steps"]:
            yield "mean of the phases", sum(part["mean_ns"] for part in parts), row["mean_ns"]
            yield "shares of the phases", sum(part["share"] for part in parts), 1.0
        if "whole" in mine:
            yield "mean of the step", mine["whole"]["mean_ns"], row["mean_ns"]
    for row in content["steps"]["rank_spread"]:
        if row["phase"] == "step":
            slowest = max(item["median_ns"] for item in content["steps"]["summary"] if _trained(item, row["rep"]))
            yield "median step of the slowest rank", row["slowest_median_ns"], slowest


def longest(content: Content) -> Iterator[Pair]:
    """The slowest steps and the maximum of the steps."""
    for row in content["steps"]["summary"]:
        mine = [item["dur_ns"] for item in content["steps"]["slowest"] if _same(item, row) and not item["in_window"]]
        if row["kind"] == "train" and mine and not row["from_window"]:
            yield "longest step", max(mine), row["max_ns"]


def batches(content: Content, engine: Engine) -> Iterator[Pair]:
    """Batches of the pipeline and rows of the table fetch."""
    text = """
        SELECT rep, rank, pipeline_id, count(*) AS batches, sum(wait_ns) AS wait_ns FROM "fetch"
        WHERE coalesce(side, 'iterator') <> 'data_queue' GROUP BY ALL
    """
    rows = engine.sql(text).to_pylist()
    shown = content["pipeline"]["pipelines"]
    if any(row["batches"] is not None for row in shown):
        yield "batches", sum(row["batches"] for row in shown), sum(row["batches"] for row in rows)
        yield "time waited", sum(row["wait_ns"] for row in shown), sum(row["wait_ns"] or 0 for row in rows)


def steps(content: Content, engine: Engine) -> Iterator[Pair]:
    """The report's steps and the table step."""
    for row in content["steps"]["summary"]:
        place = f"rep = {row['rep']} AND rank = {row['rank']} AND kind = '{row['kind']}'"
        found = engine.sql(f"SELECT end_ns - start_ns AS ns, in_window FROM step WHERE {place}").to_pylist()  # noqa: S608
        timed = [item["ns"] for item in found if not item["in_window"]] or [item["ns"] for item in found]
        yield f"{row['kind']} steps", row["steps"], len(found)
        yield f"median of the {row['kind']} steps", row["median_ns"], median(timed)


def operators(content: Content) -> Iterator[Pair]:
    """Types of operators, single operators, and their shares."""
    places = {(row["rep"], row["rank"]) for row in content["ops"]}
    for place in sorted(places):
        types = [row for row in content["ops"] if (row["rep"], row["rank"]) == place]
        single = [row for row in content["op_instances"] if (row["rep"], row["rank"]) == place]
        total = sum(row["self_ns"] or 0 for row in types)
        if total:
            yield "shares of all types", sum(row["share"] for row in types), 1.0
            yield "own time of all types", types[-1]["cumulative_ns"], total
        for row in single:
            yield f"share of {row['name']}", row["share"], row["self_ns"] / total if total else None


def memory(content: Content, engine: Engine) -> Iterator[Pair]:
    """The peak of the training's processes in the report and in a comparison."""
    for row in engine.rows("compare/rep_memory"):
        held = [
            item["peak_rss_bytes"]
            for item in content["memory"]
            if item["device"] == "process" and item["rep"] == row["rep"] and item["peak_rss_bytes"] is not None
        ]
        yield "peak memory of a process", max(held, default=None), row["peak_bytes"]


def compared(content: Content, values: dict[str, dict[int, float]]) -> Iterator[Pair]:
    """What a comparison would use of the run (metrics by repetition) and what the report shows."""
    reps = {row["rep"] for row in content["steps"]["summary"]}
    for rep in sorted(reps):
        train = [row for row in content["steps"]["summary"] if _trained(row, rep)]
        slowest = max(train, key=lambda row: (row["median_ns"], -row["rank"]), default=None)
        if slowest is None or rep not in values.get("step_time_median", {}):
            continue
        yield "median step", slowest["median_ns"], values["step_time_median"][rep]
        yield "90th percentile of the steps", slowest["p90_ns"], values["step_time_p90"][rep]
        for row in content["steps"]["data_wait"]:
            if _same(row, slowest) and row["fetch_steps"] and row["fetch_steps"] == row["steps"]:
                yield "wait of a step", row["fetch_wait_ns"] / row["steps"], values["data_wait"][rep]
        for name in {row["phase"] for row in content["steps"]["phases"]}:
            means = [row["mean_ns"] for row in content["steps"]["phases"] if (row["rep"], row["phase"]) == (rep, name)]
            yield f"mean of {name}", max(means), values[f"phase/{name}"][rep]
        works = {
            round(row["work_ns"], 3)
            for row in content["pipeline"]["load"]
            if row["rep"] == rep and row["op_id"] >= 0 and row["work_ns"] is not None
        }
        for name, by_rep in values.items():
            if name.startswith("pipeline/") and rep in by_rep:
                yield f"work of {name}", True, round(by_rep[rep], 3) in works


def _same(row: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(row[name] == other[name] for name in ("rep", "rank", "kind") if name in row and name in other)


def _trained(row: dict[str, Any], rep: int) -> bool:
    return bool(row["kind"] == "train" and row["rep"] == rep)
