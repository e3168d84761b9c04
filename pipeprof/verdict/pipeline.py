"""A first verdict on the data pipeline: is the training input-bound, and which pipeline operator holds it up.

Pure: rows of the queries in, a plain dict out, in the shape that the JSON report documents.
"""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Row = Mapping[str, Any]

# Bands of the share of the step time spent waiting for data, as TensorFlow's input-pipeline analyzer draws them.
MODERATE, HIGH = 0.05, 0.20
ENOUGH_SAMPLES = 20

ADVICE = {
    "GeneratorOp": "the Python source is the slow part: read in blocks, or store the data as MindRecord; more "
    "num_parallel_workers can make a fast source slower, so measure it",
    "MapOp": "raise num_parallel_workers of this map; if its Python is busy computing, use python_multiprocessing=True "
    "or a C++ operation instead",
    "BatchOp": "raise num_parallel_workers of batch, or make per_batch_map cheaper; a deeper prefetch_size helps only "
    "against uneven times",
}
ADVICE_LEAF = "raise num_parallel_workers of this dataset, or read from faster storage or fewer, larger files"
ADVICE_OTHER = "this operator limits the pipeline: move it behind a cache, or do its work ahead of time"
ADVICE_CONSUMER = "data is ready in time: look at the operator table and the step's phases instead"


def diagnose(
    waits: Sequence[Row], rules: Sequence[Row], samples: Sequence[Row], theirs: Sequence[Row]
) -> dict[str, Any]:
    """Verdict over all repetitions and ranks.

    `waits`: rows of step/data_wait; `rules`: diagnose/queue_rule; `samples`: queue/utilisation; `theirs`:
    diagnose/mindinsight. Every rank waits for the slowest one, so a repetition counts with its largest share.
    """
    shares = _worst_per_rep(waits)
    if not shares:
        return _empty("not_measured", None)
    share = median(shares)
    verdict = "consumer_bound" if share < MODERATE else "input_bound"
    found = _empty(verdict, share)
    found["severity"] = None if verdict == "consumer_bound" else "high" if share >= HIGH else "moderate"
    steps = sum(row["steps"] for row in waits)
    found["evidence"].append(
        _evidence("time waiting for data", share, "share of the step time", "step/data_wait", f"{steps} steps")
    )
    found["compatible"] = {"mindinsight": _mindinsight(theirs), "mindspore": {}}
    if verdict == "consumer_bound":
        found["confidence"] = "high" if steps >= ENOUGH_SAMPLES else "medium"
        found["suggestions"].append(ADVICE_CONSUMER)
        return found
    _name_operator(found, rules, samples)
    return found


def _name_operator(found: dict[str, Any], rules: Sequence[Row], samples: Sequence[Row]) -> None:
    ranked = _ranked(rules)
    if not ranked:
        found["suggestions"].append("no queue samples: collect a longer run, or with a shorter --queue-interval")
        return
    best = ranked[0]
    count = min((row["samples"] for row in samples if row["op_id"] == best["op_id"]), default=0)
    clear = len(ranked) == 1 or best["drop_ratio"] - ranked[1]["drop_ratio"] > 0.25
    found |= {
        "op_id": best["op_id"],
        "op_type": best["op_type"],
        "op_name": best["name"],
        "candidates": [row["op_id"] for row in ranked],
        "confidence": "medium" if best["flag"] and clear and count >= ENOUGH_SAMPLES else "low",
    }
    for side in ("input", "output"):
        if best[f"{side}_ratio"] is not None:
            found["evidence"].append(
                _evidence(f"{side} queue of {best['op_type']} {best['op_id']}", best[f"{side}_ratio"], "mean fill",
                          "diagnose/queue_rule", f"{count} samples")
            )  # fmt: skip
    leaf = ADVICE_LEAF if best["place"] == "source" else ADVICE_OTHER
    found["suggestions"].append(ADVICE.get(best["op_type"], leaf))


def _ranked(rules: Sequence[Row]) -> list[dict[str, Any]]:
    """Operators, best candidate first: named by the rule most often, then by the largest drop in queue fill."""
    flags: Counter[int] = Counter()
    drops: dict[int, list[float]] = {}
    last: dict[int, Row] = {}
    for row in rules:
        if row["op_id"] < 0 or row["drop_ratio"] is None:
            continue
        flags[row["op_id"]] += row["flag"] in ("inner", "source")
        drops.setdefault(row["op_id"], []).append(row["drop_ratio"])
        last[row["op_id"]] = row
    order = sorted(drops, key=lambda op: (-flags[op], -median(drops[op]), op))
    return [{**last[op], "drop_ratio": median(drops[op])} for op in order]


def _worst_per_rep(waits: Sequence[Row]) -> list[float]:
    worst: dict[int, float] = {}
    for row in waits:
        if row["data_wait_share"] is not None:
            worst[row["rep"]] = max(worst.get(row["rep"], 0.0), row["data_wait_share"])
    return list(worst.values())


def _mindinsight(rows: Sequence[Row]) -> dict[str, Any]:
    queues = next((row for row in rows if row["rule"] == "queues"), None)
    return {
        "queues": queues["verdict"] if queues else None,
        "empty_share": queues["empty_share"] if queues else None,
        "ops": [
            {"op_id": row["op_id"], "op_type": row["op_type"], "verdict": row["verdict"]}
            for row in rows
            if row["rule"] == "pipeline"
        ],
    }


def _evidence(what: str, value: float, unit: str, source: str, basis: str) -> dict[str, Any]:
    return {"what": what, "value": value, "unit": unit, "source": source, "basis": basis}


def _empty(verdict: str, share: float | None) -> dict[str, Any]:
    return {
        "verdict": verdict,
        "severity": None,
        "op_id": None,
        "op_type": None,
        "op_name": None,
        "kind": None,
        "confidence": "low",
        "candidates": [],
        "data_wait_share": share,
        "evidence": [],
        "suggestions": [],
        "compatible": {"mindinsight": {}, "mindspore": {}},
    }
