"""What a section is made of, and what several sections need."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipeprof.report.summary import in_detail
from pipeprof.units import format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pipeprof.report.charts.chart import Chart


@dataclass
class Block:
    """A table of text cells. Columns in `right` hold numbers: aligned to the right, never wrapped.

    Where a terminal is too narrow for all columns, those of `spare` go first, in that order, then the rightmost.
    `caption`: sentences that stand above it. `tall`: titles and cells have several lines on purpose; what they are made
    of went through `escape.line`. `fitted`: the same cells as another table, for a terminal of so many columns.
    `styles` of cells, by their text; on a page they are classes. `numbers` make a page's table sortable: those of each
    row, by the column's title.
    """

    head: Sequence[str]
    rows: list[list[str]]
    right: frozenset[int] = frozenset()
    spare: Sequence[int] = ()
    tall: bool = False
    caption: Sequence[str] = ()
    fitted: Callable[[int], Block] | None = None
    styles: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, Sequence[float | None]] = field(default_factory=dict)


@dataclass
class Section:
    """A title, sentences, and tables. `strong` sentences are the ones to read first; `name` is for `--section`.

    `charts` are drawn on a page, and only there. What is `folded` is opened by its title; a terminal does not show it.
    Notes that are `unbroken` stay one line each on any terminal. `code` are lines of a program or a patch, in this
    `language`, shown as they are behind the sentences. A `picture` is HTML that a page has beside the section.
    """

    title: str
    strong: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    name: str = ""
    unbroken: bool = False
    code: Sequence[str] = ()
    language: str = "text"
    charts: Callable[[], Sequence[Chart]] | None = None
    folded: bool = False
    picture: Callable[[], Sequence[str]] | None = None

    @property
    def says_something(self) -> bool:
        """Whether there is more than a title, and charts."""
        return bool(self.strong or self.notes or self.code or self.blocks)


def focus_of(content: dict[str, Any]) -> tuple[int, int]:
    """The repetition and rank to show in detail: of the repetition of the verdict the rank with the slowest steps.

    Where the verdict is about none, of the least disturbed one.
    """
    summary, rep = content["steps"]["summary"], content["diagnosis"]["rep"]
    own = [row for row in summary if row["rep"] == rep]
    shown = in_detail(own if in_detail(own) else summary)
    if shown is not None:
        return shown
    # no steps, but perhaps something else
    others = (content["pipeline"]["pipelines"], content["steps"]["split"], content["ops"], content["op_totals"])
    row = next((row for rows in others for row in rows), {"rep": 0, "rank": 0})
    return row["rep"], row["rank"]


def in_windows(content: dict[str, Any]) -> bool:
    """Whether operators were recorded in windows only, as pipeprof does; another profiler's steps are all alike."""
    imported = content["run"]["source"].startswith("import:")
    return not imported and any(row["window_steps"] for row in content["steps"]["summary"])


def rows_at(rows: Iterable[dict[str, Any]], focus: tuple[int, int]) -> list[dict[str, Any]]:
    """The rows of one repetition and rank."""
    return [row for row in rows if (row["rep"], row["rank"]) == focus]


def timed_steps(row: dict[str, Any]) -> str:
    """Steps whose time counts, and of how many when op windows took some out."""
    timed, steps = row["timed_steps"], row["steps"]
    return str(steps) if timed == steps else f"{timed} of {steps}"


def times(row: dict[str, Any]) -> list[str]:
    """Mean, median, 90th percentile and maximum as text."""
    return [format_ns(row[f"{name}_ns"]) for name in ("mean", "median", "p90", "max")]


def costs(row: dict[str, Any], *, nested: bool) -> list[str]:
    """Total, mean, maximum, own time and share as text; own times only where operators call others."""
    own = format_ns(row["self_ns"]) if nested else "-"
    return [*(format_ns(row[f"{name}_ns"]) for name in ("total", "mean", "max")), own, format_ratio(row["share"])]


def portion(row: dict[str, Any], name: str) -> str:
    """`178 ms (47.7 %)`, from the columns NAME_ns and NAME_share."""
    time, share = row[f"{name}_ns"], row[f"{name}_share"]
    return "-" if time is None else f"{format_ns(time)} ({format_ratio(share)})"


def filled(
    head: Sequence[str], rows: list[list[str]], words: Iterable[int] = (0,), spare: Iterable[int] = (), **more: Any
) -> Block:
    """A table without the columns that are `-` in every row; columns are numbers but those in `words`."""
    keep = [index for index in range(len(head)) if any(row[index] != "-" for row in rows)]
    left = frozenset(words)
    right = frozenset(place for place, index in enumerate(keep) if index not in left)
    going = [keep.index(index) for index in spare if index in keep]
    kept = [[row[index] for index in keep] for row in (head, *rows)]
    return Block(kept[0], kept[1:], right, going, **more)


def format_rate(rate: float | None) -> str:
    """Bytes per second in powers of 1000, as links are sold: `20.9 GB/s`; `-` for None."""
    if rate is None:
        return "-"
    for unit, size in (("GB/s", 1e9), ("MB/s", 1e6)):
        if rate >= size:
            return f"{rate / size:.1f} {unit}"
    return f"{rate / 1e3:.1f} kB/s"


def short_name(name: str | None) -> str:
    """The last two parts of a scoped name, `-` for none; the full one is in the JSON report and in `pipeprof ops`."""
    if name is None:
        return "-"
    parts = name.split("/")
    return name if len(parts) < 3 else "/".join(["...", *parts[-2:]])
