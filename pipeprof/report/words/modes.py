"""That the steps of a training have two lengths, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.report.words import joined
from pipeprof.units import format_ns, percent

if TYPE_CHECKING:
    from collections.abc import Mapping

    Modes = Mapping[str, Any]

_DIFFERS = {
    "data": "wait for their data",
    "neighbour": "have other programs beside them, which take {neighbour_cores} cores",
    "delay": "wait for a core",
    "fewer_cores": "use fewer cores ({own_cores})",
    "more_cores": "use more cores ({own_cores})",
    "later": "come later in the run",
    "earlier": "come earlier in the run",
}


def lengths(modes: Modes) -> str:
    """`two lengths: 98.0 ms (60 % of the steps) and 1.90 s (40 %)`."""
    short, long = modes["short"], modes["long"]
    first = f"{format_ns(short['median_ns'])} ({percent(short['share'])} of the steps)"
    return f"two lengths: {first} and {format_ns(long['median_ns'])} ({percent(long['share'])})"


def difference(modes: Modes) -> str:
    """What the long steps have that the short ones have not, as a sentence."""
    short, long = modes["short"], modes["long"]
    names = ("own_cores", "neighbour_cores")
    numbers = {
        name: f"{long[name]:.1f} instead of {short[name]:.1f}"
        for name in names
        if short[name] is not None and long[name] is not None
    }
    said = [_DIFFERS[code].format(**numbers) for code in modes["differs"]]
    if not said:
        return "The record has nothing that tells the long steps from the short ones."
    return f"The long steps {joined(said)}."
