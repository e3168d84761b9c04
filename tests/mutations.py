"""Damaged input for every family that pipeprof reads, put through its real verbs. One process runs many cases.

`python tests/mutations.py FAMILY,FAMILY SEED FIRST COUNT` prints one line of JSON per case: what was done to the input, which
verbs read it, how they ended, how long they took and what memory the process needed at most. A case is bad when a verb
ends in anything but an exit code of ours, takes more than HANG_S of CPU time (a shared machine says nothing by its clock) or
STUCK_S of time, needs more than MOST_MIB, or when something is written, made or removed outside of the folders that it may
write to. A case is drawn from its seed and number alone.
"""

import contextlib
import errno
import faulthandler
import gzip
import io
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from itertools import product
from pathlib import Path

from copies import copy_tree
from fuzz_cases import places

sys.dont_write_bytecode = True
HERE = Path(__file__).parent
CAPTURES = HERE / "real" / "captures"
HANG_S = 60  # of CPU time
STUCK_S = 600  # what waits for a pipe takes no CPU time
MOST_SEALED = 1 << 26  # bytes of a file that gets a new checksum
MOST_MIB = 1024
LAST_RESORT = 4 << 30  # bytes of data; a process that wants more is ended, so that the machine goes on
CODES = {0, 1, 2, 3, 4, 5}
ODD = [
    None, True, -1, 0, 1, 2**31, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64, 10**30, -(2**63), -(2**70), 0.5, 1e300, -1e300, 5e-324,
    float("nan"), float("inf"), "", "x", "nan", "inf", "1e999999999", "9" * 5000, "-", "\x00", "\ud800", "\u202e", "²", "../../x",
    "/dev/zero", "a\nb", "=1+1", "[red]", "<b>&\"'", "x" * 100_000, [], {}, [None], [[]], {"": None}, {"a": {"b": []}}, [2**70],
    ["x"] * 1000,
]  # fmt: skip
NOISE = [
    b"\x00",
    b"\xff\xfe",
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b"\\",
    b"NaN",
    b"-",
    b"\n",
    b"1e999999999",
    b"[" * 50_000,
    b'{"a":' * 50_000,
]
RUN_VERBS = [
    ["report", "{run}"], ["report", "{run}", "--format", "json"], ["ops", "{run}"], ["ops", "{run}", "--group-by", "name", "--format", "csv"],
    ["memory", "{run}"], ["verify", "{run}"], ["runs", "{in}"], ["fleet", "{in}"], ["compact", "{run}"],
    ["sql", "{run}", "SELECT * FROM step"], ["sql", "{run}"],
    ["timeline", "{run}", "-o", "{out}/trace.json"], ["stacks", "{run}", "-o", "{out}/stacks.txt"], ["compare", "{run}", "{good}"],
    ["report", "{run}", "--format", "html", "-o", "{out}/report.html"],
    ["baseline", "write", "{run}", "--workload", "w", "--root", "{out}/baselines"],
]  # fmt: skip
BASELINE_VERBS = [
    ["baseline", "check", "--root", "{in}/baselines"], ["baseline", "list", "--root", "{in}/baselines"],
    ["baseline", "show", "--root", "{in}/baselines", "--workload", "w"],
    ["baseline", "show", "--root", "{in}/baselines", "--workload", "w", "--history"],
    ["compare", "{base}", "{good}"], ["compare", "{base}", "{base}"],
]  # fmt: skip
IMPORT_VERBS = [["import", "{in}/raw", "-o", "{out}/run", "-q"]]
SESSION_VERBS = {
    "ab": ["ab", "-o", "{own}", "--base", "false a", "--new", "false b"],
    "sweep": ["sweep", "{in}/sweep.toml", "-o", "{own}", "--", "false"],
    "bisect": ["bisect", "HEAD~2", "HEAD", "-o", "{own}", "--", "false"],
    "tune": ["tune", "-o", "{own}", "--", "false"],
    "qualify": ["qualify", "-o", "{own}", "--rounds", "20", "--", "false"],
}
SWEEP = """
measure = "regex"
judge = "total"

[[variant]]
name = "other"
args = ["--other"]
"""
OUTSIDE = [
    "outside",
    "../outside",
    "../../outside",
    "../../outside/folder",
    "x/../../../outside",
    "..",
    "{outside}",
    "{outside}/folder",
]


