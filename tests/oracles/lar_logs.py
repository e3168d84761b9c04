"""Logs in the three forms that load_and_run has had, with drawn times; mean, deviation and ends are computed here."""

import statistics
from random import Random

FORMS = ("2020", "2021", "2022")


def times(chance, number=10):
    """ms with three digits; the first is the slowest, as in a warm cache."""
    usual = chance.uniform(2, 300)
    return [round(usual * chance.uniform(1, 1.4 if at == 0 else 1.05), 3) for at in range(number)]


def log(form, seed):
    """The text of a log."""
    chance = Random(f"{form} {seed}")  # noqa: S311 - test data
    found = times(chance)
    load, prepare, warm = (f"{chance.uniform(1, 900):.3f}" for _ in range(3))
    whole, mean, spread = sum(found), statistics.fmean(found), statistics.stdev(found)
    low, high = f"{min(found):.3f}", f"{max(found):.3f}"
    if form == "2022":
        lines = [
            "[15 12:16:26 @:19][WARN] creat mdl model use XPU as default comp node", f"load model: {load}ms",
            "[15 12:16:26 @:121][WARN] run testcase: 0 ", f"=== prepare: {prepare}ms; going to warmup", "",
            f"warm up 0  {warm}ms", *(f"iter {at}/10: {time:.3f} ms (exec=1.066 ms)" for at, time in enumerate(found)), "",
            f"=== finished test #0: time={whole:.3f} ms avg_time={mean:.3f} ms sexec={spread:.3f} ms min={low} ms max={high} ms",
            "", f"=== total time: {whole:.3f}ms",
        ]  # fmt: skip
    else:
        lines = [
            "mgb load-and-run: using megbrain 8.4.1(0) and megdnn 9.3.0", f"load model: {load}ms",
            f"=== prepare: {prepare}ms; going to warmup", f"warmup 0: {warm}ms", "=== going to run input for 10 times",
            *(f"iter {at}/10: {'e2e=' if form == '2021' else ''}{time:.3f}ms "
              f"({'host' if form == '2021' else 'exec'}={time / 9:.3f},device={time * 0.98:.3f})"
              for at, time in enumerate(found)),
            f"=== finished test #0: time={whole:.3f}ms avg_time={mean:.3f}ms sd={spread:.3f}ms minmax={low},{high}", "",
            f"=== total time: {whole:.3f}ms",
        ]  # fmt: skip
    return "\n".join(lines) + "\n"


def write(folder):
    """Two logs of each form; their paths."""
    folder.mkdir()
    found = []
    for form in FORMS:
        for seed in (1, 2):
            path = folder / f"made-{form}-{seed}.log"
            path.write_text(log(form, seed), encoding="utf-8")
            found.append(path)
    return found
