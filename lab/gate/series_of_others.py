"""A stored series of somebody else's code: releases of markdown-it-py, a tokenizer in pure Python, used as a map.

    pip download --no-deps -d WHEELS markdown-it-py==VERSION   # each of them, and mdurl and attrs
    python lab/gate/series_of_others.py counts WHEELS series.json     # goes on where it stopped; on any machine
    python lab/gate/series_of_others.py times WHEELS series.json
    python lab/gate/series_of_others.py judge series.json [--otava PYTHON] [--asv PYTHON]

Two processes of each release count the instructions of the map for each row, as `ab` and `collect --reps` count them;
ten others time passes over all rows. What was measured is in series_of_others.json. No training runs around it. Each release is judged against the one before, by
each tool's rule. SAID: releases whose changelog says that parsing became faster, written down
before anything was measured. A release whose functions are all compiled to the same code is a false find for certain.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from statistics import median

SAID = ("0.5.0", "1.0.0b1", "3.0.0", "4.0.0", "4.3.0")
COUNTED = {"metrics": {"instructions": "decides"}}
PROCESSES, PASSES = 10, 12
TEXTS = (
    "# Title {n}\n\nA *short* paragraph with `code` and a [link](https://example.org/{n}).\n",
    "- one {n}\n- two\n  - three\n\n1. first\n2. second & third\n",
    "> A quote of **{n}** words,\n> over two lines.\n\n```python\nprint({n})\n```\n",
    "Plain text {n} without any mark in it, that goes on for a while and ends here.\n\nAnd another one.\n",
    "An <b>html</b> span {n}, an &amp; entity, a \\* star, and <https://example.org>.\n\n---\n",
)


ROWS = [TEXTS[n % len(TEXTS)].format(n=n) for n in range(25)]  # what the map is given


def counts():
    """In a process of a release: the instructions for each row, and a digest of its functions."""
    from markdown_it import MarkdownIt

    from pipeprof.collect.probe.instructions import Window

    parser, window = MarkdownIt(), Window()
    for row in ROWS:
        parser.parse(row)  # what the first calls alone do is no work of a row
    for row in ROWS:
        call = window.next()
        if call is not None:
            window.counted(call, parser.parse, row)
    return {"rows": window.take(), "code": digest()}


def times():
    """In a process of a release: seconds for all rows, in each of some passes."""
    from markdown_it import MarkdownIt

    parser, found = MarkdownIt(), []
    for _ in range(PASSES):
        began = time.perf_counter()
        for row in ROWS:
            parser.parse(row)
        found.append(round(time.perf_counter() - began, 6))
    return found


def digest():
    """Of the code of all modules of the package that were loaded, without lines and names of files."""
    texts = []
    for name, module in sorted(sys.modules.items()):
        if name.split(".")[0] == "markdown_it" and getattr(module, "__file__", None):
            text = Path(module.__file__).read_text(encoding="utf-8").split("__version__ =")[0]
            texts.append(name + shape(compile(text, "", "exec")))
    return hashlib.sha256("".join(texts).encode()).hexdigest()


def shape(code):
    """What a code object executes, with those within it; texts of documentation are left out."""
    inner = [shape(one) if hasattr(one, "co_code") else repr(one) for one in code.co_consts if not is_text(one)]
    return "".join([code.co_name, code.co_code.hex(), repr(code.co_names), *inner])


def is_text(value):
    """Whether it may be a docstring."""
    return isinstance(value, str) and (" " in value or "\n" in value)


def order(version):
    """Where a release stands."""
    final, beta, number = version.partition("b")
    return [int(part) for part in final.split(".")], -1 if beta else 0, int(number or 0)


def measure(wheels, target, *, timed):
    """Every release that is not there yet: two processes that count, or `timed` ones."""
    series = json.loads(target.read_text()) if target.exists() else {}
    files = {path.name.split("-")[1]: path for path in wheels.glob("markdown_it_py-*.whl")}
    extra = [path for name in ("mdurl", "attrs") for path in wheels.glob(f"{name}-*.whl")]
    kind, processes = ("times", PROCESSES) if timed else ("counts", 2)
    for version in sorted(files, key=order):
        if kind in series.get(version, {}):
            continue
        folder = wheels / "unpacked" / version
        for path in (files[version], *extra):
            with zipfile.ZipFile(path) as archive:
                archive.extractall(folder)
        found = []
        for _ in range(processes):
            words = [sys.executable, __file__, kind]
            done = subprocess.run(words, env={"PYTHONPATH": str(folder)}, capture_output=True, text=True, check=False)
            if done.returncode:
                print(version, "left out:", done.stderr.strip().splitlines()[-1:])
                break
            found.append(json.loads(done.stdout))
        else:
            series.setdefault(version, {})[kind] = found
            target.write_text(json.dumps(series, separators=(",", ":")) + "\n")
            print(version, kind, flush=True)


def on_counts(series, names):
    """Rule -> release -> ratio to the one before, where it says that it changed."""
    from pipeprof.verdict import judge

    middle = {name: median(series[name]["counts"][0]["rows"]) for name in names}
    says = {}
    for before, version in itertools.pairwise(names):
        sides = [
            {"instructions": [median(one["rows"]) for one in series[name]["counts"]]} for name in (before, version)
        ]
        verdict = judge(*sides, COUNTED).metric("instructions")
        if verdict.verdict in ("regressed", "improved"):
            says[version] = verdict.ratio
    return {"pipeprof, instructions per row": says}, middle


def on_times(series, names):
    """The same of the rules of times."""
    from scipy import stats

    from pipeprof.verdict import Samples, judge

    says = {name: {} for name in ("pipeprof, 10 runs, each release a job of its own", "pipeprof, 10 runs, as if in one job", "github-action-benchmark: x 2.0, 1 run",
                                  "asv: x 1.1 and Mann-Whitney .002, 2 runs", "benchstat: Mann-Whitney .05, 10 runs")}  # fmt: skip
    across, ours, action, asv, benchstat = says.values()
    middle = {name: [median(one) for one in series[name]["times"]] for name in names}
    for before, version in itertools.pairwise(names):
        sides = [{"step_time_median": [1e9 * one for one in middle[name]]} for name in (before, version)]
        jobs = [{name: Samples(values, jobs=[job] * len(values)) for name, values in side.items()}
                for side, job in zip(sides, (before, version), strict=True)]  # fmt: skip
        for said, two in ((ours, sides), (across, jobs)):
            verdict = judge(*two).metric("step_time_median")
            if verdict.verdict in ("regressed", "improved"):
                said[version] = verdict.ratio
        if middle[version][0] > 2.0 * middle[before][0]:
            action[version] = middle[version][0] / middle[before][0]
        pooled = [[second for one in series[name]["times"][:2] for second in one] for name in (before, version)]
        ratio = median(pooled[1]) / median(pooled[0])
        if stats.mannwhitneyu(*pooled).pvalue < 0.002 and max(ratio, 1 / ratio) > 1.1:
            asv[version] = ratio
        if stats.mannwhitneyu(middle[before], middle[version], method="exact").pvalue < 0.05:
            benchstat[version] = median(middle[version]) / median(middle[before])
    return says, {name: median(values) for name, values in middle.items()}


def by_otava(python, values, names):
    """What Otava's analysis finds in a series, with the settings that its command has by default."""
    script = (
        "import json, sys; from otava.analysis import compute_change_points as find; "
        "print(json.dumps([int(one.index) for one in find(json.load(sys.stdin), 50, 0.001)[0]]))"
    )
    given = json.dumps([values[name] for name in names])
    done = subprocess.run([python, "-c", script], input=given, capture_output=True, text=True, check=True)
    return {names[at]: values[names[at]] / values[names[at - 1]] for at in json.loads(done.stdout)}


