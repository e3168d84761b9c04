"""The timed calls of the user's Python in the dataset pipeline, as service times of its operators."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeprof.read.spool.pipelines import Pipeline
    from pipeprof.read.spool.process import Process
    from pipeprof.read.tables.rows import RankRows


def add_calls(process: Process, out: RankRows, pipelines: Mapping[int, Pipeline]) -> None:
    """The timed calls of the user's Python: an operator's functions are called one after the other for each row."""
    for time_ns, number, node, parts in _calls_of_rows(process.all("calls")):
        op_id = pipelines[number].op_ids.get(node) if number in pipelines else None
        if op_id is None:
            continue
        one = parts[0] if len(parts) == 1 else {}
        out.add(
            "op_service", pipeline_id=pipelines[number].pipeline_id, op_id=op_id, t_ns=out.at(time_ns), source="hook",
            avg_ns=sum(part["wall"] // part["timed"] for part in parts), max_ns=one.get("max"), min_ns=one.get("min"),
            rows=max(part["calls"] for part in parts), batches=max(part["batches"] for part in parts),
            cpu_ns=sum(part["cpu"] // part["timed"] for part in parts), delay_ns=_of_a_row(parts, "delay"),
            read_bytes=_of_a_row(parts, "read"), in_bytes=_of_a_row(parts[:1], "given"),
            out_bytes=_of_a_row(parts[-1:], "made"),
        )  # fmt: skip


def add_lock_waits(process: Process, out: RankRows, pipelines: Mapping[int, Pipeline]) -> None:
    """How many threads of each operator waited for the interpreter's lock."""
    for event in process.all("gil"):
        for number, node, threads in event.get("waiting", ()):
            op_id = pipelines[number].op_ids.get(node) if number in pipelines else None
            if op_id is not None:
                out.add(
                    "cpu", t_ns=out.at(event["t"]), scope="lock_wait", pipeline_id=pipelines[number].pipeline_id,
                    op_id=op_id, user_ratio=float(threads),
                )  # fmt: skip


def add_instructions(process: Process, out: RankRows, pipelines: Mapping[int, Pipeline]) -> None:
    """What was counted of the first calls of each function."""
    counts: dict[tuple[int, int, int], list[int]] = {}
    for event in process.all("instructions"):
        number, node, part = (int(event[name] or 0) for name in ("pipeline", "node", "part"))
        op_id = pipelines[number].op_ids.get(node) if number in pipelines else None
        if op_id is not None:
            counts.setdefault((number, op_id, part), []).extend(event.get("counts") or ())
    for (number, op_id, part), found in sorted(counts.items()):
        out.add(
            "op_instructions", pipeline_id=pipelines[number].pipeline_id, op_id=op_id, part=part, calls=len(found),
            median=median(found), least=min(found), most=max(found),
        )  # fmt: skip


def _calls_of_rows(events: Iterable[Mapping[str, Any]]) -> list[tuple[int, int, int, list[Mapping[str, Any]]]]:
    """(time, pipeline, node, figures of each function), of stretches in which every function of the operator ended.

    A slow function ends no call in some stretches: its figures belong to the rows of the others' next to it.
    """
    of_nodes: dict[tuple[int, int], list[Mapping[str, Any]]] = {}
    for event in sorted(events, key=lambda one: int(one["t"])):
        of_nodes.setdefault((int(event["pipeline"]), int(event["node"])), []).append(event)
    found = []
    for (number, node), told in of_nodes.items():
        of_node = _timed(told)
        if not of_node:
            continue
        functions = {event.get("part") for event in of_node}
        stretches: list[list[Mapping[str, Any]]] = [[]]
        for event in of_node:
            if {one.get("part") for one in stretches[-1]} == functions:
                stretches.append([])
            stretches[-1].append(event)
        if len(stretches) > 1 and {one.get("part") for one in stretches[-1]} != functions:
            rest = stretches.pop()
            stretches[-1] += rest
        for stretch in stretches:
            parts = [
                _together([one for one in stretch if one.get("part") == part])
                for part in sorted(functions, key=lambda part: part or 0)
                if any(one.get("part") == part for one in stretch)
            ]
            found.append((int(stretch[-1]["t"]), number, node, parts))
    return sorted(found, key=lambda item: item[:3])


def _timed(events: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those with times, in order; calls at the end of which none was timed are added to the last ones that were."""
    found: list[Mapping[str, Any]] = []
    for event in events:
        if event.get("timed"):
            found.append(event)
            continue
        before = next((at for at, one in enumerate(reversed(found), 1) if one.get("part") == event.get("part")), None)
        if before is not None:
            last = found[-before]
            found[-before] = dict(last) | {name: int(last[name]) + int(event[name]) for name in ("calls", "batches")}
    return found


def _together(events: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The figures of one function in several tellings."""
    if len(events) == 1:
        return events[0]
    whole: dict[str, Any] = dict(events[-1])
    for name in ("calls", "batches", "timed", "wall", "cpu", "delay", "read", "given", "made"):
        figures = [one.get(name) for one in events]
        whole[name] = None if None in figures else sum(int(one or 0) for one in figures)
    return whole | {"max": max(one["max"] for one in events), "min": min(one["min"] for one in events)}


def _of_a_row(parts: Sequence[Mapping[str, Any]], name: str) -> int | None:
    """Of a row in all functions together; None when one of them does not say."""
    if any(part.get(name) is None for part in parts):
        return None
    return sum(int(part[name]) // int(part["timed"]) for part in parts)
