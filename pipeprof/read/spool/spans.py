"""Intervals that the program named itself (`pipeprof.record_function`), with their Python stacks, if any."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeprof.read.spool.process import Process
    from pipeprof.read.tables.rows import RankRows


def add_named(process: Process, out: RankRows) -> None:
    """Write one span per interval, and one row of `stack` per source location that they share."""
    for event in process.all("span"):
        begin, end = int(event["begin"]), int(event["end"])
        out.add(
            "span", track=event.get("track"), category=event.get("category"), name=event["label"],
            start_ns=out.at(begin), dur_ns=max(0, end - begin),
            stack_id=out.stack_id(event.get("stack") or ()),
        )  # fmt: skip
