"""Settings that other profilers have under another name: whoever passes one is told the name here."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from pipeprof.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

HERE = {
    "path": "it is `out` here",
    "output_path": "it is `out` here",
    "format": "it is `formats` here: formats=[...]",
    "profile_device": "what a device did comes from the vendor's profiler: `pipeprof import` reads its files",
    "is_detail": "nothing is left out here: `pipeprof ops RUN --group-by name` shows single operators",
    "is_show_op_path": "names are whole here: `pipeprof ops RUN --group-by name`",
    "subgraph": "everything is recorded here: `pipeprof ops RUN --group-by phase` tells forward and backward apart",
    "optypes_to_deal": "everything is recorded here: `pipeprof ops RUN --type TYPE` chooses",
    "optypes_not_deal": "everything is recorded here: `pipeprof ops RUN --exclude-type TYPE` leaves out",
    "execution_trace_observer": "`pipeprof timeline RUN -o trace.json.gz` writes all events",
}


def refuse(given: Iterable[str], known: Iterable[str]) -> None:
    """Raise UsageError for the first of these settings, with the name that it has here or the nearest one."""
    for name in given:
        near = get_close_matches(name, list(known), 1)
        hint = HERE.get(name) or (f"did you mean {near[0]}?" if near else "help(pipeprof.profile) lists the settings")
        raise UsageError(f"profile has no setting {name}", hint)
