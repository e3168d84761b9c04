"""Why a comparison came out as it did: the lines of its explanation that are shown, the same in every form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pipeprof.report.compare.rows import LONGEST_NAME, clean, values

if TYPE_CHECKING:
    from collections.abc import Sequence

    Entry = dict[str, Any]

MOST_LINES = 10
MOST_NAMED = 3  # operators of other names or shapes that are listed one by one
LARGE = 0.10  # of the step's change: an operator that came or went is listed all the same
PROVEN = ("regressed", "improved", "acknowledged")


class Line(NamedTuple):
    """One line: the cells of a table, and all of them as one sentence."""

    what: str
    base: str = ""
    new: str = ""
    share: str = "-"  # of the step's change

    @property
    def text(self) -> str:
        """The line as a sentence."""
        numbers = f": {self.base} -> {self.new}" if self.base else ""
        return self.what + numbers + ("" if self.share == "-" else f", {self.share} of the step's change")


def title(content: dict[str, Any]) -> str:
    """What stands above the lines: only a change that was judged has a cause."""
    if content["verdict"] in PROVEN:
        return "Why"
    return "Possible causes" if content["verdict"] == "inconclusive" else "What changed"


def lines(content: dict[str, Any]) -> list[Line]:
    """At most ten, in the order of the explanation; operators that hardly matter are folded into one."""
    entries: Sequence[Entry] = content.get("explanation") or []
    renamed = _small(entries, "appeared", "vanished")
    reshaped = _small(entries, "changed")
    folded = [group for group in (renamed, reshaped) if len(group) > MOST_NAMED]
    hidden = {id(entry) for group in folded for entry in group}
    single = [entry for entry in entries if id(entry) not in hidden]
    room = MOST_LINES - len(folded)
    shown = single if len(single) <= room else single[: room - 1]
    found = [*map(line, shown), *(Line(_summed_up(group)) for group in folded)]
    rest = len(single) - len(shown)
    return [*found, Line(f"and {rest} more: --format json")] if rest else found


def _small(entries: Sequence[Entry], *changes: str) -> list[Entry]:
    """Operators that came, went or became others, without a large share of the step's change of their own."""
    return [
        entry
        for entry in entries
        if entry.get("kind") == "structure"
        and str(entry.get("name")).startswith("op ")
        and entry.get("change") in changes
        and abs(entry.get("share") or 0.0) < LARGE
    ]


def _summed_up(group: Sequence[Entry]) -> str:
    found = {entry["change"] for entry in group}
    if found == {"changed"}:
        return f"{len(group)} operators have other types or shapes: another batch size?"
    if len(found) == 1:
        return f"{len(group)} operators {found.pop()}"
    return f"{len(group)} operators have other names: another library version?"


def line(entry: Entry) -> Line:
    """One entry of the explanation."""
    share = entry.get("share")
    part = "-" if share is None else f"{_whole(share)} %"
    said = entry.get("text") or f"{entry.get('what') or entry.get('name') or ''} {entry.get('change', '')}"
    base, new = ("-", "-") if entry.get("kind") == "structure" else values(entry)
    return Line(clean(said, LONGEST_NAME), *(("", "") if (base, new) == ("-", "-") else (base, new)), part)


def _whole(share: float) -> str:
    """A share in whole per cent; what rounds to nothing has no sign."""
    text = f"{share * 100:.0f}"
    return "0" if text == "-0" else text
