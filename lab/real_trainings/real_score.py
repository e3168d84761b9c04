"""Scores the diagnosis on the recorded real trainings, against what interventions measured.

python lab/real_trainings/real_score.py                    a table
python lab/real_trainings/real_score.py --busy 4           recorded beside 4 busy loops for each core
python lab/real_trainings/real_score.py --json             figures, and one entry per training
python lab/real_trainings/real_score.py --rules my_rules   another program's rules: see README.md
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "accuracy"))

from archive import unpack
from decide import LOOP
from record import CAPTURES, crowded
from score import answer_of, share

from pipeprof.query.engine import Engine
from pipeprof.record import store
from pipeprof.record.run import load
from pipeprof.report import diagnosis
from pipeprof.report.answer.data import estimated, nearly_equal

SATURATED = 0.9  # of all cores: then `host_saturated` is a right kind as well
SLEEPS = frozenset(["Distant"])  # functions that mostly wait
READS = 1.02  # a measured gain this far above a stated upper bound contradicts it
GAINS = 1.10  # what removing the whole pipeline brings in all rounds: "the loop limits" contradicts it
DRAWS = ("later", "next", "last", "fresh")
GROUPS = ("known", "held out", "public", *(f"drawn {draw}" for draw in DRAWS))
NOTHING = 1.05  # what it does not bring in any round: "input-bound" contradicts it


@dataclass(frozen=True)
class Said:
    """What rules say of a recording.

    `named`: operators by number, or "consumer", best first. `bounds`: {operator: the most that its removal brings};
    `gains`: changes as (operator, parameter, new value, low, high). `whole_most`: where removing the whole pipeline is
    said to bring from nothing up to so much; `whole_about`: the ends of what it is estimated to bring.
    """

    verdict: str
    named: list[int | str]
    kind: str | None = None
    confidence: str | None = None
    bounds: dict[int, float] | None = None
    gains: list[tuple[int, str, object, float, float]] | None = None
    whole_most: float | None = None
    whole_about: tuple[float, float] | None = None


@dataclass(frozen=True)
class Scored:
    """One training. What could not be asked is None."""

    name: str
    group: str
    limits: str
    accepted: list[int | str]
    said: Said
    right: bool | None
    kind_right: bool | None
    bounds_right: list[bool]
    gains_right: list[bool]
    contradicts: bool
    whole_right: bool | None
    about_right: bool | None

    @property
    def sentence_right(self) -> bool | None:
        """Whether the first sentence holds: it names what limits, or gives an interval in which the measured gain lies."""
        return self.right if self.right is None else self.right or self.whole_right is True


def own_rules(run):
    """pipeprof's diagnosis of a run."""
    with Engine.open(run) as engine:
        found = diagnosis.judged(engine, run, engine.rows("step/data_wait"), engine.rows("queue/pipelines"))
    stages = {op: op for op in [found["op_id"], *found["candidates"]] if op is not None}
    answer = answer_of(found, stages)
    bounds, gains = {}, []
    for item in found["suggestions"]:
        if item["op_id"] is None or item["gain_high"] is None:
            continue
        if item["parameter"] is None:
            bounds[item["op_id"]] = item["gain_high"]
        elif item["gain_low"] is not None:
            gains.append((item["op_id"], item["parameter"], item["new"], item["gain_low"], item["gain_high"]))
    freed, most = (one["value"] for one in found["rule_facts"] if one["fact"] == "freed"), nearly_equal(found)
    about = next((estimated(one) for one in freed if one is not None), None) if most is None else None
    return Said(answer.verdict, answer.stages, answer.kind, answer.confidence, bounds, gains, most, about)


def kinds_of(op, *, saturated):
    """The kinds that are right for an operator: facts of its code, for interventions do not show them."""
    found = ["host_saturated"] if saturated else []
    if op["op_type"] == "GeneratorOp" and (op["workers"] or 1) > 1:
        found.append("poll")
    if op["name"] in SLEEPS:
        return {*found, "wait"}
    if not op["is_python"]:
        return {*found, "cpu", *(["wait"] if op["op_type"] not in ("MapOp", "BatchOp") else [])}
    return {*found, "cpu"} if op["uses_processes"] else {*found, "cpu", "gil"}


