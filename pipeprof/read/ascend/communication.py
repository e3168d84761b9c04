"""Communication: cost of every operator per step, and what moved over which link.

`communication.json` and `communication_matrix.json`; of the old profiler `hccl_raw_<r>.csv` and
`ascend_cluster_analyse_*.csv`. Shares and rates are not read: they follow from times and sizes.

Files about all ranks at once (folder cluster_analysis_output) have steps as they were split, communication and links. A
rank's own files count more: rows from there are only for ranks that have none of that kind.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.errors import SourceError
from pipeprof.read.ascend.output import split_rows
from pipeprof.read.mindspore_ops import collective_kind
from pipeprof.read.source.content import HINT, document, mapping, text
from pipeprof.read.source.json_stream import entries
from pipeprof.read.source.numbers import duration, integer, size
from pipeprof.read.source.sheet import Sheet, field
from pipeprof.read.tables.rows import LONGEST
from pipeprof.record.document import BAD_JSON

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pipeprof.read.ascend.identify import SourceFile
    from pipeprof.read.ascend.out import Out
    from pipeprof.record.run import Manifest

    Row = tuple[str, dict[str, Any]]
    RankRow = tuple[str, int | None, dict[str, Any]]
    Entry = tuple[int, str, int | None, dict[str, Any]]

_STEP = re.compile(r"(?:step)?([0-9]{1,12})")
LINK = re.compile(r"([0-9]{1,6})-([0-9]{1,6})")
MB = 1000  # 20.97152 MB are 20 MiB
TOTAL = "Total Op Info"  # a sum over the others
_TIMES = {"dur_ns": "Elapse", "transit_ns": "Transit", "wait_ns": "Wait", "sync_ns": "Synchronization",
          "idle_ns": "Idle"}  # fmt: skip


def read_operators(path: Path, rows_of: Callable[[str, dict[str, Any]], Iterator[Row]], out: Out) -> None:
    """The rows of each operator of each step: its `costs` (and what it moved by kind of link), or its `links`."""
    operators = 0
    for operators, ((step_name, _kind, full), said) in enumerate(entries(path, 3), 1):  # noqa: B007 - their number counts
        step = out.step_of(step_number(step_name))
        rows = list(rows_of(full, mapping(said)))
        for table, values in rows:
            out.add(table, step=step, **values)
        if not rows and full != TOTAL and rows_of is costs:
            out.notes.count(path, "operator without an elapsed time")
    if not operators and not _is_empty(path):
        raise SourceError(f"no communication operator in `{path}`, expected step -> kind -> operator", HINT)


def step_number(text: str) -> int | None:
    """The number in a key such as `step12` or `12`."""
    match = _STEP.fullmatch(text)
    return int(match[1]) if match else None


def _is_empty(path: Path) -> bool:
    """Whether it is well formed and nothing was communicated: no step, or steps whose kinds have no operators."""
    steps = [said for _keys, said in entries(path, 1)]
    return all(isinstance(step, dict) and all(kind == {} for kind in step.values()) for step in steps)


def costs(full: str, said: dict[str, Any]) -> Iterator[Row]:
    """Rows of one operator of `communication.json` (`name@group`); none for a sum and without an elapsed time."""
    name, group = _parts(full)
    cost = mapping(said.get("Communication Time Info"))
    times = {column: duration(text(cost.get(f"{what} Time(ms)")), "ms") for column, what in _TIMES.items()}
    if name == TOTAL or times["dur_ns"] is None:
        return
    yield "collective_cost", {"name": name, "group_name": group, "kind": collective_kind(name), **times}
    for transport, moved in mapping(said.get("Communication Bandwidth Info")).items():
        yield from _link(name, group, (None, None), transport, mapping(moved))


def links(full: str, said: dict[str, Any]) -> Iterator[Row]:
    """Rows of one operator of `communication_matrix.json`; none for a sum."""
    name, group = _parts(full)
    for link, moved in said.items():
        ends = LINK.fullmatch(link)
        if ends and name != TOTAL:
            transport = text(mapping(moved).get("Transport Type"))
            yield from _link(name, group, (int(ends[1]), int(ends[2])), transport, mapping(moved))


def _parts(full: str) -> tuple[str, str | None]:
    name, _, group = full.partition("@")
    return name[:LONGEST], group[:LONGEST] or None


def _link(
    name: str, group: str | None, ends: tuple[int | None, int | None], transport: str, moved: dict[str, Any]
) -> Iterator[Row]:  # fmt: skip
    """A link that moved nothing is stored as zeros, and left out."""
    length = size(text(moved.get("Transit Size(MB)")), "MB", MB)
    dur = duration(text(moved.get("Transit Time(ms)")), "ms")
    if length and dur:
        yield "rank_link", {
            "name": name, "group_name": group, "src_rank": ends[0], "dst_rank": ends[1],
            "transport": transport[:LONGEST] or None, "bytes": length, "dur_ns": dur,
        }  # fmt: skip


def stated_rank(path: Path) -> int | None:
    """`rank_id` of a profiler_info file."""
    value = integer(text(mapping(document(path)).get("rank_id")))
    return value if value is not None and 0 <= value < 1_000_000 else None


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


MOST_ROWS = 400_000  # of all ranks, of one file
MOST_RANKS = 1_000_000


def read_cluster(
    recognised: Sequence[SourceFile], own: dict[str, set[int]], manifest: Manifest
) -> tuple[dict[int, dict[str, list[RankRow]]], list[SourceError]]:
    """Rows (table, number of the step, values) by rank and kind of file, and what could not be read.

    One file of each kind is read: that which lies nearest to the top; the others are copies for comparison. `own` says
    which ranks have a file of their own of a kind.
    """
    by_rank: dict[int, dict[str, list[RankRow]]] = defaultdict(dict)
    damage: list[SourceError] = []
    for kind, (rows_of, its_own) in _READERS.items():
        items = sorted(
            (item for item in recognised if item.kind == kind), key=lambda item: (len(item.path.parts), item.path)
        )
        for item in items[1:]:
            manifest.warn("left_out", f"`{item.path}` was left out: `{items[0].path}` is of the same kind")
        for item in items[:1]:
            try:
                for rank, row in _lacking(rows_of(item.path), own.get(its_own, set()), item.path):
                    by_rank[rank].setdefault(kind, []).append(row)
            except SourceError as error:
                damage.append(error)
    return by_rank, damage


def _lacking(entries_of_all: Iterator[Entry], own: set[int], path: Path) -> Iterator[tuple[int, RankRow]]:
    """The rows of ranks that have no file of their own, each with its rank."""
    count = 0
    for rank, table, step, values in entries_of_all:
        if rank in own and "stage_index" not in values:
            continue
        count += 1
        if count > MOST_ROWS:
            raise SourceError(
                f"`{path}` has more than {MOST_ROWS} rows for ranks without files of their own: the rest was left out",
                "import the ranks' own folders with it",
            )
        yield rank, (table, step, values)


def add_cluster(rows: dict[str, list[RankRow]], out: Out) -> None:
    """Write one rank's rows."""
    for kind, mine in rows.items():
        for table, number, values in mine:
            source_step = {"source_step": number} if kind == SPLITS else {}
            out.add(table, step=out.step_of(number), **source_step, **values)