def by_asv(python, values, names):
    """The steps that asv sees in a series of medians."""
    script = (
        "import json, sys; from asv.step_detect import detect_steps; "
        "print(json.dumps([one[:3] for one in detect_steps(json.load(sys.stdin))]))"
    )
    given = json.dumps([values[name] for name in names])
    done = subprocess.run([python, "-c", script], input=given, capture_output=True, text=True, check=True)
    return {names[new[0]]: new[2] / old[2] for old, new in itertools.pairwise(json.loads(done.stdout))}


def told(series, otava, asv):
    """Prints how each program does."""
    for kind, judged in (("counts", on_counts), ("times", on_times)):
        names = sorted((name for name, found in series.items() if kind in found and "counts" in found), key=order)
        if len(names) < 2:
            continue
        says, values = judged(series, names)
        for program, python, find in (("Otava", otava, by_otava), ("asv's step detection", asv, by_asv)):
            if python:
                says[f"{program} on these {kind}"] = find(python, values, names)
        code = {name: series[name]["counts"][0]["code"] for name in names}
        same = {new for old, new in itertools.pairwise(names) if code[old] == code[new]}
        known = [name for name in SAID if name in names]
        print(
            f"\n{kind}: {len(names)} releases, {names[0]} to {names[-1]}; {len(known)} said to be faster, {len(same)} with the same code"
        )
        print(
            "\n| rule | of those said to be faster | of those with the same code, wrongly | of the others |\n| --- | --- | --- | --- |"
        )
        for program, found in says.items():
            parts = [
                [name for name in found if name in known and found[name] < 1],
                [name for name in found if name in same],
            ]
            rest = [name for name in found if name not in known and name not in same]
            cells = [f"{len(part)} of {len(whole)}{': ' if part else ''}{listed(part, found)}"
                     for part, whole in zip(parts, (known, same), strict=True)]  # fmt: skip
            print(f"| {program} | {' | '.join(cells)} | {len(rest)}{': ' if rest else ''}{listed(rest, found)} |")
        if kind == "counts":
            equal = all(found["counts"][0]["rows"] == found["counts"][1]["rows"] for found in series.values())
            print(f"\nTwo processes counted the same in every row of every release: {equal}. Median of a row: "
                  + ", ".join(f"{name} {values[name]:.0f}" for name in names))  # fmt: skip
        else:
            spread = [max(m) / min(m) for m in ([median(one) for one in series[name]["times"]] for name in names)]
            print(
                f"\nSlowest of ten processes of a release beside its fastest: median x{median(spread):.2f}, worst x{max(spread):.2f}"
            )


def listed(names, ratios):
    """Releases with their changes."""
    return ", ".join(f"{name} {100 * (ratios[name] - 1):+.1f} %" for name in names)


def main():
    """What is asked for."""
    if sys.argv[1] in ("counts", "times") and len(sys.argv) == 2:
        print(json.dumps({"counts": counts, "times": times}[sys.argv[1]]()))
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["counts", "times", "judge"])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--otava", help="a Python that has apache-otava")
    parser.add_argument("--asv", help="a Python that has asv")
    options = parser.parse_args()
    if options.what == "judge":
        told(json.loads(options.files[0].read_text()), options.otava, options.asv)
    else:
        measure(*options.files, timed=options.what == "times")


if __name__ == "__main__":
    main()
