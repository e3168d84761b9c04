"""The results of `pipeprof whatif` and `pipeprof headspace` for people: the answer, and the runs that it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeprof.report.document import Document
from pipeprof.report.sections import Section
from pipeprof.report.words.speedup import figure, prediction_lines, rates_line, speed_lines, spread, undecided_lines

Content = Mapping[str, Any]


def whatif(content: Content) -> Document:
    """What another setting brings, and what it was predicted to bring."""
    measured = content["measured"]
    answer = "a small difference" if measured["decided"] == "narrow" else measured["verdict"]
    more = undecided_lines(measured)[1:] if answer == "undecided" else []
    lines = [*speed_lines(content), *more, rates_line(content, "before", "after")]
    if content["error"] is not None:
        side = "high" if content["error"] > 0 else "low"
        lines.append(f"error of the prediction: {abs(content['error']) * 100:.1f} % too {side}")
    said = f"measured: {figure(measured, '')} times as fast ({spread(measured)}): {answer}"
    return Document(said, [Section("", notes=lines), Section("Predicted", notes=prediction_lines(content))])


def headspace(content: Content) -> Document:
    """What a perfect data pipeline brings; or one of which a part costs nothing."""
    part = content.get("part")
    first, *more = _bound(content["measured"]) if part is None else _of_part(content["measured"], part)
    rates = rates_line(content, "now", "with one cached batch" if part is None else "with it replaced")
    notes = [f"note: {note}" for note in content["notes"]]
    return Document(first, [Section("", notes=[*more, *speed_lines(content), rates, *notes])])


def _bound(measured: Content) -> list[str]:
    """The answer, with the pairs that it comes from."""
    if measured["verdict"] == "undecided":
        return undecided_lines(measured)
    bound = f"{figure(measured)} ({spread(measured)})"
    if measured["verdict"] == "no gain" and measured["decided"] == "narrow":
        return [f"little to gain: {bound}", "the training waits little for data, if at all"]
    if measured["verdict"] == "no gain":
        return [f"nothing to gain: {bound}", "the training does not wait for data"]
    return [f"upper bound {bound}", "no repair of the data pipeline makes this training faster than that"]


def _of_part(measured: Content, part: Content) -> list[str]:
    op = part["op"]
    name = f"`{op['name'] or op['op_type']}`"
    what = f"{name} alone" if part["mode"] == "alone" else f"everything up to {name}"
    if measured["verdict"] == "undecided":
        return undecided_lines(measured)
    if measured["verdict"] == "no gain":
        return [f"nothing to gain from {what}: {figure(measured)} ({spread(measured)})"]
    return [f"{figure(measured)} if {what} cost nothing ({spread(measured)})"]
