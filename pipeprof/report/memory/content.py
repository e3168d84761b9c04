"""Memory of a run: curves, peaks and what was alive then, operators, lifetimes, growth from step to step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.errors import UsageError
from pipeprof.query.engine import Engine
from pipeprof.query.rows import MemoryGrowth
from pipeprof.record.schema import BY_NAME
from pipeprof.report.summary import in_detail
from pipeprof.report.timeline.clock import stored_ranks
from pipeprof.report.words import memory as words
from pipeprof.verdict.memory import Z, judge_growth, worst

if TYPE_CHECKING:
    from pipeprof.record.run import Run

MEMORY_VERSION = 1
POINTS = 400
BLOCKS = 24


def build(run: Run, *, top: int, lifetimes: int, skip_steps: int = 0, rep: int | None = None) -> dict[str, Any]:
    """`{schema_version, run, repetition, growth_verdict, growth, curves, peaks, alive_at_peak, ops, ops_from, ...}`.

    Also `lifetimes`, `evidence` (how far lifetimes are known that were reconstructed) and `not_measured`. `ops_from`
    says how the memory of operators is known: "source", or "pool", the change of MindSpore's pool around each, in the
    steps with recorded operators.
    Curves have their first and last level, and at most POINTS points with the least and the most memory between one and
    the next; `source` says whether they come from samples or from lifetimes. `top` operators and `lifetimes` blocks of
    each rank, largest first. `repetition` is the one whose tables people see: `rep`, else the least disturbed of
    several; null for all. Raises UsageError when `skip_steps` leaves out every training step.
    """
    with Engine.open(run) as engine:
        judged = growth_of(engine, run, skip_steps)
        if skip_steps and not judged and growth_of(engine, run):
            raise UsageError(f"--skip-steps {skip_steps} leaves no training step", "skip fewer")
        curves = _curves(engine)
        content = {
            "schema_version": MEMORY_VERSION,
            "run": {"run_id": run.manifest.run_id, "state": run.manifest.state, "command": run.manifest.command},
            "repetition": _shown(engine, run, rep),
            "growth_verdict": worst(judged),
            "growth": judged,
            "curves": curves,
            "peaks": engine.rows("memory/peak"),
            "alive_at_peak": engine.rows("memory/alive_at_peak", top=top),
            "ops": engine.rows("memory/by_op", top=top),
            "lifetimes": engine.rows("memory/lifetime", top=lifetimes),
            "evidence": engine.rows("memory/evidence"),
        }
    content["ops_from"] = ("source" if run.manifest.source.startswith("import") else "pool") if content["ops"] else None
    content["not_measured"] = _not_measured(run, content)
    return content


def _shown(engine: Engine, run: Run, rep: int | None) -> int | None:
    """The repetition whose tables are shown; None for all."""
    reps = [one.rep for one in run.manifest.reps]
    if rep is not None and rep not in reps:
        raise UsageError(f"there is no repetition {rep}", f"this run has {', '.join(map(str, reps)) or 'none'}")
    if rep is not None or len(reps) <= 1:
        return rep
    detail = in_detail(engine.rows("step/summary"))
    return None if detail is None else detail[0]


def growth_of(engine: Engine, run: Run, skip_steps: int = 0) -> list[dict[str, Any]]:
    """Of each process and pool whether it grows over the training steps, with the reason in words."""
    rows = engine.typed(MemoryGrowth, skip_steps=skip_steps, blocks=BLOCKS, z=Z)
    mode = run.manifest.fingerprint.get("mode")
    return [words.worded(judge_growth(row, mode)) for row in rows]


def ranks(run: Run) -> list[int]:
    """The ranks of a run."""
    return sorted({rank for _, rank in stored_ranks(run, list(BY_NAME))})


def _curves(engine: Engine) -> list[dict[str, Any]]:
    curves: dict[tuple[Any, ...], dict[str, Any]] = {}
    live = [
        row | {"device": row["device"] or "", "name": "lifetimes of blocks", "pid": 0, "source": "lifetimes"}
        for row in engine.rows("memory/live_curve", points=POINTS)
    ]
    for row in [row | {"source": "samples"} for row in engine.rows("memory/curve", points=POINTS)] + live:
        key = tuple(row[name] for name in ("rep", "rank", "source", "device", "name", "pid"))
        identity = dict(zip(("rep", "rank", "source", "device", "name", "pid"), key, strict=True))
        curve = curves.setdefault(key, {**identity, "first_bytes": row["first_bytes"], "points": []})
        curve["last_bytes"] = row["last_bytes"]
        curve["points"].append({name: row[name] for name in ("t_ns", "low_bytes", "high_bytes", "high_ns")})
    for curve in curves.values():
        peak = max(curve["points"], key=lambda point: point["high_bytes"])
        curve["peak_bytes"], curve["peak_t_ns"] = peak["high_bytes"], peak["high_ns"]
    return list(curves.values())


def _not_measured(run: Run, content: dict[str, Any]) -> list[dict[str, str]]:
    """What is empty, and why as far as the run knows."""
    reasons = {item.what: item.why for item in run.manifest.not_measured}
    wanted = {
        "curves": reasons.get("memory", "the run has neither memory samples nor lifetimes"),
        "peaks": "the source does not record lifetimes of tensors or blocks",
        "ops": "the source does not attribute memory to operators",
        "growth": "no training step after warm-up has a memory sample",
    }
    return [{"what": what, "why": why} for what, why in wanted.items() if not content[what]]
