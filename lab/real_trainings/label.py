"""Labels real trainings by intervention: what happens when a part of the data pipeline costs nothing.

python lab/real_trainings/label.py                    all that have no label yet, but those that are held out
python lab/real_trainings/label.py cifar_native       these, also when they have one
python lab/real_trainings/label.py --held-out         the last third: only when the rules are fixed
python lab/real_trainings/label.py --public           trainings with public libraries (extra `real`)
python lab/real_trainings/label.py --later            drawn after a rule was changed for the last third
python lab/real_trainings/label.py --next             drawn after the rule that the draw before asked for
python lab/real_trainings/label.py --last             drawn for the first sentence that gives an interval
python lab/real_trainings/label.py --fresh            drawn after the rule that the third draw asked for
python lab/real_trainings/label.py --plan             what would be run, and how long it takes
python lab/real_trainings/label.py --any-load         on a busy machine: the label says so and counts as none

Each training runs in a process of its own; what was interrupted is done anew, what is complete is left.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "accuracy"))

from archive import pack
from catalogue import CASES, EVERY, FRESH, LAST, LATER, NEXT, PUBLIC, TRIVIAL, find, held_out
from decide import LOOP, decide, if_free, ratios
from quiet import BusyError, Neighbours, machine, versions, wait_until_quiet
from record import CAPTURES, KEPT, SECONDS, FailedError, command, record

from pipeprof.errors import PipeprofError
from pipeprof.experiment.headspace import COUNTING, can_be_alone, source_rows, training_iterators
from pipeprof.experiment.runs import changed_probe, run_once
from pipeprof.experiment.stages import described_pipelines

SCHEMA_VERSION = 1
ROUNDS, MOST_ROUNDS = 2, 4
QUIET_CORES = 0.2  # of neighbours, over all runs of a training
MOST_LOAD = 6.0  # the runs before raise the load average themselves
LIMIT_S = 900
GROUPS = {
    "public": "those with public libraries",
    "later": "the draw after the last third",
    "next": "the draw after that one",
    "last": "the third draw",
    "fresh": "the fourth",
}
RUN_S = 8.0  # of one run: imports, compiling, SECONDS of training
OPS = 2.5  # that are replaced alone, on the average
BASE, WHOLE = "base", "whole"
HANDING_OUT_S = 0.05e-3  # of an output, where C++ was replaced; Python takes that long by itself


class Arms:
    """The sides of one training: as it is, with the whole pipeline removed, with one operator removed or changed."""

    def __init__(self, case, folder, seconds=SECONDS):
        self.words = command(case.name, seconds)
        self.folder = folder
        self.rates = {}
        self.outputs = {}
        self.unchanged = []

    def run(self, name, number):
        """Measure an arm once; the base of the same round must have run."""
        return self.rates.setdefault(name, []).append(self._rate(name, number))

    def _rate(self, name, number):
        base = name == BASE
        done = run_once(self.folder / name, self.words, "a" if base else "b", number, self._probe(name))
        if base:
            self.unchanged.append(done)
        elif not done.events("cached" if name == WHOLE else "override" if "=" in name else "stood_in"):
            raise FailedError(f"{name}: {done.events('override_missed') or 'nothing was replaced'}")
        self.outputs[name] = sum(event["rows"] for event in done.events("handed_out")) / max(1, done.training_steps)
        return done.rate.per_second

    def _probe(self, name):
        if name == BASE:
            return changed_probe(override=COUNTING)
        if name == WHOLE:
            return changed_probe(cached=training_iterators(self.unchanged[0].processes))
        node, _, change = name.partition(":")
        spec = {"node": int(node), "site": None}
        if change:
            settings = dict(setting.split("=") for setting in change.split(","))
            return changed_probe(override=spec | {setting: int(value) for setting, value in settings.items()})
        rows = source_rows(self.unchanged).get(int(node))
        return changed_probe(override=spec | {"stand_in": "alone", "rows": rows})

    def ratio(self, name):
        return ratios(self.rates[BASE], self.rates[name])


def measure(arms, ops):
    """Rounds of all arms, in turn forwards and backwards, until the label is decided or they are enough."""
    names = [WHOLE, *(str(op["node"]) for op in ops)]
    for number in range(MOST_ROUNDS):
        if number >= ROUNDS and label_of(arms, ops, []).limits not in ("either", "undecided"):
            break
        for name in [BASE, *(names if number % 2 == 0 else names[::-1])]:
            arms.run(name, number)


def label_of(arms, ops, others):
    return decide(arms.ratio(WHOLE), {op["op_id"]: alone(arms, op) for op in ops}, others)


def alone(arms, op):
    """The gain of one operator, with what its stand-in may have cost."""
    name = str(op["node"])
    share = 0.0 if op["is_python"] else arms.outputs[name] * HANDING_OUT_S * max(arms.rates[name])
    return if_free(arms.ratio(name), share, arms.ratio(WHOLE).high)


def accepted_of(decision, ops, pipeline):
    """The right answers: the map by which MindSpore itself parses the rows of a source is right where the source is."""
    sources = {op["op_id"] for op in ops if op["op_type"] not in ("MapOp", "BatchOp")}
    parsers = [op["op_id"] for op in pipeline.ops if op["node"] is None and op["op_type"] == "MapOp"]
    return [*decision.accepted, *(parsers if sources & set(decision.accepted) else [])]


def changes_of(op):
    """Settings worth a try on an operator that limits: parameter, its new value, and what the probe is told."""
    found = []
    if op["workers"] == 1:
        found.append(("num_parallel_workers", 2, "workers=2"))
    if op["op_type"] == "MapOp" and op["is_python"] and not op["uses_processes"]:
        found.append(("python_multiprocessing", True, "processes=1,workers=2"))
    return found


def measure_changes(arms, ops, accepted):
    """Each change of the operator that brings most, twice, against the first runs of the unchanged script."""
    op = max((op for op in ops if op["op_id"] in accepted), key=lambda op: arms.ratio(str(op["node"])).ratio)
    found = []
    for parameter, value, text in changes_of(op):
        name = f"{op['node']}:{text}"
        for number in range(ROUNDS):
            arms.run(name, number)
        found.append({"op_id": op["op_id"], "parameter": parameter, "new": value} | figures(arms, name))
    return found


def figures(arms, name):
    found = arms.ratio(name)
    rates = [round(rate, 3) for rate in arms.rates[name]]
    return {"ratio": round(found.ratio, 4), "low": round(found.low, 4), "high": round(found.high, 4), "rates": rates}


def handing_out(arms, op):
    outputs = round(arms.outputs[str(op["node"])], 2)
    return {"outputs_per_step": outputs, "high_if_free": round(alone(arms, op).high, 4)}


def labelled(case, captures, seconds=SECONDS):
    """Record and measure one training; its label, and its recording in `captures`."""
    start, neighbours = time.monotonic(), Neighbours()
    with tempfile.TemporaryDirectory(prefix="label-") as folder:
        run = record(case.name, Path(folder) / "run", seconds)
        pipeline = described_pipelines(run)[0]
        ops = [op for op in pipeline.ops if can_be_alone(op) and op["name"] not in TRIVIAL]
        others = [op["op_id"] for op in pipeline.ops if not can_be_alone(op) and op["node"] is not None]
        arms = Arms(case, Path(folder), seconds)
        measure(arms, ops)
        decision = label_of(arms, ops, others)
        changes = measure_changes(arms, ops, decision.accepted) if decision.limits == "op" else []
        size = pack(run.path, captures / f"{case.name}.tar.xz", KEPT)
    return {
        "schema_version": SCHEMA_VERSION, "name": case.name, "held_out": case.name in held_out(), "script": case.script,
        "family": case.family, "loop": case.loop, "heavy": case.heavy,
        "limits": decision.limits, "accepted": accepted_of(decision, ops, pipeline),
        "base": {"rates": [round(rate, 3) for rate in arms.rates[BASE]]}, "whole": figures(arms, WHOLE),
        "ops": [facts(op) | figures(arms, str(op["node"])) | handing_out(arms, op) for op in ops], "changes": changes,
        "neighbour_cores": round(neighbours.cores(), 3), "quiet": neighbours.cores() <= QUIET_CORES,
        "took_s": round(time.monotonic() - start, 1), "bytes": size,
        "measured_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": machine(), "versions": versions(),
    }  # fmt: skip


def facts(op):
    return {name: op[name] for name in ("op_id", "op_type", "name", "node", "workers", "is_python", "uses_processes")}


def label_one(name, out, *, any_load):
    """One training, in this process: writes `out`/NAME.json whole."""
    if not any_load:
        wait_until_quiet(MOST_LOAD)
    out.mkdir(parents=True, exist_ok=True)
    entry = labelled(find(name), out)
    temporary = out / f".{name}.json"
    temporary.write_text(json.dumps(entry, indent=1) + "\n", encoding="utf-8")
    temporary.replace(out / f"{name}.json")
    who = ", ".join("the loop" if one == LOOP else f"op {one}" for one in entry["accepted"])
    best = max((op["ratio"] for op in entry["ops"]), default=1.0)
    busy = "" if entry["quiet"] else f"  <- {entry['neighbour_cores']:.1f} cores of neighbours: no label"
    print(
        f"{name:24} {entry['limits']:9} {who:20} whole x{entry['whole']['ratio']:.2f} best alone x{best:.2f} "
        f"{entry['took_s']:5.0f} s{busy}",
        flush=True,
    )


def is_done(name, out):
    """Whether there is a label of it that was measured on a quiet machine."""
    path = out / f"{name}.json"
    return path.exists() and json.loads(path.read_text(encoding="utf-8"))["quiet"]


def wanted(options):
    """Names in the order of the catalogue: those that are asked for, else those without a label of their third."""
    if options.names:
        return options.names
    last = held_out()
    names = [case.name for case in CASES if (case.name in last) == options.held_out]
    if options.group:
        names = [
            case.name
            for case in {"public": PUBLIC, "later": LATER, "next": NEXT, "last": LAST, "fresh": FRESH}[options.group]
        ]
    return [name for name in names if not is_done(name, options.out)]


def label_all(names, options):
    """Each training in a process of its own; returns those that failed."""
    failed = []
    for name in names:
        words = [sys.executable, __file__, name, "--one", "--out", str(options.out)]
        words += ["--any-load"] if options.any_load else []
        try:
            failed += [name] if subprocess.run(words, timeout=LIMIT_S, check=False).returncode else []
        except subprocess.TimeoutExpired:
            failed.append(name)
            print(f"{name:24} took more than {LIMIT_S} s", flush=True)
    return failed


def plan(names):
    runs = 1 + ROUNDS * (2 + OPS) + 1
    each = runs * RUN_S
    print(f"{len(names)} trainings, about {each:.0f} s each, {len(names) * each / 60:.0f} minutes in all")
    print("\n".join(names))


def main():
    parser = argparse.ArgumentParser(description="Labels real trainings by intervention.")
    parser.add_argument("names", nargs="*", choices=[*(case.name for case in EVERY), []])
    parser.add_argument("--out", type=Path, default=CAPTURES)
    parser.add_argument("--held-out", action="store_true", help="the last third")
    for group, meaning in GROUPS.items():
        parser.add_argument(f"--{group}", dest="group", action="store_const", const=group, help=meaning)
    parser.add_argument("--plan", action="store_true", help="only say what would be run")
    parser.add_argument("--any-load", action="store_true", help="also on a busy machine")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = wanted(options)
    if options.plan:
        plan(names)
        return
    if options.one:
        try:
            label_one(names[0], options.out, any_load=options.any_load)
        except (BusyError, FailedError, PipeprofError) as reason:
            sys.exit(f"error: {names[0]}: {reason}")
        return
    failed = label_all(names, options)
    if failed:
        sys.exit(f"error: {len(failed)} failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