def _splits(path: Path) -> Iterator[Entry]:
    """Rows of `cluster_step_trace_time.csv`; those of a stage belong to its first rank, numbered from 0."""
    sheet = Sheet(path)
    type_at, index_at = sheet.need("Type"), sheet.need("Index")
    stages: dict[str, int] = {}
    for _, row, step, values in split_rows(sheet):
        index = row[index_at].strip()
        ranks = [rank for part in index.strip("()[]").split(",") if (rank := integer(part)) is not None]
        if not ranks or not 0 <= min(ranks) < MOST_RANKS:
            continue
        values["source"] = SPLITS
        if row[type_at].strip() == "stage":
            values["stage_index"] = stages.setdefault(index, len(stages))
        yield min(ranks), "step_split", step, values


def _communication(path: Path) -> Iterator[Entry]:
    """Rows of `cluster_communication.json`: group -> step -> operator -> rank."""
    for (_, step, full, rank), said in entries(path, 4):
        number = integer(rank)
        if number is not None and 0 <= number < MOST_RANKS:
            for table, values in costs(full, mapping(said)):
                yield number, table, step_number(step), values


def _matrix(path: Path) -> Iterator[Entry]:
    """Rows of `cluster_communication_matrix.json`: group -> step -> operator -> link; they belong to the sender."""
    for (_, step, full, link), said in entries(path, 4):
        for table, values in links(full, {link: said}):
            yield values["src_rank"], table, step_number(step), values


SPLITS = "cluster_step_trace"
_READERS: dict[str, tuple[Callable[[Path], Iterator[Entry]], str]] = {
    SPLITS: (_splits, "step_trace_time"),
    "cluster_communication": (_communication, "communication"),
    "cluster_matrix": (_matrix, "communication_matrix"),
}
