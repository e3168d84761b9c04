"""What other programs say about the same data pipeline, in the shape that the JSON report documents; never our verdict.

Pure: rows of the queries in, a plain dict out. The decisions are made in the queries; here they are put into one order,
so that the programs can be compared with each other and with ours. What they advise is a code with the numbers that it
names; report/words/verdict.py words it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipeprof.query.rows import Autotune, Mindinsight, MindinsightAdvice, Mindspore

    Named = list[int] | None
    _Row = TypeVar("_Row", Mindinsight, Mindspore, Autotune)

CONSUMER = -1

# An empty share in this range, in %, makes MindInsight hide its advice on operators.
HIDES_PIPELINE = (1, 30)


def verdicts(
    *,
    mindinsight: Sequence[Mindinsight],
    advice: Sequence[MindinsightAdvice],
    mindspore: Sequence[Mindspore],
    autotune: Sequence[Autotune],
    cpu_threads: int | None = None,
) -> dict[str, dict[str, Any]]:
    """One part per program: `mindinsight`, `mindspore` and `autotune`.

    `cpu_threads` are those of the machine that trained, more workers are not asked for.

    Each of these programs looks at one rank. With several repetitions, ranks or pipelines a part shows the first of
    those whose `named` is the most frequent, and says in `agree` and `of` how many those are.

    Each part has `named`: the op_ids in the order in which the program names them; [-1] when it says that the data is
    in time; empty when it looked and names nothing; None when it had no data to decide.
    """
    return {
        "mindinsight": _common(_groups(mindinsight), lambda rows: _mindinsight(rows, _of_rank(advice, rows))),
        "mindspore": _common(_groups(mindspore), _mindspore),
        "autotune": _common(_groups(autotune), lambda rows: _autotune(rows, cpu_threads)),
    }


def _groups(rows: Sequence[_Row]) -> list[list[_Row]]:
    groups: dict[tuple[int, int, str], list[_Row]] = {}
    for row in rows:
        groups.setdefault((row.rep, row.rank, row.pipeline_key), []).append(row)
    return list(groups.values())


def _of_rank(advice: Sequence[MindinsightAdvice], rows: Sequence[Mindinsight]) -> list[MindinsightAdvice]:
    """The rows of the same repetition and rank; all when there is nothing to compare with."""
    if not rows:
        return list(advice)
    return [row for row in advice if (row.rep, row.rank) == (rows[0].rep, rows[0].rank)]


def _common(groups: list[list[_Row]], judge: Callable[[Sequence[_Row]], dict[str, Any]]) -> dict[str, Any]:
    """Part of the group whose verdict is the most frequent."""
    parts = [judge(rows) for rows in groups] or [judge([])]
    votes = Counter(_vote(part) for part in parts)
    best = max(votes.values())
    part = next(part for part in parts if votes[_vote(part)] == best)
    return {**part, "agree": best if groups else 0, "of": len(groups)}


def _vote(part: Mapping[str, Any]) -> tuple[int, ...] | None:
    named: Named = part["named"]
    return None if named is None else tuple(named)


def _mindinsight(rows: Sequence[Mindinsight], others: Sequence[MindinsightAdvice]) -> dict[str, Any]:
    """`queues`, `empty_share` and `ops` by its code; `advice` under its own keys, `shown` as its page composes it."""
    queues = next((row for row in rows if row.rule == "queues"), None)
    ops = [row for row in rows if row.rule == "pipeline"]
    sampled = any(row.rule in ("pipeline", "none") for row in rows)
    named = [row.op_id for row in reversed(ops) if row.verdict != "root"] if sampled else None
    return {
        "pipeline_key": rows[0].pipeline_key if rows else None,
        "queues": queues.verdict if queues else None,
        "empty_share": queues.empty_share if queues else None,
        "ops": [{"op_id": row.op_id, "op_type": row.op_type, "verdict": row.verdict} for row in ops],
        "advice": _mindinsight_advice(queues, ops, others),
        "named": named,
    }


def _mindinsight_advice(
    queues: Mindinsight | None, ops: Sequence[Mindinsight], others: Sequence[MindinsightAdvice]
) -> list[dict[str, Any]]:
    advised = {row.rule: row.value for row in others if row.advised}
    advice: list[dict[str, Any]] = []
    if "step_trace" in advised:
        advice.append({"key": "step_trace-iter_interval", "value": advised["step_trace"]})
    if queues:
        fine = queues.verdict == "device_queue_warning"
        key = "device_queue_warning" if fine else "minddata_device_queue_rate"
        advice.append({"key": key, "value": queues.empty_percent})
    if "cpu" in advised:
        advice.append({"key": "minddata_cpu_utilization", "value": advised["cpu"]})
    # From the source to the sink, as it joins their names. A result that is the root alone clears the advice.
    blamed = [row for row in reversed(ops) if row.verdict != "root"]
    if blamed:
        advice.append({"key": "minddata_pipeline-general", "op_ids": [row.op_id for row in blamed]})
    for kind in ("dataset_op", "generator_op", "map_op", "batch_op"):
        of_kind = [row.op_id for row in blamed if row.advice == kind]
        if of_kind:
            advice.append({"key": f"minddata_pipeline-{kind}", "op_ids": of_kind})
    both = "step_trace" in advised and bool(blamed)
    low, high = HIDES_PIPELINE
    percent = None if queues is None else queues.empty_percent
    hides = percent is not None and low <= percent <= high
    for item in advice:
        item["shown"] = both and not (hides and item["key"].startswith("minddata_pipeline-"))
    return advice


def _mindspore(rows: Sequence[Mindspore]) -> dict[str, Any]:
    """The bottleneck it prints, all its `matches` from the source on, and its findings on CPU and queues.

    `suggestion_facts` are what it proposes for the bottleneck: by the operator's CPU, or by its queues.
    """
    winner = next((row for row in rows if row.is_named), None)
    named: Named = [winner.op_id] if winner else []
    missing = rows[0].missing if rows else "queues"
    return {
        "pipeline_key": rows[0].pipeline_key if rows else None,
        "op_id": winner.op_id if winner else None,
        "op_type": winner.op_type if winner else None,
        "warning": _label(winner) if winner else None,
        "suggestion_facts": _facts(winner, winner.bottleneck) if winner else None,
        "matches": [row.op_id for row in reversed(rows) if row.bottleneck],
        "cpu_details": [_detail(row, row.cpu_detail) for row in rows if row.cpu_detail],
        "queue_details": [_detail(row, row.queue_detail) for row in rows if row.queue_detail],
        "missing": missing,
        "named": None if missing else named,
    }


def _label(row: Mindspore) -> str:
    """`Batch(id=0)`, as MindSpore writes operators."""
    return f"{str(row.op_type)[:-2]}(id={row.op_id})"


def _facts(row: Mindspore, finding: str | None) -> dict[str, Any]:
    """A finding of MindSpore, with the figures that it names."""
    if finding == "leaf":
        return {"finding": finding, "queue_utilization_pct": row.queue_utilization_pct, "workers": row.workers}
    if finding == "device_queue":
        return {"finding": finding, "input_empty_freq_pct": row.input_empty_freq_pct}
    if finding == "inner":
        return {
            "finding": finding, "input_utilization_pct": row.input_utilization_pct,
            "queue_utilization_pct": row.queue_utilization_pct,
        }  # fmt: skip
    return {"finding": finding, "avg_cpu_pct_per_worker": row.avg_cpu_pct_per_worker, "workers": row.workers}


def _detail(row: Mindspore, finding: str) -> dict[str, Any]:
    return {"op_id": row.op_id, "op_type": row.op_type, **_facts(row, finding)}


def _autotune(rows: Sequence[Autotune], cpu_threads: int | None) -> dict[str, Any]:
    """Whether the pipeline is the bottleneck, and the changes of its first round, in its order."""
    verdict = rows[0].verdict if rows else None
    changed = [row for row in rows if row.is_changed]
    named: Named = [CONSUMER] if verdict == "ok" else [row.op_id for row in changed]
    return {
        "pipeline_key": rows[0].pipeline_key if rows else None,
        "verdict": verdict,
        "last_queue_ratio": rows[0].last_queue_ratio if rows else None,
        "op_id": changed[0].op_id if changed else None,
        "op_type": changed[0].op_type if changed else None,
        "changes": [change for row in changed for change in _changes(row, cpu_threads)],
        "named": named if verdict else None,
    }


def _changes(row: Autotune, cpu_threads: int | None) -> list[dict[str, Any]]:
    common = {"op_id": row.op_id, "op_type": row.op_type}
    changes = []
    if row.new_workers is not None:
        new = row.new_workers if cpu_threads is None else min(row.new_workers, max(1, cpu_threads))
        changes.append({**common, "setting": "num_parallel_workers", "old": row.workers, "new": new,
                      "reason": row.workers_reason})  # fmt: skip
    if row.new_prefetch is not None:
        changes.append({**common, "setting": "prefetch_size", "old": row.prefetch, "new": row.new_prefetch,
                      "reason": "cpu"})  # fmt: skip
    return changes
