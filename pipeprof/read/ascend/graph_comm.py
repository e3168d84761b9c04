"""Communication files of the old profiler: `hccl_raw_<r>.csv`, `ascend_cluster_analyse_*.csv`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.errors import SourceError
from pipeprof.read.ascend.communication import LINK
from pipeprof.read.mindspore_ops import collective_kind
from pipeprof.read.source.content import HINT
from pipeprof.read.source.document import mapping, text
from pipeprof.read.source.numbers import duration, integer, size
from pipeprof.read.source.sheet import Sheet, field
from pipeprof.record.document import BAD_JSON

if TYPE_CHECKING:
    from pathlib import Path

    from pipeprof.read.ascend.out import Out

_DECODER = msgspec.json.Decoder(float_hook=str)
_STREAM = re.compile(r"stream_[0-9a-z]+_[0-9]+_(.+)")
_PARALLEL = re.compile(r"ascend_cluster_analyse_([a-z]+)-parallel_([0-9]{1,6})_([0-9]{1,6})_[0-9]{1,6}\.csv")
KB = 1000  # of these files: 4.096 KB in 0.00237 ms are given as 1728270 KB/s


def parallelism(path: Path) -> dict[str, Any]:
    """Kind of parallelism, pipeline stages and ranks of the job: only the file's name says it."""
    match = _PARALLEL.match(path.name)
    return {"mode": match[1], "stages": int(match[2]), "ranks": int(match[3])} if match else {}


def read_hccl(path: Path, out: Out) -> None:
    """Cost and links of every communication operator per step. The average row is not read, rates are not either."""
    sheet = Sheet(path)
    step_at, cost_at, wait_at = sheet.need("step_num"), sheet.need("communication_cost"), sheet.need("wait_cost")
    ops_at = sheet.index("communication_operator_cost")
    steps = 0
    for line, row in sheet.rows():
        number = integer(row[step_at])
        if number is None or number <= 0:
            continue
        steps += 1
        step = out.steps.position(number)
        transit, wait = duration(row[cost_at], "ms"), duration(row[wait_at], "ms")
        out.add("collective_cost", step=step, transit_ns=transit, wait_ns=wait)
        try:
            costs = mapping(_DECODER.decode(field(row, ops_at).encode("utf-8", "replace") or b"{}"))
        except BAD_JSON:
            out.odd(path, "operators of a step that are not JSON", f"line {line}")
            continue
        for name, cost in costs.items():
            _add_operator(path, name, cost, step, out)
    if not steps:
        raise SourceError(f"no step in `{path}`, expected one row for each", HINT)


def _add_operator(path: Path, name: str, cost: Any, step: int | None, out: Out) -> None:
    if not isinstance(cost, list) or len(cost) < 4:
        out.notes.count(path, "operator without count, cost, wait and links")
        return
    plain = _STREAM.fullmatch(name)
    shown = plain[1] if plain else name
    out.add(
        "collective_cost", step=step, name=shown, kind=collective_kind(shown),
        transit_ns=duration(text(cost[1]), "ms"), wait_ns=duration(text(cost[2]), "ms"),
    )  # fmt: skip
    for link, transports in mapping(cost[3]).items():
        ends = LINK.fullmatch(link)
        for transport, values in mapping(transports).items():
            if not ends or not isinstance(values, list) or len(values) < 2:
                continue
            length, dur = size(text(values[1]), "KB", KB), duration(text(values[0]), "ms")
            if length and dur:  # else it moved nothing
                out.add(
                    "rank_link", step=step, name=shown, src_rank=int(ends[1]), dst_rank=int(ends[2]),
                    transport=transport, bytes=length, dur_ns=dur,
                )  # fmt: skip


def read_cluster_analyse(path: Path, out: Out) -> None:
    """Computing and communication per step in ms. The last row, an average, is left out unless it is the only one."""
    sheet = Sheet(path)
    at = {
        "computing_ns": sheet.need("computation_time", "computation"),
        "exposed_ns": sheet.need("communication_alone_time"),
        "stage_ns": sheet.index("stage_time"),
        "receive_ns": sheet.index("receive_alone_time"),
        "exposed_without_receive_ns": sheet.index(
            "collective_communication_alone_time", "collective_communication_time"
        ),
    }  # fmt: skip
    rows = [
        {name: duration(field(row, index), "ms") for name, index in at.items()} for _, row in sheet.rows()
    ]  # fmt: skip
    if not rows:
        raise SourceError(f"no step in `{path}`, expected one row for each", HINT)
    for number, values in enumerate(rows[:-1] or rows, 1):
        one = number if len(rows) > 1 else None
        out.add("step_split", step=out.steps.position(one), source_step=one, source="cluster_analyse", **values)
