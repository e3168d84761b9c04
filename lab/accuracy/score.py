"""Scores the diagnosis on the stored captures, and other tools' rules on the same ones.

python lab/accuracy/score.py                          the table as markdown
python lab/accuracy/score.py --json                   as JSON, one entry per capture
python lab/accuracy/score.py --write docs/accuracy.md
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archive import unpack
from truncate import first_steps

from pipeprof.query.engine import Engine
from pipeprof.record.run import load
from pipeprof.report.diagnosis import in_words, judged

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipeprof.record.run import Run

ROOT = Path(__file__).resolve().parents[2]
CAPTURES = ROOT / "tests" / "accuracy" / "captures"
LISTS = ROOT / "lab" / "accuracy.md"
CONSUMER = "consumer"
SKIP_SHARE = 0.25  # as the diagnosis leaves out
FIRST = 10
MOST_WAIT = 0.2  # of the time of a loop that is labelled slow
THEIRS = {
    "mindinsight": "MindInsight, as coded",
    "mindspore": "MindSpore 2.10, as coded",
    "autotune": "AutoTune's rule",
    "prose": "documented queue rule",
    "drop": "largest drop of queue fill",
}
TARGETS = {"top1": 0.95, "top2": 0.99, "high_right": 0.99, "high_share": 0.80, "first_top1": 0.89, "kind": 0.90}
Z = 1.96


@dataclass(frozen=True)
class Answer:
    """What the diagnosis said: stages, best first; `op 7` stands for an operator that no label names."""

    verdict: str
    stages: list[str]
    kind: str | None
    confidence: str | None


@dataclass(frozen=True)
class Scored:
    """One capture: its label and all answers."""

    name: str
    seed: int | None
    label: str
    kind: str | None
    accepted: list[str]
    kinds: list[str]
    answer: Answer
    first: Answer
    theirs: dict[str, str | None] = field(default_factory=dict)

    @property
    def drawn(self) -> bool:
        """Drawn at random."""
        return self.seed is not None

    def top(self, number: int) -> bool:
        """Whether one of the first `number` stages is right."""
        return any(stage in self.accepted for stage in self.answer.stages[:number])

    @property
    def first_right(self) -> bool:
        """Top-1 of the first steps alone."""
        return any(stage in self.accepted for stage in self.first.stages[:1])

    @property
    def loop_bound(self) -> bool:
        """Only the training loop is right."""
        return self.accepted == [CONSUMER]

    @property
    def false_alarm(self) -> bool:
        """Called input-bound, though the training loop is slow."""
        return self.loop_bound and self.answer.verdict == "input_bound"

    @property
    def asked_kind(self) -> bool:
        """Whether a kind is due: an operator holds the training up, and was not passed over for a tied loop."""
        tied_loop = CONSUMER in self.accepted and self.answer.stages[:1] == [CONSUMER]
        return self.kind is not None and not tied_loop

    @property
    def kind_right(self) -> bool:
        """The kind is one of the right ones."""
        return self.answer.kind in self.kinds


def score_all(captures: Path = CAPTURES) -> list[Scored]:
    """All captures of a folder, in the order of their names."""
    entries = json.loads((captures / "truth.json").read_text(encoding="utf-8"))["captures"]
    names = sorted(name for name, entry in entries.items() if not contradicted(entry))
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        return list(pool.map(score_one, [captures] * len(names), names, [entries[name] for name in names]))


def contradicted(entry: dict[str, Any]) -> bool:
    """Built with a slow loop, yet the loop's own clock says that it waited: then the label is wrong, and nobody's fault."""
    waited: float = entry["measured"]["wait_share"]
    return entry["accepted"] == [CONSUMER] and waited > MOST_WAIT


def score_one(captures: Path, name: str, entry: dict[str, Any]) -> Scored:
    """Unpack one capture, ask every rule, cut it off after its first steps, and ask again."""
    with tempfile.TemporaryDirectory(prefix="score-") as folder:
        unpack(captures / f"{name}.tar.xz", Path(folder))
        run = load(folder)
        stages = {op_id: stage for stage, op_id in entry["ops"].items()}
        with Engine.open(run) as engine:
            diagnosis = _diagnosis(engine, run)
            rules = queue_rule(engine, SKIP_SHARE)
        theirs = _theirs(diagnosis.get("compatible") or {}, rules, stages)
        first_steps(run, FIRST)
        with Engine.open(run) as engine:
            first = _diagnosis(engine, run)
    kinds = [*entry["kinds"], *(["host_saturated"] if entry["saturated"] else [])]
    return Scored(
        name, entry["seed"], entry["label"], entry["kind"], entry["accepted"], kinds,
        answer_of(diagnosis, stages), answer_of(first, stages), theirs,
    )  # fmt: skip


def queue_rule(engine: Engine, skip_share: float) -> list[dict[str, Any]]:
    """What the queue rule that MindInsight documents says of each operator: `queue_rule.sql`."""
    text = Path(__file__).with_name("queue_rule.sql").read_text(encoding="utf-8")
    rows: list[dict[str, Any]] = engine.sql(text.replace("$skip_share", repr(skip_share))).to_pylist()
    return rows


def _diagnosis(engine: Engine, run: Run) -> dict[str, Any]:
    pipelines = engine.rows("queue/pipelines")
    return in_words(engine, run, pipelines, judged(engine, run, engine.rows("step/data_wait"), pipelines))


def answer_of(diagnosis: dict[str, Any], stages: dict[int, str]) -> Answer:
    """The stages that a diagnosis names. Consumer-bound names the loop first; balanced names both it and the operator."""
    verdict = diagnosis["verdict"]
    named = [diagnosis["op_id"], *diagnosis["candidates"]]
    ops = [_stage(op_id, stages) for op_id in named if op_id is not None]
    if verdict == "consumer_bound":
        ops = [CONSUMER, *ops]
    elif verdict == "not_measured":
        ops = []
    elif not ops:
        ops = [CONSUMER] if verdict == "balanced" else []
    return Answer(verdict, list(dict.fromkeys(ops)), diagnosis["kind"], diagnosis["confidence"])


def _stage(op_id: int, stages: dict[int, str]) -> str:
    return CONSUMER if op_id < 0 else stages.get(op_id, f"op {op_id}")


def _theirs(
    compatible: dict[str, Any], rules: Sequence[dict[str, Any]], stages: dict[int, str]
) -> dict[str, str | None]:
    """The one stage that each other rule names first; the loop when it names no operator, None when it did not run."""
    found = {tool: _named(compatible.get(tool) or {}, stages) for tool in ("mindinsight", "mindspore", "autotune")}
    flagged = [row["op_id"] for row in rules if row["flag"]]
    largest = [row["op_id"] for row in rules if row["drop_ratio"] is not None]
    for rule, ids in (("prose", flagged), ("drop", largest)):
        found[rule] = None if not rules else _stage(ids[0], stages) if ids else CONSUMER
    return found


def _named(tool: dict[str, Any], stages: dict[int, str]) -> str | None:
    if "named" not in tool:
        return None
    named = tool["named"]
    ids = named if isinstance(named, list) else [named]
    ids = [one["op_id"] if isinstance(one, dict) else one for one in ids]
    ids = [one for one in ids if one is not None]
    return _stage(ids[0], stages) if ids else CONSUMER


def wilson(right: int, of: int) -> tuple[float, float]:
    """95 % interval of a share."""
    if not of:
        return 0.0, 1.0
    share, spread = right / of, Z * Z / of
    middle = (share + spread / 2) / (1 + spread)
    half = Z * math.sqrt(share * (1 - share) / of + spread / of / 4) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def share(rows: Sequence[Scored], right: Callable[[Scored], bool]) -> dict[str, Any]:
    """{right, of, share, low, high}; the share of none is null."""
    hits = sum(1 for row in rows if right(row))
    low, high = wilson(hits, len(rows))
    value = hits / len(rows) if rows else None
    return {"right": hits, "of": len(rows), "share": value, "low": round(low, 4), "high": round(high, 4)}


def summary(rows: Sequence[Scored]) -> dict[str, Any]:
    """Every figure of the table, over these captures."""
    by_level = {level: [row for row in rows if row.answer.confidence == level] for level in ("high", "medium", "low")}
    return {
        "captures": len(rows),
        "top1": share(rows, lambda row: row.top(1)),
        "top2": share(rows, lambda row: row.top(2)),
        "kind": share([row for row in rows if row.asked_kind], lambda row: row.kind_right),
        "first_top1": share(rows, lambda row: row.first_right),
        "false_input_bound": share([row for row in rows if row.loop_bound], lambda row: row.false_alarm),
        "high_share": share(rows, lambda row: row.answer.confidence == "high"),
        "confidence": {level: share(found, lambda row: row.top(1)) for level, found in by_level.items()},
        "theirs": {
            tool: share(asked, lambda row, tool=tool: row.theirs[tool] in row.accepted)  # type: ignore[misc]
            for tool in THEIRS
            if (asked := [row for row in rows if row.theirs.get(tool) is not None])
        },
    }


def report(rows: Sequence[Scored]) -> dict[str, Any]:
    """Figures of all, of the designed and of the drawn captures, of the last drawn ones, and one entry per capture."""
    last = max((row.seed for row in rows if row.seed is not None), default=None)
    groups = {
        "all": list(rows),
        "designed": [row for row in rows if not row.drawn],
        "drawn": [row for row in rows if row.drawn],
        "drawn last": [row for row in rows if row.drawn and row.seed == last],
    }
    return {
        "schema_version": 1,
        "targets": TARGETS,
        "summary": {name: summary(group) for name, group in groups.items() if group},
        "captures": [{**asdict(row), "right": row.top(1), "first_right": row.first_right} for row in rows],
    }


def main() -> None:
    """Print or write the table."""
    import whatif
    from accuracy_text import lists, markdown
    from imported import score_imported

    parser = argparse.ArgumentParser(description="Scores the diagnosis on the stored captures.")
    parser.add_argument("--captures", type=Path, default=CAPTURES)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", type=Path, metavar="FILE")
    options = parser.parse_args()
    rows = whatif.score()
    found = report(score_all(options.captures)) | {"imported": score_imported(options.captures)}
    found["whatif"] = {"summary": whatif.summary(rows), "table": whatif.table(rows)}
    truth = json.loads((options.captures / "truth.json").read_text(encoding="utf-8"))
    text = json.dumps(found, indent=1) if options.json else markdown(found, truth)
    if options.write:
        options.write.write_text(text + "\n", encoding="utf-8")
        LISTS.write_text(lists(found) + "\n", encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
