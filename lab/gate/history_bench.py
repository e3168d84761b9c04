"""Change points beside other programs', on the same series: `make bench-history` (python lab/gate/history_bench.py).

Needs apache-otava, mozdetect and ruptures; the first two ask for a NumPy that MindSpore does not work with, so they live
in an environment of their own. Settings are those that each has by default, or that its manual gives.
"""

from __future__ import annotations

import argparse
import datetime as dt
import time
from collections import Counter
from types import SimpleNamespace

import numpy as np
from history_series import NEAR, SIZES, STEP, Score, planted, pools, quiet

from pipeprof.verdict.gate.changes import Point, change_points

TUNED, FRESH = (
    1_000,
    50_000,
)  # first seeds: of the series that settings were looked at with, and of those that are scored
FAR = 500_000  # from a planted series' seed to that of a quiet one
FAILED = Counter()  # series that a program raised on: nothing was found in them
START = dt.date(2026, 1, 1)
BINS = 100


def ours(series):
    return [change.index for change in change_points([Point(float(value)) for value in series.medians])]


def otava(series):
    return _otava(series, 0.0)


def otava_large(series):
    """Otava's own setting against small changes: at least 5 %."""
    return _otava(series, 0.05)


def _otava(series, least):
    """Its analysis of a whole series, as its command line makes it. It fails on some (a change found in two windows)."""
    from otava.analysis import compute_change_points

    try:
        found, _ = compute_change_points(series.medians.tolist(), window_len=50, max_pvalue=0.001, min_magnitude=least)
    except ValueError:
        FAILED["apache-otava"] += 1
        return []
    return [one.index for one in found]


def ruptures_l2(series):
    """PELT with least squares, and the penalty of the Bayesian information criterion, as its manual has it."""
    import ruptures

    logs = np.log(series.medians)
    penalty = 2 * np.log(len(logs)) * float(np.var(np.diff(logs)) / 2)
    return ruptures.Pelt(model="l2").fit(logs).predict(pen=penalty)[:-1]


def ruptures_rbf(series):
    """PELT with the kernel and the penalty of its first example."""
    import ruptures

    return ruptures.Pelt(model="rbf").fit(np.log(series.medians)).predict(pen=10)[:-1]


def mozdetect(series):
    """Mozilla's detector of histograms per day: a day per commit, the histogram of its repetitions."""
    from mozdetect.timeseries_detectors.cdf_squared import CDFSquaredTimeSeriesDetector

    days = [START + dt.timedelta(days=at) for at in range(len(series.repetitions))]
    averages = [np.concatenate(series.repetitions[at : at + 7]) for at in range(len(days) - 6)]
    told = SimpleNamespace(
        cumulative_by_day_histograms=_histograms(days, series.repetitions, series.repetitions),
        cumulative_multiday_histograms=_histograms(days, averages, series.repetitions),
    )
    detector = CDFSquaredTimeSeriesDetector(told)
    fast = detector._find_fast_alerts(detector._calculate_daily_differences())
    smoothed = detector._find_alerts(detector._calculate_differences())
    smoothed["detection_type"] = "smoothed"
    alerts = detector._merge_and_dedup(smoothed, fast, 7)
    return [(date - START).days for date in alerts["date"]]


def _histograms(days, parts, table):
    import pandas as pd

    edges = np.quantile(table, np.linspace(0, 1, BINS))
    found = [
        pd.DataFrame({"date": day, "bin": edges, "cdf": np.searchsorted(np.sort(part), edges, "right") / len(part)})
        for day, part in zip(days, parts, strict=False)
    ]
    return pd.concat(found, ignore_index=True)


PROGRAMS = {
    "pipeprof": ours, "apache-otava": otava, "apache-otava, 5 % at least": otava_large,
    "ruptures, PELT l2": ruptures_l2, "ruptures, PELT rbf": ruptures_rbf, "mozdetect, cdf_squared": mozdetect,
}  # fmt: skip


def placed(number, start):
    """Of the steps found by us: the share that lies from `earliest` to `latest`, and how many commits those are."""
    inside, widths = [], []
    for source, draw in pools().items():
        for seed in range(start, start + number):
            series = planted(source, draw, seed)
            for change in change_points([Point(float(value)) for value in series.medians]):
                near = [one for one in series.events if one.kind == STEP and abs(one.first - change.index) <= 2 * NEAR]
                inside += [change.earliest <= near[0].first <= change.latest] if near else []
                widths += [change.latest - change.earliest + 1] if near else []
    return np.mean(inside), np.mean(widths), np.quantile(widths, 0.9), len(inside)


def measure(find, number, start):
    """{source: (score of planted series, score of identical code)} and CPU seconds for each series."""
    found, spent = {}, 0.0
    for source, draw in pools().items():
        scores = Score(), Score()
        for seed in range(start, start + number):
            for score, series in zip(
                scores, (planted(source, draw, seed), quiet(source, draw, seed + FAR)), strict=True
            ):
                began = time.process_time()
                finds = find(series)
                spent += time.process_time() - began
                score.add(series, finds)
        found[source] = scores
    return found, spent / (2 * number * len(found))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=300, help="of each source, and as many of identical code")
    parser.add_argument("--tuned", action="store_true", help="the seeds that the settings were chosen on")
    parser.add_argument("--only", choices=list(PROGRAMS))
    wish = parser.parse_args()
    sources = list(pools())
    print(f"{wish.series} series of 120 points of each source, a find counts within {NEAR} commits, sizes {SIZES}\n")
    print(
        f"| program | {' | '.join(f'{name}: precision / recall / F1' for name in sources)} | false changes per 1,000 points of identical code | CPU ms per series |"
    )
    print("|" + "---|" * (len(sources) + 3))
    for name, find in PROGRAMS.items():
        if wish.only in (None, name):
            scores, cpu_s = measure(find, wish.series, TUNED if wish.tuned else FRESH)
            cells = [f"{one.precision:.2f} / {one.recall:.2f} / {one.f1:.2f}" for one, _ in scores.values()]
            false = " / ".join(f"{one.false_per_1000:.2f}" for _, one in scores.values())
            print(f"| {name} | {' | '.join(cells)} | {false} | {1000 * cpu_s:.1f} |", flush=True)
    if wish.only in (None, "pipeprof"):
        share, mean, most, count = placed(wish.series, TUNED if wish.tuned else FRESH)
        print(
            f"\n{count} steps found: {share:.1%} lie in the range that is named; {mean:.1f} points, nine of ten {most:.0f} or fewer"
        )
    for name, number in FAILED.items():
        print(f"\n{name} failed on {number} series")


if __name__ == "__main__":
    main()
