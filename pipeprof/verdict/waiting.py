"""What each rank of a live run waits for, from the Python stack of its main thread and from what the others are in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipeprof.record.whereabouts import Call, Frame, Live, Stuck

ENDED, GONE, SILENT, STARTING, MOVING = "ended", "gone", "silent", "starting", "moving"
FIRST_BATCH, BATCH, BUILD, COMPILE = "first_batch", "batch", "build", "compile"
NETWORK, RESULT, COLLECTIVE, SCRIPT = "network", "mindspore", "collective", "script"
ON_DEVICE = (NETWORK, RESULT)

STILL_NS = 1_000_000_000  # nothing recorded for so long is said to be waiting
SILENT_S = 5.0  # it says where it is every second; one that spins beside others does so some seconds late

_CODES = {"fetch": BATCH, "build": BUILD, "compile": COMPILE, "call": NETWORK}
_CALLBACK = "callback"


def judge(ranks: Sequence[Live]) -> list[dict[str, Any]]:
    """A row for each rank: `code`, `for_s`, where (`site`, `function`, `line`, `stack`), and what the code needs.

    `queue`: depth and capacity of the queue of batches; `queues`: of its whole pipeline, with `op_type`. `stuck`:
    threads and workers that are in one thing. `missing`: the ranks that have not come to a call, with their own codes.
    """
    rows = [_row(rank) for rank in ranks]
    for rank, row in zip(ranks, rows, strict=True):
        late = [
            {name: other[name] for name in ("rank", "code", "site", "line")}
            for one, other in zip(ranks, rows, strict=True)
            if one.rank != rank.rank and other["code"] not in (*ON_DEVICE, COLLECTIVE) and one.calls <= rank.calls
        ]
        if row["code"] in ON_DEVICE and late:
            row["call"], row["code"], row["missing"] = row["code"], COLLECTIVE, late
    return rows


def _row(rank: Live) -> dict[str, Any]:
    row: dict[str, Any] = {"rep": rank.rep, "rank": rank.rank, "pid": rank.pid, "code": _state(rank)}
    row |= {"for_s": None, "site": None, "function": None, "line": None, "in_callback": False, "queue": None}
    row |= {"stack": [], "stuck": [], "missing": [], "call": None, "queues": _queues(rank)}
    if rank.ended or not rank.alive or rank.age_s is None:
        return row
    code, call = _of_stack(rank.stack)
    if row["code"] is None:
        row["code"] = code
        if code == BATCH and call is not None and call.rows == 0:
            row["code"] = FIRST_BATCH
    since = None if call is None else call.since
    still_ns = rank.still_ns if since is None else rank.said_ns - since
    row["for_s"] = round(rank.age_s if row["code"] == SILENT else still_ns / 1e9 + rank.age_s, 1)
    if row["code"] == MOVING:
        row["for_s"] = None
        return row
    site = _site(rank.stack)
    if site is not None:
        row |= {"site": site.site, "function": site.function, "line": rank.line or None}
    row["call"] = code if row["code"] == SILENT else None
    row["in_callback"] = any(frame.call is not None and frame.call.call == _CALLBACK for frame in rank.stack)
    row["queue"] = _queue(rank, call)
    row["stack"] = _texts(rank.stack)
    row["stuck"] = [_stuck_row(one) for one in rank.stuck]
    return row


def _state(rank: Live) -> str | None:
    """State of a rank that is known without its stack; None otherwise."""
    if rank.ended:
        return ENDED
    if not rank.alive:
        return GONE
    if rank.age_s is None:
        return STARTING
    if rank.age_s > SILENT_S:
        return SILENT
    return MOVING if rank.still_ns < STILL_NS else None


def _of_stack(stack: Sequence[Frame]) -> tuple[str, Call | None]:
    """What a stack is in: the code, and the facts of the known call if it is one."""
    own = next((number for number, frame in enumerate(stack) if frame.own), len(stack))
    for number, frame in enumerate(stack):
        code = _CODES.get(frame.call.call) if frame.call is not None else None
        if code is not None and (number < own or code in (COMPILE, BUILD)):
            return code, frame.call
    return RESULT if any(_is_mindspore(frame) for frame in stack[:own]) else SCRIPT, None


def _is_mindspore(frame: Frame) -> bool:
    return "/mindspore/" in frame.file and not frame.own


def _site(stack: Sequence[Frame]) -> Frame | None:
    """The program's innermost line; where all of it is in libraries, the innermost that is not MindSpore's."""
    own = next((frame for frame in stack if frame.own), None)
    return own or next((frame for frame in stack if frame.call is None and not _is_mindspore(frame)), None)


def _queue(rank: Live, call: Call | None) -> dict[str, int] | None:
    """The queue that the loop takes its batches from: of the iterator that it waits for, else of the newest."""
    number = _newest(rank) if call is None or call.tree is None else call.tree
    samples = rank.queues.get(number) if number is not None else None
    return {"depth": samples[0].depth, "capacity": samples[0].capacity} if samples else None


def _newest(rank: Live) -> int | None:
    """The newest iterator with samples of its queues."""
    return max((tree for tree, samples in rank.queues.items() if samples), default=None)


def _queues(rank: Live) -> list[dict[str, Any]]:
    """All queues of the newest iterator, from the training loop towards the sources."""
    number = _newest(rank)
    queues = [] if number is None else rank.queues[number]
    return [{"op_type": one.op_type, "depth": one.depth, "capacity": one.capacity} for one in queues]


def _stuck_row(one: Stuck) -> dict[str, Any]:
    site = _site(one.stack)
    return {
        "pid": one.pid,
        "for_s": round(one.for_ns / 1e9, 1),
        "op_type": one.op_type,
        "name": one.name,
        "site": site.site if site is not None else None,
        "function": site.function if site is not None else None,
        "line": one.line or None,
        "stack": _texts(one.stack),
    }


def _texts(stack: Iterable[Frame]) -> list[str]:
    return [f"{frame.site} {frame.function}" for frame in stack]
