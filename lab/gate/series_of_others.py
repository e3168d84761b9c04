"""A stored series of somebody else's code: releases of markdown-it-py, a tokenizer in pure Python, used as a map.

    pip download --no-deps -d WHEELS markdown-it-py==VERSION   # each of them, and mdurl and attrs
    python lab/gate/series_of_others.py measure WHEELS series.json     # goes on where it stopped
    python lab/gate/series_of_others.py judge series.json [--otava PYTHON]

For each release five processes call the map on the rows: the instructions of its first calls are counted as `ab` and
`collect --reps` count them, then passes over all rows are timed. No training runs around it. Each release is judged
against the one before by each tool's rule. SAID: releases whose changelog says that parsing became faster, written down
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
PROCESSES, PASSES = 5, 12
TEXTS = (
    "# Title {n}\n\nA *short* paragraph with `code` and a [link](https://example.org/{n}).\n",
    "- one {n}\n- two\n  - three\n\n1. first\n2. second & third\n",
    "> A quote of **{n}** words,\n> over two lines.\n\n```python\nprint({n})\n```\n",
    "Plain text {n} without any mark in it, that goes on for a while and ends here.\n\nAnd another one.\n",
    "An <b>html</b> span {n}, an &amp; entity, a \\* star, and <https://example.org>.\n\n---\n",
)


def rows():
    """What the map is given."""
    return [TEXTS[n % len(TEXTS)].format(n=n) for n in range(30)]


def one(counts_too):
    """In a process of a release: its counts for each row, times of passes in seconds, and a digest of its functions."""
    from markdown_it import MarkdownIt

    parser, found = MarkdownIt(), {"counts": [], "code": digest()}
    given = rows()
    if counts_too:
        sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
        from pipeprof.collect.probe.instructions import Window

        parser.parse(given[0])  # what the first call alone does is no work of a row
        window = Window()
        for row in given:
            call = window.next()
            if call is None:
                break
            window.counted(call, parser.parse, row)
        found["counts"] = window.take()
    found["times"] = []
    for _ in range(PASSES):
        began = time.perf_counter()
        for row in given:
            parser.parse(row)
        found["times"].append(time.perf_counter() - began)
    print(json.dumps(found))


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


def measure(wheels, target):
    """Every release that is not there yet."""
    series = json.loads(target.read_text()) if target.exists() else {}
    files = {path.name.split("-")[1]: path for path in wheels.glob("markdown_it_py-*.whl")}
    extra = [str(path) for name in ("mdurl", "attrs") for path in wheels.glob(f"{name}-*.whl")]
    for version in sorted(files, key=order):
        if version in series:
            continue
        folder = wheels / "unpacked" / version
        for path in (files[version], *extra):
            with zipfile.ZipFile(path) as archive:
                archive.extractall(folder)
        found = []
        for number in range(PROCESSES):
            words = [sys.executable, __file__, "one", str(int(number < 2))]
            done = subprocess.run(words, env={"PYTHONPATH": str(folder)}, capture_output=True, text=True, check=False)
            if done.returncode:
                print(version, "left out:", done.stderr.strip().splitlines()[-1:])
                break
            found.append(json.loads(done.stdout))
        else:
            series[version] = found
            target.write_text(json.dumps(series))
            print(version, median(found[0]["counts"]), len(found[0]["counts"]), min(found[0]["times"]), flush=True)


def judged(series, otava):
    """Program -> {release: what it says of it against the one before: "slower", "faster" or nothing}."""
    from scipy import stats

    from pipeprof.verdict import judge

    names = sorted(series, key=order)
    counted = {"metrics": {"instructions": "decides", "step_time_median": "informs", "data_wait": "informs"}}
    says = {}

    def put(program, version, ratio, *, counts):
        word = ("slower" if ratio > 1 else "faster") if counts else ""
        says.setdefault(program, {})[version] = word

    for before, version in itertools.pairwise(names):
        base, new = series[before], series[version]
        values = [{"instructions": [median(one["counts"]) for one in side[:2]]} for side in (base, new)]
        verdict = judge(*values, counted).metric("instructions")
        moved = verdict.verdict in ("regressed", "improved")
        put("pipeprof, instructions per row", version, verdict.ratio or 1.0, counts=moved)
        middles = [[median(one["times"]) for one in side] for side in (base, new)]
        verdict = judge({"step_time_median": [x * 1e9 for x in middles[0]]},
                        {"step_time_median": [x * 1e9 for x in middles[1]]}).metric("step_time_median")  # fmt: skip
        moved = verdict.verdict in ("regressed", "improved")
        put("pipeprof, time, 5 runs, as if in one job", version, verdict.ratio or 1.0, counts=moved)
        ratio = middles[1][0] / middles[0][0]
        put("github-action-benchmark, x 2.0, 1 run", version, ratio, counts=ratio > 2.0)
        pooled = [[x for one in side[:2] for x in one["times"]] for side in (base, new)]
        p_value = stats.mannwhitneyu(*pooled).pvalue
        ratio = median(pooled[1]) / median(pooled[0])
        put("asv, x 1.1 and Mann-Whitney .002, 2 runs", version, ratio,
            counts=p_value < 0.002 and max(ratio, 1 / ratio) > 1.1)  # fmt: skip
        p_value = stats.mannwhitneyu(*middles, method="exact").pvalue
        ratio = median(middles[1]) / median(middles[0])
        put("benchstat, Mann-Whitney .05, 5 runs", version, ratio, counts=p_value < 0.05)
    if otava:
        values = {"times": [median(median(one["times"]) for one in series[name]) for name in names],
                  "instructions": [median(series[name][0]["counts"]) for name in names]}  # fmt: skip
        script = ("import json,sys;from otava.analysis import compute_change_points as c;"
                  "print(json.dumps([p.index for p in c(json.load(sys.stdin),window_len=30,max_pvalue=0.001)[0]]))")  # fmt: skip
        for kind, given in values.items():
            done = subprocess.run(
                [otava, "-c", script], input=json.dumps(given), capture_output=True, text=True, check=True
            )
            found = json.loads(done.stdout)
            for at, version in enumerate(names[1:], 1):
                put(f"Otava, {kind} of the series", version, given[at] / given[at - 1], counts=at in found)
    return names, says


def told(series, otava):
    """Prints how each program does."""
    names, says = judged(series, otava)
    same = {new for old, new in itertools.pairwise(names) if series[old][0]["code"] == series[new][0]["code"]}
    exact = all(one[0]["counts"] == one[1]["counts"] for one in series.values())
    known = [name for name in SAID if name in names]
    print(f"{len(names)} releases, {names[0]} to {names[-1]}; counts of two processes are equal in all: {exact}")
    print(
        f"{len(known)} said to be faster: {', '.join(known)}; {len(same)} with the same code: {', '.join(sorted(same, key=order))}"
    )
    spread = [max(t) / min(t) for t in ([median(one["times"]) for one in side] for side in series.values())]
    print(
        f"slowest of five processes of a release beside its fastest: median x{median(spread):.2f}, worst x{max(spread):.2f}"
    )
    print(
        "\n| rule | of those said to be faster | of those with the same code, wrongly | of the others |\n| --- | --- | --- | --- |"
    )
    for program, words in says.items():
        right = [name for name in known if words.get(name) == "faster"]
        wrong = [name for name in same if words[name]]
        rest = [f"{name} {words[name]}" for name in names[1:] if words[name] and name not in known and name not in same]
        print(
            f"| {program} | {len(right)} of {len(known)} | {len(wrong)} of {len(same)} | {len(rest)}: {', '.join(rest)} |"
        )
    counts = {name: median(series[name][0]["counts"]) for name in names}
    print("\ninstructions per row:", ", ".join(f"{name} {count:.0f}" for name, count in counts.items()))


def main():
    """The exit code."""
    if sys.argv[1] == "one":
        one(sys.argv[2] == "1")
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["measure", "judge"])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--otava", help="a Python that has apache-otava")
    options = parser.parse_args()
    if options.what == "measure":
        measure(*options.files)
    else:
        told(json.loads(options.files[0].read_text()), options.otava)


if __name__ == "__main__":
    main()
