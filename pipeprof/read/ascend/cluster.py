"""Files about all ranks at once (folder cluster_analysis_output): steps as they were split, communication, links.

A rank's own files count more: rows from here are only for ranks that have none of that kind.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from pipeprof.errors import SourceError
from pipeprof.read.ascend.communication import costs, links, step_number
from pipeprof.read.ascend.output import PARTS
from pipeprof.read.source.document import mapping
from pipeprof.read.source.json_stream import entries
from pipeprof.read.source.numbers import duration, integer
from pipeprof.read.source.sheet import Sheet, field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pipeprof.read.ascend.identify import SourceFile
    from pipeprof.read.ascend.out import Out
    from pipeprof.record.run import Manifest

    Row = tuple[str, int | None, dict[str, Any]]
    Rows = dict[int, list[Row]]
    Entry = tuple[int, str, int | None, dict[str, Any]]

MOST_ROWS = 400_000  # of all ranks, of one file
MOST_RANKS = 1_000_000


class Cluster:
    """Rows by kind of file and rank: (table, number of the step, values)."""

    def __init__(self) -> None:
        self.rows: dict[str, Rows] = {}
        self.damage: list[SourceError] = []

    def ranks(self) -> set[int]:
        """Ranks that the files tell of."""
        return {rank for rows in self.rows.values() for rank in rows}

    def of(self, rank: int) -> dict[str, list[Row]]:
        """One rank's rows by kind of file."""
        return {kind: rows[rank] for kind, rows in self.rows.items() if rank in rows}


def read_cluster(recognised: Sequence[SourceFile], own: dict[str, set[int]], manifest: Manifest) -> Cluster:
    """Read one file of each kind: that which lies nearest to the top; the others are copies for comparison.

    `own` says which ranks have a file of their own of a kind.
    """
    read = Cluster()
    for kind, (rows_of, its_own) in _READERS.items():
        items = sorted(
            (item for item in recognised if item.kind == kind), key=lambda item: (len(item.path.parts), item.path)
        )
        for item in items[1:]:
            manifest.warn("left_out", f"`{item.path}` was left out: `{items[0].path}` is of the same kind")
        for item in items[:1]:
            rows: Rows = defaultdict(list)
            read.rows[kind] = rows
            try:
                _gather(rows, rows_of(item.path), own.get(its_own, set()), item.path)
            except SourceError as error:
                read.damage.append(error)
    return read


def _gather(rows: Rows, entries_of_all: Iterator[Entry], own: set[int], path: Path) -> None:
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
        rows[rank].append((table, step, values))


def add_cluster(rows: dict[str, list[Row]], out: Out) -> None:
    """Write one rank's rows."""
    for kind, mine in rows.items():
        for table, number, values in mine:
            source_step = {"source_step": number} if kind == SPLITS else {}
            out.add(table, step=out.step_of(number), **source_step, **values)


def _splits(path: Path) -> Iterator[Entry]:
    """Rows of `cluster_step_trace_time.csv`; those of a stage belong to its first rank, numbered from 0."""
    sheet = Sheet(path)
    type_at, index_at, step_at = sheet.need("Type"), sheet.need("Index"), sheet.need("Step")
    at = {name: sheet.index(column) for name, column in PARTS.items()}
    stages: dict[str, int] = {}
    for _, row in sheet.rows():
        index = row[index_at].strip()
        ranks = [rank for part in index.strip("()[]").split(",") if (rank := integer(part)) is not None]
        if not ranks or not 0 <= min(ranks) < MOST_RANKS:
            continue
        values: dict[str, Any] = {name: duration(field(row, number), "us") for name, number in at.items()}
        values["source"] = SPLITS
        if row[type_at].strip() == "stage":
            values["stage_index"] = stages.setdefault(index, len(stages))
        yield min(ranks), "step_split", integer(row[step_at]), values


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