def is_saturated(run):
    """Whether the machine had next to no idle time while the training was recorded."""
    rows = [
        row for row in store.read(run, "cpu").to_pylist() if row["scope"] == "host" and row["idle_ratio"] is not None
    ]
    late = [row["idle_ratio"] for row in rows[len(rows) // 4 :]]
    return bool(late) and 1 - sum(late) / len(late) > SATURATED


def score_one(label, recording, rules=own_rules):
    """Unpack one recording and hold what the rules say against its label."""
    with tempfile.TemporaryDirectory(prefix="score-") as folder:
        unpack(recording, Path(folder))
        run = load(folder)
        saturated, said = is_saturated(run), rules(run)
    return judged(label, said, saturated=saturated)


def judged(label, said, *, saturated=False):
    """The score of one training from its label and what was said. Pure."""
    ops = {op["op_id"]: op for op in label["ops"]}
    first = said.named[0] if said.named else None
    asked = label["limits"] != "undecided"
    right = first in label["accepted"] if asked else None
    kind = None
    if right and first in ops and label["limits"] == "op":
        kind = said.kind in kinds_of(ops[first], saturated=saturated)
    bounds = [ops[op]["low"] <= READS * most for op, most in (said.bounds or {}).items() if op in ops]
    changes = {(one["op_id"], one["parameter"], one["new"]): one["ratio"] for one in label["changes"]}
    gains = [low <= changes[tuple(key)] <= high for *key, low, high in said.gains or [] if tuple(key) in changes]
    return Scored(
        label["name"], group_of(label), label["limits"], label["accepted"], said, right, kind, bounds, gains,
        contradicts(label["whole"], said), None if said.whole_most is None else holds(label["whole"], 1.0, said.whole_most),
        None if said.whole_about is None else holds(label["whole"], *said.whole_about),
    )  # fmt: skip


def group_of(label):
    """`public`: other people's code; `held out`, `drawn later`: recorded when the rules were fixed; `known`: they saw it."""
    draw = label["name"].partition("_")[0]
    if draw in DRAWS:
        return f"drawn {draw}"
    return "public" if label.get("script") else "held out" if label["held_out"] else "known"


def contradicts(whole, said):
    """Whether what the report says, and not with low confidence, is the opposite of what `headspace` measured."""
    if said.confidence not in ("high", "medium"):
        return False
    no_gain, no_loop = whole["high"] < NOTHING, whole["low"] >= GAINS
    return (said.verdict == "consumer_bound" and no_loop) or (said.verdict == "input_bound" and no_gain)


def holds(whole, least, most):
    """Whether removing the pipeline brought from `least` up to `most`, in the median of the rounds."""
    return least <= whole["ratio"] <= most


def score_all(captures=CAPTURES, rules=own_rules, recordings=None):
    """All recordings whose label is of a quiet machine, in the order of their names; `recordings`: other ones of them."""
    labels = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(captures.glob("*.json"))]
    asked = [(label, (recordings or captures) / f"{label['name']}.tar.xz") for label in labels if label["quiet"]]
    return [score_one(label, path, rules) for label, path in asked if path.exists()]


def summary(rows):
    """Shares with their 95 % intervals: right answers, first sentences that hold, right with high confidence, kinds, bounds
    and promised gains.
    """
    asked = [row for row in rows if row.right is not None]
    high = [row for row in asked if row.said.confidence == "high"]
    loops = [row for row in asked if row.accepted == [LOOP]]
    bounds = [right for row in rows for right in row.bounds_right]
    gains = [right for row in rows for right in row.gains_right]
    return {
        "trainings": len(rows),
        "top1": share(asked, lambda row: row.right),
        "first_sentence": share(asked, lambda row: row.sentence_right),
        "high_right": share(high, lambda row: row.right),
        "kind": share([row for row in asked if row.kind_right is not None], lambda row: row.kind_right),
        "false_input_bound": share(loops, lambda row: row.said.verdict == "input_bound"),
        "bounds": share(bounds, bool),
        "gains": share(gains, bool),
        "whole": share([row for row in rows if row.whole_right is not None], lambda row: row.whole_right),
        "about": share([row for row in rows if row.about_right is not None], lambda row: row.about_right),
        "contradicts_headspace": share(rows, lambda row: row.contradicts),
    }


def report(rows):
    groups = {"all": rows} | {name: [row for row in rows if row.group == name] for name in GROUPS}
    return {
        "schema_version": 1,
        "summary": {name: summary(group) for name, group in groups.items() if group},
        "trainings": [asdict(row) for row in rows],
    }


def text(rows):
    lines = []
    for row in rows:
        mark = {True: "right", False: "WRONG", None: "-"}[row.right]
        named = row.said.named[0] if row.said.named else "-"
        right = ", ".join(map(str, row.accepted))
        lines.append(
            f"{row.name:24} {mark:6} said {named!s:9} {row.said.verdict:15} {row.said.confidence or '-':7} "
            f"measured {row.limits:9} {right}"
        )
    for name, figures in report(rows)["summary"].items():
        shares = (f"{key} {one['right']}/{one['of']}" for key, one in figures.items() if isinstance(one, dict))
        lines.append(f"{name}: {', '.join(shares)}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description="Scores rules on the recorded real trainings.")
    parser.add_argument("--captures", type=Path, default=CAPTURES)
    parser.add_argument("--busy", type=int, metavar="N", help="the recordings beside N busy loops for each core")
    parser.add_argument("--rules", metavar="MODULE", help="a module with a function `rules(run) -> Said`")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rules = own_rules
    if options.rules:
        sys.path.insert(0, "")
        rules = importlib.import_module(options.rules).rules
    rows = score_all(options.captures, rules, crowded(options.busy) if options.busy else None)
    print(json.dumps(report(rows), indent=1) if options.json else text(rows))


if __name__ == "__main__":
    main()
