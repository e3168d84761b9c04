"""Asks everything that the report on many runs shows: what `--format json` prints and the other formats render."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.errors import UsageError
from pipeprof.query.engine import Engine
from pipeprof.record.cache import cached
from pipeprof.verdict import fleet
from pipeprof.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

FLEET_VERSION = 1
TABLE = "fleet_rank"
MOST_KEPT = 32
_ALL = 1 << 40


def content_of(
    rows: pa.Table, roots: Sequence[str], top: int, twice: int = 0, unlisted: Sequence[str] = ()
) -> dict[str, Any]:
    """The content of `pipeprof fleet --format json`. `rows`: of fleet_rank; `top`: most rows of a table.

    `twice`: so many runs were left out of the rows because another place of the same run is in them.
    `unlisted`: folders in which there may be runs, with the reason why nobody knows.
    """
    with Engine.of_tables({TABLE: rows}) as engine:
        states = engine.rows("fleet/state")
        machines = engine.rows("fleet/machine", slow=fleet.SLOW)
        regressions, why = _regressions(engine)
        return {
            "schema_version": FLEET_VERSION,
            "roots": list(roots),
            "top": top,
            "runs": sum(row["runs"] for row in states),
            "twice": twice,
            "states": states,
            "leads": engine.rows("fleet/lead", top=_ALL),
            "waits": engine.rows("fleet/wait", top=_ALL),
            "causes": engine.rows("fleet/cause", top=_ALL),
            "fixes": engine.rows("fleet/fix", top=_ALL),
            "regressions": regressions,
            "regressions_not_looked_for": why,
            "versions": fleet.slower_versions(engine.rows("fleet/version")),
            "machines": fleet.slow_machines(machines),
            "machines_compared": len(machines),
            "left_out": engine.rows("fleet/left_out"),
            "unlisted": list(unlisted),
        }


def _regressions(engine: Engine) -> tuple[list[dict[str, Any]] | None, str | None]:
    """The regressions; None, and why, where nothing can look for them.

    They are kept with a hash of what they were found in: loading the statistics takes longer than all queries.
    """
    series = engine.rows("fleet/series")
    made_of = __version__.encode() + msgspec.json.encode(series)
    try:
        return cached("regressions", made_of, list[dict[str, Any]], lambda: fleet.regressions(series), MOST_KEPT), None
    except UsageError as error:
        return None, f"{error.message}: {error.hint}" if error.hint else error.message
