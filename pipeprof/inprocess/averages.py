"""`key_averages()`: operators and spans of a run, summed by what they are, and the table that prints them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from pipeprof.escape import html as escape
from pipeprof.escape import line
from pipeprof.query.engine import Engine
from pipeprof.read.mindspore_ops import op_type
from pipeprof.read.spool.finish import open_run
from pipeprof.record import store
from pipeprof.report import page
from pipeprof.report.ops import content
from pipeprof.report.ops.question import parse_order, summed
from pipeprof.report.ops.sections import torch_block
from pipeprof.report.table import draw, wrap_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pipeprof.record.run import Run
    from pipeprof.report.sections import Block

MEMORY = ("memory_bytes", "self_memory_bytes")
WORK = "computation"
COLUMNS = ("self_ns", "total_ns", "mean_ns", "count", "name", "in_shapes", "stack", "category", *MEMORY, WORK)
# Columns of other profilers that the program's own recorder does not fill: ordering by one is no error.
NOT_RECORDED = (
    "device_self_ns", "device_total_ns", "device_mean_ns", "device_memory_bytes", "self_device_memory_bytes",
)  # fmt: skip
USER = "user"
_NUMBER = re.compile(r"#\d+$")  # that tells operators of one name apart
SHOWN = 20  # rows at a prompt
ALWAYS = ("name", "self_ns", "share", "total_ns", "total_share", "mean_ns", "count")  # of the table
WIDTHS = {"Name": 55, "Input Shapes": 80, "Source Location": 75}  # from which on a text goes on in the next line
ANY_WIDTH = 10_000  # who prints it is not known


@dataclass(frozen=True)
class Average:
    """One row. Times in ns over all `count` executions; `self_ns` without what ran inside it.

    `category`: `op`, or `user` for spans of `record_function`. `in_shapes` and `stack` are texts, empty when the table
    is not grouped by them or they were not recorded. Memory is allocated less freed, in bytes, by the change of the
    framework's pool around operators; None without `profile_memory`. Spans have that of the operators in them.
    `computation`: operations of the executions of which they are known; None where they are of none, and of spans.
    """

    name: str
    count: int
    self_ns: int
    total_ns: int
    category: str = "op"
    in_shapes: str = ""
    stack: str = ""
    memory_bytes: int | None = None
    self_memory_bytes: int | None = None
    computation: float | None = None

    @property
    def mean_ns(self) -> float:
        """Mean time of one execution, ns."""
        return self.total_ns / self.count


class KeyAverages:
    """The rows, most own time first; iterate over it, or print `table()`."""

    def __init__(
        self,
        rows: Sequence[Average],
        *,
        shapes: bool = False,
        stacks: bool = False,
        flops: bool = False,
        note: str = "",
    ) -> None:
        self.rows = sorted(rows, key=lambda row: (-row.self_ns, row.name, row.in_shapes, row.stack))
        wanted = {WORK: flops, "in_shapes": shapes, "stack": stacks}
        self._columns = [*ALWAYS, *(name for name, is_wanted in wanted.items() if is_wanted)]
        self._note = note

    def __iter__(self) -> Iterator[Average]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def self_ns(self) -> int:
        """Own time of all rows, ns."""
        return sum(row.self_ns for row in self.rows)

    def table(self, sort_by: str | None = None, row_limit: int = 100) -> str:
        """The rows as text, `row_limit` at most (-1: all).

        `sort_by`: a column (`self_ns`, `total_ns`, `mean_ns`, `count`, `name`) or torch's name for it
        (`self_cpu_time_total`, `cpu_memory_usage`, `total_flops`, ...), largest first; `+` in front: smallest first.
        For columns of devices, which are not recorded here, of memory without `profile_memory`, and of operations where
        none are known, the order is that of `self_ns`, and the table says so. Raises UsageError for any other.
        """
        rows, note = list(self.rows), self._note
        order = None if sort_by is None else parse_order(sort_by, (*COLUMNS, *NOT_RECORDED))
        if order is not None and not self._has(order.column):
            note = "; ".join(filter(None, [note, f"{sort_by} is not recorded here: sorted by Self CPU"]))
        elif order is not None:
            measured = [row for row in rows if getattr(row, order.column) is not None]
            measured.sort(key=lambda row: getattr(row, order.column), reverse=not order.ascending)
            rows = [*measured, *(row for row in rows if getattr(row, order.column) is None)]
        block = self._block(rows if row_limit < 0 else rows[:row_limit])
        block.rows = [[_wrapped(*named) for named in zip(block.head, row, strict=True)] for row in block.rows]
        block.tall = True
        drawn = draw(block, ANY_WIDTH)
        text = [*drawn.head, *drawn.body, f"Self CPU time total: {content.torch_time(self.self_ns)}"]
        if len(rows) > len(block.rows):
            text.append(f"{len(rows) - len(block.rows)} more rows: row_limit=-1 shows all")
        return "\n".join([*text, *([note] if note else []), ""])

    def _block(self, rows: Sequence[Average]) -> Block:
        """With memory where it was recorded; shares are of the own time of all rows."""
        memory = MEMORY if any(row.memory_bytes is not None for row in rows) else ()
        all_ns = self.self_ns
        shown = [
            asdict(row) | {"mean_ns": row.mean_ns, "share": row.self_ns / all_ns if all_ns else None,
                           "total_share": row.total_ns / all_ns if all_ns else None}
            for row in rows
        ]  # fmt: skip
        return torch_block(shown, [*self._columns, *memory])

    def _has(self, column: str) -> bool:
        filled = column not in (*MEMORY, WORK) or any(getattr(row, column) is not None for row in self.rows)
        return column not in NOT_RECORDED and filled

    def __repr__(self) -> str:
        return self.table(row_limit=SHOWN).rstrip("\n")

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        block, more = self._block(self.rows[:SHOWN]), len(self.rows) - SHOWN
        body = ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in block.rows]
        notes = [*([f"{more} more rows"] if more > 0 else []), *([self._note] if self._note else [])]
        return "\n".join([*page.table(block.head, body), *(f"<p>{escape(note)}</p>" for note in notes)])


def _wrapped(title: str, cell: str) -> str:
    if title not in WIDTHS:
        return cell
    lines = cell.split("\n") if title == "Source Location" else [cell]
    return "\n".join(wrapped for part in lines for wrapped in wrap_text(line(part), WIDTHS[title]))


def key_averages(path: Path, *, shapes: bool = False, stack_depth: int = 0, flops: bool = False) -> KeyAverages:
    """The averages of a run: operators by type, and the spans of `record_function` by name."""
    group = "shape" if shapes else "stack" if stack_depth else "name"
    run = open_run(path)
    with Engine.open(run) as engine:
        groups = engine.rows("op/key_averages", group_by=group, stack_depth=max(stack_depth, 1), python_functions=True)
    by_type: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in groups:
        by_type[type_of(row["key"]), row["in_shapes"] or "" if shapes else "", row["stack"] or ""].append(row)
    rows = [
        Average(kind, one["count"], one["self_ns"] or 0, one["total_ns"] or 0, "op", in_shapes, stack,
                one["memory_bytes"], one["self_memory_bytes"], one[WORK])
        for (kind, in_shapes, stack), one in ((key, summed(own)) for key, own in by_type.items())
    ]  # fmt: skip
    rows += [
        Average(name, count, own, total, USER, "", stack, taken)
        for (name, stack), (count, own, total, taken) in user_spans(run, stack_depth).items()
    ]
    return KeyAverages(rows, shapes=shapes, stacks=bool(stack_depth), flops=flops)


def type_of(name: str) -> str:
    """The type of an operator from its name in a run: `Default/c1-Conv2d/Conv2D-op0#3` and `Conv2D#2` are Conv2D."""
    return op_type(_NUMBER.sub("", name))


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
