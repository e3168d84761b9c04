"""Own time of the intervals that the program named: without those inside them, and without operators."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from pipeprof.record import store

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeprof.record.run import Run

_EXECUTED = ["rep", "rank", "start_ns", "dur_ns"]


def user_spans(run: Run, stack_depth: int = 0) -> dict[tuple[str, str], tuple[int, int, int, int | None]]:
    """(name, stack) -> count, own time and time, ns, of the spans of `record_function`, and memory taken in them.

    Spans in warm-up steps do not count. `stack` are the `stack_depth` innermost frames, one per line; empty for 0 and
    where none was recorded. Memory is in bytes, allocated less freed; None where it was not recorded.
    """
    first = (run.manifest.options.get("profile") or {}).get("first_active")
    spans = {}
    for place, every in _by_place(store.read(run, "span").to_pylist()).items():
        begin = min((row["start_ns"] for row in every if row["name"] == f"ProfilerStep#{first}"), default=0)
        spans[place] = [row for row in every if row["category"] == "user" and row["start_ns"] >= begin]
    if not any(spans.values()):
        return {}
    executed = _by_place(store.read(run, "op").select(_EXECUTED).sort_by("start_ns").to_pylist())
    blocks = _by_place(store.read(run, "allocation").to_pylist())
    frames = _by_place(store.read(run, "stack").to_pylist() if stack_depth else [])
    sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for place, named in spans.items():
        times, held = _held(blocks[place])
        frame_of = {row["stack_id"]: row for row in frames[place]}
        for row, own in _own_times(named, [(row["start_ns"], row["dur_ns"]) for row in executed[place]]):
            key = (row["name"], _text(row["stack_id"], frame_of, stack_depth))
            for index, value in enumerate((1, own, row["dur_ns"], _inside(row, times, held))):
                sums[key][index] += value
    recorded = any(blocks.values())
    return {key: (count, own, total, memory if recorded else None) for key, (count, own, total, memory) in sums.items()}


def _held(blocks: Sequence[dict[str, Any]]) -> tuple[list[int], list[int]]:
    """When blocks were allocated or released, ns, and the bytes that are held before and behind each."""
    changes = [(row["produced_ns"], row["bytes"]) for row in blocks]
    changes += [(row["released_ns"], -row["bytes"]) for row in blocks if row["released_ns"] is not None]
    changes.sort()
    return [at for at, _ in changes], [0, *accumulate(change for _, change in changes)]


def _by_place(rows: Iterable[dict[str, Any]]) -> dict[tuple[int, int], list[dict[str, Any]]]:
    """Rows by repetition and rank, each of which has a clock and numbers of its own."""
    places: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        places[row["rep"], row["rank"]].append(row)
    return places


def _own_times(
    spans: Iterable[dict[str, Any]], executed: Sequence[tuple[int, int]]
) -> Iterable[tuple[dict[str, Any], int]]:
    """Each span with its own time: without the spans of its track that lie within it, and without operators.

    Coroutines of one thread overlap in part: such spans lie within neither.
    """
    starts = [start for start, _ in executed]
    running = [0, *accumulate(dur for _, dur in executed)]
    tracks: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for span in spans:
        tracks[span["track"]].append(span)
    for track in tracks.values():
        children: dict[int, int] = defaultdict(int)  # time inside a span that is not its own
        inner: dict[int, int] = defaultdict(int)  # operators' time inside spans inside a span
        open_spans: list[dict[str, Any]] = []
        for span in sorted(track, key=lambda row: (row["start_ns"], -row["dur_ns"])):
            open_spans = [one for one in open_spans if _end(one) > span["start_ns"]]
            around = next((one for one in reversed(open_spans) if _end(one) >= _end(span)), None)
            if around is not None:
                children[id(around)] += span["dur_ns"]
                inner[id(around)] += _inside(span, starts, running)
            open_spans.append(span)
        for span in track:
            direct = _inside(span, starts, running) - inner[id(span)]
            yield span, max(0, span["dur_ns"] - children[id(span)] - direct)


def _end(span: Mapping[str, Any]) -> int:
    return int(span["start_ns"] + span["dur_ns"])


def _inside(span: Mapping[str, Any], starts: Sequence[int], running: Sequence[int]) -> int:
    """What begins in a span adds so much to a running sum: the time of operators, say."""
    first = bisect_left(starts, span["start_ns"])
    return running[bisect_left(starts, span["start_ns"] + span["dur_ns"])] - running[first]


def _text(stack_id: int | None, frames: Mapping[int, Mapping[str, Any]], depth: int) -> str:
    lines: list[str] = []
    while stack_id is not None and len(lines) < depth:
        lines.append(frames[stack_id]["frame"])
        stack_id = frames[stack_id]["parent_id"]
    return "\n".join(lines)