class Watch:
    """What would be written outside of the allowed folders, as Python's audit events tell; it is noted, and not done.

    What is tried here removed the folders of the machine itself once, by a program that believed the names in a file.
    """

    def __init__(self):
        self.allowed = ()
        self.seen = []
        self.on = False
        sys.addaudithook(self.hear)

    def hear(self, event, words):
        if not self.on:
            return
        paths = ()
        if event == "open":
            path, _mode, flags = words
            writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            paths = (path,) if writes else ()
        elif event in ("os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.chmod", "shutil.rmtree"):
            paths = words[:1]
        elif event in ("os.rename", "os.link", "os.symlink"):
            paths = words[:2]
        handle = words[-1] if event in ("os.mkdir", "os.remove", "os.rmdir") else -1
        for path in paths:
            if isinstance(path, (str, bytes, os.PathLike)):
                if handle != -1:  # named from an open folder
                    whole = str(Path(f"/proc/self/fd/{handle}").readlink() / os.fsdecode(path))
                else:
                    whole = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 - resolve() would follow links
                if not whole.startswith((*self.allowed, "/dev/", "/proc/self/")):
                    self.seen.append(f"{event} {whole}")
                    raise PermissionError(errno.EPERM, "outside of the test's folders", whole)


FRAME = "train.py(3): step"
MORE_EVENTS = [
    {"e": "workers_ended", "number": 0, "took": 1_000_000},
    {"e": "calls", "pipeline": 0, "node": 1, "part": 0, "calls": 8, "timed": 2, "wall": 800, "cpu": 70, "batches": 2,
     "delay": 5, "max": 500, "min": 300, "read": 9, "given": 4, "made": 4},
    {"e": "calls", "pipeline": 0, "node": 1, "part": 0, "calls": 2, "timed": 0, "wall": 0, "cpu": 0, "batches": 1,
     "delay": 0, "max": None, "min": None, "read": 0, "given": 0, "made": 0},
    {"e": "service", "pipeline": 0, "ops": [["MapOp", "1", "5.5", "/", "/", "8", "1.5"]]},
    {"e": "workers", "pipeline": 0, "node": 1, "pids": [77, 78]},
    {"e": "gil", "held": 0.25, "probes": 9, "waiting": [[0, 1, 0.5]]},
    {"e": "stacks", "sites": [[-1, "train.py(3): main"], [0, "train.py(9): log"]], "rows": [[4485330747843, 50000000, 1]]},
    {"e": "thread", "tid": 5, "label": "x", "module": "m", "ours": False, "what": "f", "site": "t.py:3"},
    {"e": "warning", "code": "c", "message": "m"},
    {"e": "ready", "number": 1, "first": 0, "depth": [2, 1, 0], "held": [0, 1, 0], "tasks": [1, 1, 0]},
    {"e": "looks", "samples": [[4485330747843, 1, 1], [4485331747843, 0, 0]]},
    {"e": "weights", "number": 1, "rows": [[0, 640], [1, 320]]},
    {"e": "plan", "epochs": 2, "batches": 4},
    {"e": "lines", "sites": ["train.py:3", "train.py:9"], "rows": [[4485330747843, 0], [4485330757843, 1]], "callers": [-1, 0]},
    {"e": "cells", "kinds": [["Net", -1, FRAME], ["Dense", 0, ""]], "rows": [[0, 4485204432122, 4485213000488], [1, 4485204532122, 4485212000488]]},
    {"e": "modules", "frame": FRAME, "cells": [["body.0", FRAME]]},
    {"e": "operands", "kinds": [["MatMul", [["Float32", [4, 8]]], [["Float32", [4, 2]]], [["transpose", 0]]]], "calls": [0, 0]},
    {"e": "pass", "number": 0, "site": "train.py:3", "cell": "Net", "own": True, "network": 0},
    {"e": "user_profile", "monotonic": 4485330747843, "realtime": 1795255401440811630, "folder": None},
    {"e": "user_profile_end"},
    {"e": "batches", "number": 1, "first": 0, "push_ms": [1, 1], "batch_ms": [2, 2], "depth": [1, 0], "capacity": [8, 8]},
    {"e": "spacing", "number": 1, "ms": 40},
    {"e": "callback", "number": 0, "label": "Slow", "site": "a.py:4"},
    {"e": "part_site", "number": 1, "site": "train.py:7"},
    {"e": "sync_site", "number": 0, "call": "asnumpy", "site": "train.py:9", "via": "tensor.py"},
    {"e": "compiled", "label": "Net", "owner": "1", "shapes": [[4, -1]], "begin": 4485204432122, "end": 4485213000488},
    {"e": "stopped", "steps": 19},
    {"e": "override", "number": 0, "node": 1, "before": 1, "after": 2},
    {"e": "override_missed", "number": 0, "why": "w"},
    {"e": "stand_in_failed", "why": "w"},
    {"e": "batch_digest", "number": 0, "site": "train.py:80", "row": 0, "epoch": 0, "digest": "ab"},
]  # fmt: skip
SPAN = {"label": "mine", "track": "main", "category": "user", "stack": ["f", "g"]}


