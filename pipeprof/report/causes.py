"""The part `ranks.causes` of a report: the step replayed, and what makes it slower than its peers'."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeprof.query.engine import Engine

MOST_STEPS = 64  # of each repetition: what is usual is known by then
RANK_STEPS = 8192  # ranks x steps at most: 300 operations of each take about 1 GiB
TEXTS = ("name", "track", "group_name", "kind")
NUMBERS = ("position", "rank", "start_ns", "end_ns", "peers", "is_comm")
LEAST_STEPS = 3  # fewer do not tell what is usual
WHO = {"stage_imbalance": "stage", "slow_worker": "rank", "fail_slow": "rank", "slow_link": "link"}


def causes_of(engine: Engine) -> dict[str, Any] | None:
    """What `judged` says of the first repetition, with the causes that more than half of them show.

    None where no whole passes of microbatches were recorded, so that a step cannot be replayed.
    """
    ranks = len({row["rank"] for row in engine.rows("rank/passes")})
    if not ranks:
        return None
    steps = min(MOST_STEPS, RANK_STEPS // ranks)
    judged = _judged(engine.ask("rank/operation", steps=steps)) if steps >= LEAST_STEPS else [refused("many_ranks")]
    if not judged:
        return None
    first = judged[0]
    shown = [[_identity(item) for item in one["found"]] for one in judged]
    first["found"] = [item for item in first["found"] if 2 * sum(_identity(item) in one for one in shown) > len(judged)]
    if first["verdict"] == "slow" and not first["found"]:
        first["verdict"] = "even"
    return first | {"repetitions": len(judged)}


def refused(why: str) -> dict[str, Any]:
    """The verdict where nothing is judged; `why` is a code."""
    return {"verdict": "not_measured", "why": why, "found": [], "slowdown": None, "facts": None, "error": None}


def _identity(item: dict[str, Any]) -> tuple[str, Any]:
    return item["code"], item.get(WHO.get(item["code"], ""))


def _judged(rows: pa.Table) -> list[dict[str, Any]]:
    """One verdict for each repetition; NumPy is loaded here, since most reports need none of this."""
    import pyarrow.compute as pc  # noqa: PLC0415 - see above

    from pipeprof.verdict.replay.causes import judged  # noqa: PLC0415 - see above
    from pipeprof.verdict.replay.operations import operations  # noqa: PLC0415 - see above

    reps = sorted(pc.unique(rows.column("rep")).to_pylist())
    return [judged(operations(_columns(rows.filter(pc.equal(rows.column("rep"), rep))))) for rep in reps]


def _columns(rows: pa.Table) -> dict[str, Any]:
    columns: dict[str, Any] = {name: rows.column(name).to_numpy() for name in NUMBERS}
    for name in TEXTS:
        column = rows.column(name).combine_chunks().dictionary_encode()
        columns[name] = (column.indices.to_numpy(zero_copy_only=False).astype("int64"), column.dictionary.to_pylist())
    return columns
