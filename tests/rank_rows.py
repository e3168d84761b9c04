"""Rows of rank/phase_diff from a table of times, without SQL: a second implementation, and a source of noise."""

import numpy as np
from typed_rows import of_dicts

from pipeprof.verdict import straggler

stragglers = of_dicts(straggler.stragglers)


def others_median(times):
    """For steps x ranks: the median of the other ranks of the step."""
    ranks = times.shape[1]
    return np.stack([np.median(np.delete(times, rank, axis=1), axis=1) for rank in range(ranks)], axis=1)


def fast_others_median(times):
    """As `others_median`, for many ranks: from the three middle values of a step."""
    ranks = times.shape[1]
    ordered = np.sort(times, axis=1)
    place = np.argsort(np.argsort(times, axis=1, kind="stable"), axis=1, kind="stable") + 1

    def pick(k):
        return np.where(k < place, ordered[:, [k - 1]], ordered[:, [min(k, ranks - 1)]])

    return (pick(ranks // 2) + pick((ranks + 1) // 2)) / 2


def rows_of(times, *, step_ns=100.0, phase="until_bp", source="trace", rep=0, peers=0, others=fast_others_median):
    """One row per rank, in the columns of rank/phase_diff; `times` is steps x ranks."""
    steps, ranks = times.shape
    diff = times - others(times)
    low, middle, high = np.percentile(diff, [25, 50, 75], axis=0)
    early, late = diff[: (steps + 1) // 2], diff[(steps + 1) // 2 :]
    together = (diff - middle)[1:] * (diff - middle)[:-1]
    held = 10 * diff > step_ns
    begins = held & ~np.vstack([np.zeros((1, ranks), bool), held[:-1]])
    late_medians = np.median(late, axis=0) if steps > 1 else None
    spread = diff.std(axis=0, ddof=1) if steps > 1 else None
    columns = {
        "median_ns": np.median(times, axis=0), "diff_ns": middle, "diff_low_ns": low, "diff_high_ns": high,
        "diff_sd_ns": spread, "early_ns": np.median(early, axis=0), "late_ns": late_medians,
        "pairs": (together != 0).sum(axis=0), "same_side": (together > 0).sum(axis=0),
        "held_up": held.sum(axis=0), "episodes": begins.sum(axis=0),
    }  # fmt: skip
    whole = {name: [None] * ranks if column is None else column.tolist() for name, column in columns.items()}
    lost = np.where(held, diff, 0.0).sum(axis=0).tolist()
    whole["held_up_ns"] = [ns if number else None for ns, number in zip(lost, whole["held_up"], strict=True)]
    same = {
        "rep": rep,
        "peers": peers,
        "phase": phase,
        "source": source,
        "ranks": ranks,
        "steps": steps,
        "step_ns": step_ns,
    }
    return [same | {"rank": rank} | {name: values[rank] for name, values in whole.items()} for rank in range(ranks)]