def spool(folder, name="2.10-pynative"):
    """A capture whose launcher was killed, with a line of every event that it does not have."""
    copy_tree(CAPTURES / name, folder)
    for process in folder.glob("spool/rep=*/proc-*"):
        lines = process.joinpath("events.jsonl").read_text(encoding="utf-8").splitlines()
        about = json.loads(lines[0])
        at = about["t"] + 1000
        more = [line | {"t": at} for line in MORE_EVENTS] + [
            {"e": "span", "t": at, "begin": at, "end": at + 50, **SPAN}
        ]
        text = "".join(json.dumps(line) + "\n" for line in more)
        with process.joinpath("events.jsonl").open("a", encoding="utf-8") as file:
            file.write(text)
        rep = process.parent
        rep.joinpath("forks.tsv").write_text(
            f"77\t{about['pid']}\t1\t1\tworker\ttrain.py:3\tdataset.py:1\n", encoding="utf-8"
        )
        failed = {"pid": about["pid"], "t": at, "error": "E: x", "place": "a.py:1", "code": "f()", "lines": ["a"]}
        rep.joinpath("failed.jsonl").write_text(json.dumps(failed) + "\n", encoding="utf-8")
    return folder


def of_a_loader(folder):
    """A spool of a training whose batches come from a loader with worker processes."""
    for path in spool(folder).glob("spool/rep=*/proc-*/events.jsonl"):
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        stages, about = [], {"site": "train.py:80", "callers": "", "code": "c", "python": True, "inlined": True}
        for node, kind in ((2, "Sampler"), (1, "Dataset"), (0, "Collate")):
            apart = {"workers": 2, "processes": True, "batch": 4, "capacity": 4} if node < 2 else {}
            stages = [{"type": kind, "node": node, "name": kind, "children": stages, **about, **apart}]
        loader = {
            "graph": stages[0], "settings": {"num_workers": 2, "prefetch_factor": 2, "pin_memory": None},
            "queues": "not_recorded: of this loader it is known how many batches were ready at each fetch",
        }  # fmt: skip
        lines = [line | loader if line["e"] == "iterator" else line for line in lines if line["e"] != "service"]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return folder


def converted(folder):
    from pipeprof.read.spool.finish import open_run
    from pipeprof.report.rollup import keep

    run = open_run(spool(folder))
    shutil.rmtree(folder / "spool")
    run.manifest.state = "complete"  # else it would have no rollup
    run.save()
    assert keep(run)
    return folder


def baselines(folder, run):
    from pipeprof.query.side import open_measures
    from pipeprof.record import baseline

    measures = open_measures(run)
    baseline.save(measures, str(folder), "w")
    return folder


def benchmark(folder):
    folder.mkdir()
    for number in range(2):
        content = {
            "machine_info": {"node": "n", "machine": "x86_64", "system": "Linux", "python_version": "3.11", "cpu": {"brand_raw": "c", "count": 2}},
            "commit_info": {"id": "abc", "dirty": False}, "datetime": f"2026-01-0{number + 1}T00:00:00+00:00",
            "benchmarks": [{"fullname": f"t{at}", "stats": {"median": 0.5 + at + number / 100}} for at in range(3)],
        }  # fmt: skip
        folder.joinpath(f"{number}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def foreign(kind, number):
    """A maker of what another profiler wrote."""

    def make(folder):
        from ascend_files import write_cluster, write_cpu, write_gpu, write_graph, write_output, write_prof
        from dftracer_files import write_lines
        from kineto_files import training, write_trace
        from megengine_files import profile
        from minddata_files import write_feed, write_sink
        from minddata_files import write_gpu as write_gpu_sink
        from rocprof_files import write_results
        from xplane_files import write_profile

        makers = {
            "ascend": [write_graph, write_output, write_prof, write_cpu, write_gpu, write_cluster],
            "minddata": [write_feed, write_sink, write_gpu_sink],
            "rocprof": [write_results],
            "dftracer": [write_lines],
            "xplane": [write_profile],
        }
        if kind in makers:
            makers[kind][number % len(makers[kind])](folder)
            return folder
        folder.mkdir(exist_ok=True)
        if kind == "kineto":
            write_trace(folder / "x.pt.trace.json", training(3))
        elif number % 4 == 0:
            folder.joinpath("profile.json").write_text(json.dumps(profile()), encoding="utf-8")
        else:
            from property import test_megengine_fuzz as known

            name = ["timeline", "static", "flow"][number % 4 - 1]
            suffix = "svg" if name == "flow" else "json"
            folder.joinpath(f"{name}.{suffix}").write_bytes(known.SOURCES[name])
        return folder

    return make


SETTINGS = {
    "schema_version": 1, "site": "train.py:9", "prefetch": 4, "environment": {"OMP_NUM_THREADS": "2"}, "cpus": "0",
    "operators": [{"node": 1, "op_type": "MapOp", "place": "train.py:5", "workers": 2}],
}  # fmt: skip
POLICY = """
[gate]
alpha = 0.01

[gate.metrics.step_time_median]
threshold = 0.05
"""
FAMILIES = [
    "spool",
    "ranks",
    "loader",
    "manifest",
    "parts",
    "baseline",
    "history",
    "policy",
    "benchmark",
    "comparison",
    "rollup",
    "settings",
    *SESSION_VERBS,
    "ascend",
    "minddata",
    "megengine",
    "kineto",
    "rocprof",
    "dftracer",
    "xplane",
]


NAMED = (*SESSION_VERBS, "manifest", "baseline", "settings")  # whose names become paths


class Templates:
    """Undamaged input, made once."""

    def __init__(self, folder):
        self.folder = folder
        self.made = {}

    def take(self, name, make):
        if name not in self.made:
            self.made[name] = make(self.folder / name)
        return self.made[name]

    def run(self):
        return self.take("good", converted)


def prepare(family, number, templates, place):  # noqa: PLR0911 - one for each family
    """Put undamaged input into `place/in`: the files to damage, the verbs that read them, and words of those verbs."""
    inside = place / "in"
    words = {"in": inside, "out": place / "out", "run": inside / "run", "good": templates.run(), "own": inside / "run"}
    if family in ("spool", "ranks", "loader"):
        name = "2.10-ranks" if family == "ranks" else "2.10-pynative"
        make = of_a_loader if family == "loader" else lambda folder: spool(folder, name)
        shutil.copytree(templates.take(family, make), words["run"])
        found = files(words["run"] / "spool")
        own = [path for path in found if path.parent.name.startswith(("rep=", "proc-")) and path.stat().st_size]
        return found + own * 6, RUN_VERBS, words  # those that only we write count more
    if family in ("manifest", "parts", "rollup"):
        shutil.copytree(templates.run(), words["run"])
        found = [words["run"] / "run.json"] if family == "manifest" else files(words["run"], "*.parquet")
        if family == "rollup":
            found = [path for path in found if "rollup" in path.parts]
            return found, [["fleet", "{in}"], ["fleet", "{in}", "--format", "json"], ["runs", "{in}"]], words
        return found, RUN_VERBS, words
    if family in SESSION_VERBS:
        words["own"] = inside / "session"
        shutil.copytree(templates.take(family, lambda folder: session(folder, family, templates)), words["own"])
        inside.joinpath("sweep.toml").write_text(SWEEP, encoding="utf-8")
        state = [words["own"] / name for name in ("session.json", "pool.json") if words["own"].joinpath(name).is_file()]
        found = [path for path in files(words["own"]) if path.suffix in (".json", ".jsonl")] + state * 9
        os.chdir(repository(templates) if family == "bisect" else templates.folder)
        return found, [SESSION_VERBS[family]], words
    if family == "settings":
        path = inside / "settings.json"
        path.write_text(json.dumps(SETTINGS), encoding="utf-8")
        return [path], [["collect", "--apply", "{in}/settings.json", "-o", "{out}/run", "-q", "--", "true"]], words
    if family in ("baseline", "history"):
        shutil.copytree(
            templates.take("baselines", lambda folder: baselines(folder, templates.run())), inside / "baselines"
        )
        words["base"] = next(inside.glob("baselines/w/*"))
        found = files(words["base"])
        return (
            [path for path in found if (path.name == "history.jsonl") == (family == "history")],
            BASELINE_VERBS,
            words,
        )
    if family == "policy":
        path = inside / "pipeprof.toml"
        path.write_text(POLICY, encoding="utf-8")
        return [path], [["compare", "{good}", "{good}", "--policy", "{in}/pipeprof.toml"]], words
    if family == "benchmark":
        shutil.copytree(templates.take("benchmark", benchmark), inside / "bench")
        verbs = [
            ["compare", "{in}/bench", "{in}/bench/0.json"],
            ["compare", "{in}/bench/0.json", "{in}/bench/1.json", "--format", "json"],
        ]
        return files(inside / "bench"), verbs, words
    if family == "comparison":
        path = inside / "compare.json"
        path.write_text(templates.take("comparison", compared), encoding="utf-8")
        forms = ["markdown", "html", "junit", "github-summary", "github-comment", "github-annotations"]
        return [path], [["render", "{in}/compare.json", "--to", form] for form in forms], words
    shutil.copytree(templates.take(f"{family}-{number % 24}", foreign(family, number)), inside / "raw")
    found = files(inside / "raw")
    one = ["ops", str(found[number % len(found)])]
    return found, [*IMPORT_VERBS * 3, one], words


def session(folder, family, templates):
    """A session of a verb that was killed in its second repetition."""
    os.chdir(repository(templates) if family == "bisect" else templates.folder)
    sweep = templates.folder / "in"
    sweep.mkdir(exist_ok=True)
    sweep.joinpath("sweep.toml").write_text(SWEEP, encoding="utf-8")
    code, trace = asked([word.format_map({"own": folder, "in": sweep}) for word in SESSION_VERBS[family]])
    assert (code, trace) == (5, ""), (family, code, trace)
    state = folder / ("pool.json" if family == "qualify" else "session.json")
    content = json.loads(state.read_text(encoding="utf-8"))
    if family == "tune":
        content["failed_runs"] = [{"folder": "trial-0", "side": "a", "error": "x", "steps": 0}]
        content["trials"] = [{"key": "k", "what": [], "prediction": {}, "settings": SETTINGS}]
    elif family == "qualify":
        content["repetitions"] = {f"same-a-{number:03d}": {"seconds": 1.0, "values": {}} for number in range(3)}
    else:
        runs = content["runs" if family == "bisect" else "repetitions"]
        for number in range(4):
            runs.append(runs[0] | {"name": f"base-{number + 1:03d}", "state": "running", "seconds": None})
            folder.joinpath(runs[-1]["name"]).mkdir()
    state.write_text(json.dumps(content), encoding="utf-8")
    return folder


def repository(templates):
    """A repository with three commits."""

    def make(folder):
        folder.mkdir()
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        for words in (["init", "-q"], *([*who, "commit", "-q", "--allow-empty", "-m", f"{at}"] for at in range(3))):
            subprocess.run(["git", "-C", str(folder), *words], check=True)
        return folder

    return templates.take("repository", make)


def compared(_folder):
    from comparisons import comparison

    return json.dumps(comparison())


def files(folder, pattern="*"):
    return sorted(path for path in folder.rglob(pattern) if path.is_file())


def any_bytes(rng, data):
    """Bytes that are wrong, missing, or too many."""
    data = bytearray(data)
    at, to = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    way = rng.randrange(9)
    if way == 0:
        for _ in range(rng.randint(1, 8)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif way == 1:
        del data[at:]
    elif way == 2:
        del data[at : min(to, at + 200)]
    elif way == 3:
        data[at:at] = rng.choice(NOISE)
    elif way == 4:
        data[at:at] = data[at : min(to, at + 5000)] * rng.choice([1, 3, 50])
    elif way == 5:
        data[at : at + 8] = rng.choice([2**63 - 1, -(2**63), -1, 0, 2**62]).to_bytes(8, "little", signed=True)
    elif way == 6:
        data[at : at + rng.randint(1, 64)] = rng.randbytes(rng.randint(1, 64))
    elif way == 7:
        lines = bytes(data).split(b"\n")
        rng.shuffle(lines)
        data = bytearray(b"\n".join(lines))
    else:
        digits = [place for place, sign in enumerate(data) if 48 <= sign <= 57]
        for place in rng.sample(digits, min(len(digits), rng.randint(1, 20))):
            data[place] = 48 + rng.randrange(10)
    return f"bytes {way}", bytes(data)


def any_cell(rng, data):
    """Another word in a line of a text."""
    lines = data.decode("utf-8", "replace").split("\n")
    at = rng.randrange(len(lines))
    for mark in (",", "\t", ";", " ", "="):
        if mark in lines[at]:
            cells = lines[at].split(mark)
            cells[rng.randrange(len(cells))] = str(rng.choice(ODD))
            lines[at] = mark.join(cells)
            break
    return "cell", "\n".join(lines).encode("utf-8", "surrogatepass")


def any_value(rng, data):
    """A value of JSON that is missing or impossible: of a document, or of a line."""
    try:
        return "value", changed(rng, data)
    except (ValueError, RecursionError):
        lines = data.split(b"\n")
        at = rng.randrange(len(lines))
        try:
            lines[at] = changed(rng, lines[at])
        except (ValueError, RecursionError):
            return any_cell(rng, data)
        return "value of a line", b"\n".join(lines)


def changed(rng, text):
    content = json.loads(text)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        ways = list(places(content))
        if not ways:
            break
        *way, last = rng.choice(ways)
        inside = content
        for key in way:
            inside = inside[key]
        if rng.random() < 0.2:
            del inside[last]
        else:
            inside[last] = rng.choice(ODD)
    return json.dumps(content).encode("utf-8", "surrogatepass")


def any_name(rng, data, place):
    """A name of JSON, as a value or as a key, that is a path to somewhere else."""
    try:
        content = json.loads(data)
    except ValueError:
        return any_cell(rng, data)
    path = rng.choice(OUTSIDE).format(outside=place / "outside")
    texts = [way for way in places(content) if isinstance(valued(content, way), (str, dict))]
    folders = [way for way in texts if way[-1] in ("name", "folder", "repetitions", "files", "parts")]
    *way, last = rng.choice(folders if folders and rng.random() < 0.6 else texts)
    inside = valued(content, way)
    value = inside[last]
    if isinstance(value, dict) and value:
        value[path] = value.pop(rng.choice(list(value)))
    else:
        inside[last] = path
    return f"path {path}", json.dumps(content).encode("utf-8", "surrogatepass")


def valued(content, way):
    for key in way:
        content = content[key]
    return content


def any_file(rng, path, place):
    """Something else in the place of a file."""
    path.unlink()
    way = rng.choice(["pipe", "zero", "out", "nowhere", "folder", "loop", "gone", "sparse", "empty"])
    if way == "pipe":
        os.mkfifo(path)
    elif way in ("zero", "out", "nowhere", "loop"):
        target = {
            "zero": "/dev/zero",
            "out": str(place / "outside" / "secret"),
            "nowhere": "nowhere",
            "loop": path.name,
        }
        path.symlink_to(target[way])
    elif way == "folder":
        path.mkdir()
    elif way == "sparse":
        with path.open("wb") as file:
            file.truncate(1 << 40)
    elif way == "empty":
        path.write_bytes(b"")
    return way


def any_table(rng, path):
    """A Parquet file of other values, types or rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.ParquetFile(path).read()
    at = rng.randrange(table.num_columns)
    name, kind = table.schema[at].name, table.schema[at].type
    way = rng.choice(["type", "null", "extreme", "gone", "rows", "none", "text"])
    if way == "gone":
        table = table.drop_columns([name])
    elif way == "rows":
        table = pa.concat_tables([table] * rng.choice([2, 500])).combine_chunks()
    elif way == "none":
        table = table.slice(0, 0)
    else:
        values = {
            "type": pa.array([[1]] * len(table)) if rng.random() < 0.5 else pa.array(["x"] * len(table)),
            "null": pa.nulls(len(table), kind),
            "text": pa.array(["\x1b[31m\u202e=1"] * len(table)),
            "extreme": pa.array([rng.choice([2**63 - 1, -(2**63), 2**62, 0, -1]) for _ in range(len(table))]),
        }[way]
        table = table.set_column(at, name, values)
    pq.write_table(table, path, compression="zstd")
    return f"table {way} {name}"


def seal_again(family, place, words):
    """Make checksums say that the damage is what was written: whoever damages a file can do that, too."""
    from pipeprof.errors import PipeprofError
    from pipeprof.record import baseline_files, checksums
    from pipeprof.record.run import load

    with contextlib.suppress(PipeprofError, OSError, ValueError, KeyError, TypeError, RecursionError, AttributeError):
        if family == "parts":
            run = load(words["run"])
            checksums.seal(run)
            run.save()
        else:
            path = words["base"] / "baseline.json"
            if not _is_ordinary(path):
                return
            content = json.loads(path.read_bytes())
            for name, about in content["files"].items():
                file = words["base"] / name
                if not _is_ordinary(file):
                    continue
                data = file.read_bytes()
                about |= {"sha256": baseline_files.digest(name, data), "bytes": len(data)}
            content["sha256"] = baseline_files._own_digest(content)
            path.write_text(json.dumps(content), encoding="utf-8")


def _is_ordinary(path):
    """No pipe, no /dev/zero, no hole."""
    return path.is_file() and path.stat().st_size <= MOST_SEALED


def damage(rng, family, found, place, words):
    """Damage one file of the input; says how."""
    path = rng.choice(found)
    shown = str(path.relative_to(place))
    if rng.random() < 0.08:
        how = any_file(rng, path, place)
    elif path.suffix == ".parquet" and rng.random() < 0.6:
        how = any_table(rng, path)
    else:
        data = path.read_bytes()
        named = family in NAMED and rng.random() < 0.5
        how, data = (
            ("was empty", b"x") if not data
            else any_name(rng, data, place) if named
            else rng.choice([any_bytes, any_value, any_cell])(rng, data)
        )  # fmt: skip
        if words["in"].joinpath("raw") in path.parents and rng.random() < 0.15:
            packed = gzip.compress(data, 1, mtime=0)
            zipped, packed = any_bytes(rng, packed) if rng.random() < 0.7 else ("whole", packed)
            path.unlink()
            path, data, how = path.with_name(path.name + ".gz"), packed, f"{how}, packed, {zipped}"
        path.write_bytes(data)
    if family in ("parts", "baseline") and rng.random() < 0.7:
        seal_again(family, place, words)
        how += ", sealed"
    return f"{shown}: {how}"


def asked(verb):
    """How a verb ends: its exit code, or the traceback of what should never happen."""
    import click

    from pipeprof.cli import cli
    from pipeprof.cli.messages import words_of_name
    from pipeprof.errors import PipeprofError

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            cli.main(verb, standalone_mode=False, prog_name="pipeprof")
        except PipeprofError as error:
            assert error.message  # noqa: PT017
            return error.exit_code, ""
        except click.ClickException:
            return 2, ""
        except SystemExit as end:
            return end.code or 0, ""
        except Exception as error:  # noqa: BLE001 - this is what is looked for
            return (2, "") if words_of_name(error) is not None else (70, traceback.format_exc())
    return 0, ""


def case(family, seed, number, templates, watch):
    """Run one case. Returns what is to be told of it."""
    rng = random.Random(f"{family} {seed} {number}")  # noqa: S311 - the same each time
    place = templates.folder / "case"
    for name in ("in", "out", "outside", "tmp", "cache"):
        place.joinpath(name).mkdir(parents=True)
    place.joinpath("outside", "secret").write_text("{}", encoding="utf-8")
    place.joinpath("outside", "folder").mkdir()
    place.joinpath("outside", "folder", "mine").write_text("{}", encoding="utf-8")
    os.environ.update(HOME=str(place / "tmp"), XDG_CACHE_HOME=str(place / "cache"), TMPDIR=str(place / "tmp"))
    tempfile.tempdir = None
    try:
        found, verbs, words = prepare(family, number, templates, place)
        how = [damage(rng, family, found, place, words)]
        chosen = [
            [word.format_map({k: str(v) for k, v in words.items()}) for word in verb]
            for verb in rng.sample(verbs, min(2, len(verbs)))
        ]
        watch.allowed = (*(str(place / name) for name in ("out", "tmp", "cache")), str(words["own"]))
        watch.allowed += tuple(str(templates.folder / "repository") for _ in range(family == "bisect"))
        watch.seen = []
        before = listing(place, words["own"])
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        began, used = time.monotonic(), cpu_seconds()
        faulthandler.dump_traceback_later(STUCK_S, exit=True)
        end_after(HANG_S)
        watch.on = True
        ends = [asked(verb) for verb in chosen]
        watch.on = False
        faulthandler.cancel_dump_traceback_later()
        took, used = time.monotonic() - began, cpu_seconds() - used
        problems = [trace for _, trace in ends if trace]
        problems += [f"exit code {code}" for code, trace in ends if code not in CODES and not trace]
        problems += [f"{used:.0f} s of CPU time"] if used > HANG_S else []
        problems += [f"{peak()} MiB"] if peak() > MOST_MIB else []
        problems += [f"wrote outside: {one}" for one in watch.seen]
        problems += [f"changed outside: {one}" for one in sorted(before ^ listing(place, words["own"]))]
        return {
            "family": family, "number": number, "how": how, "verbs": chosen, "codes": [code for code, _ in ends],
            "seconds": round(took, 2), "cpu": round(used, 2), "mib": peak(), "problems": problems,
        }  # fmt: skip
    finally:
        watch.on = False
        os.chdir(templates.folder)
        shutil.rmtree(place, ignore_errors=True)


def listing(place, own):
    """What lies where nothing may be written, with size and time of change."""
    kept = [
        path
        for name in ("in", "outside")
        for path in place.joinpath(name).rglob("*")
        if own not in (path, *path.parents)
    ]
    return {
        (str(path), path.lstat().st_size, path.lstat().st_mtime_ns)
        for path in kept
        if not path.is_dir() or path.is_symlink()
    }


def cpu_seconds():
    """CPU time of this process and of its children that ended."""
    return sum(os.times()[:4])


def end_after(seconds):
    """Let this process end, with a traceback, when it has used so many more seconds of CPU time."""
    faulthandler.register(signal.SIGXCPU, chain=True)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + 1 + seconds, hard))


def peak():
    """Most memory of this process since the last reset, MiB."""
    return int(Path("/proc/self/status").read_text(encoding="utf-8").partition("VmHWM:")[2].split()[0]) >> 10


def main(families, seed, first, count):
    resource.setrlimit(resource.RLIMIT_DATA, (LAST_RESORT, LAST_RESORT))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 41, 1 << 41))
    watch = Watch()
    folder = Path(tempfile.mkdtemp(prefix="pipeprof-mutations-"))
    try:
        templates = Templates(folder)
        for family, number in product(families, range(first, first + count)):
            print(json.dumps({"family": family, "begins": number}), flush=True)
            print(json.dumps(case(family, seed, number, templates, watch)), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1].split(","), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
