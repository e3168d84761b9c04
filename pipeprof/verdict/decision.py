"""Applies the rules to a pipeline's facts: which stage limits, by which rule, of which kind, with which doubts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from pipeprof.verdict.clause import Rule, all_hold, codes
from pipeprof.verdict.facts import Facts, StageFacts
from pipeprof.verdict.rules import DOUBTS, RULES, SATURATED, SINK_STAGES, UNTIMED_KINDS, VERDICTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipeprof.query.rows import DataWait, JudgedStage

    Doubt = dict[str, Any]


@dataclass(frozen=True)
class Decision:
    """What limits one training pipeline on one rank: the verdict, the rule behind it, and the stages in their order.

    `verdict`: input_bound | consumer_bound | balanced; `kinds`: of `stages`, in their order; `doubts`: codes with the
    numbers that a sentence about them needs; `facts`: what it rested on.
    """

    rep: int
    rank: int
    verdict: str
    rule: Rule
    facts: Facts
    stages: tuple[StageFacts, ...]
    kinds: tuple[str | None, ...]
    doubts: tuple[Doubt, ...] = ()

    @property
    def first(self) -> StageFacts:
        """The stage that limits."""
        return self.stages[0]

    @property
    def holds_lock(self) -> bool:
        """The loop limits, but the operator behind it holds the interpreter's lock."""
        return any(doubt["code"] == "holds_lock" for doubt in self.doubts)

    @property
    def rested_on(self) -> list[dict[str, Any]]:
        """The facts that the rule asked for: {fact, value, relation, bound}."""
        return [clause.shown(self.facts) for clause in self.rule.when]


def decide(rows: Sequence[JudgedStage], machine_cores: float, *, alone: bool = True) -> Decision:
    """The decision on one pipeline on one rank ; `machine_cores` 0 when not known.

    `alone`: the run has no other rank.

    The first stage is the one that the rule chooses. The others follow by utilisation, those without times by the drop
    of queue fill; Python that holds the lock beside a loop that limits comes next.
    """
    measured = Facts.of(rows, machine_cores, alone=alone)
    rule = next(rule for rule in RULES if all_hold(rule.when, measured))
    chosen: StageFacts | None = getattr(measured, rule.chooses)
    ranked = sorted(measured.stages, key=lambda stage: (stage is not chosen, *_by_use(stage)))
    facts = replace(measured, first=ranked[0])
    doubt_codes = list(codes(DOUBTS, facts, rule.code))
    if "holds_lock" in doubt_codes:
        ranked.sort(key=lambda stage: (stage is not facts.first, stage is not facts.lock_holder))
    return Decision(
        rep=rows[0].rep,
        rank=rows[0].rank,
        verdict=next(codes(VERDICTS, facts, rule.code)),
        rule=rule,
        facts=facts,
        stages=tuple(ranked),
        kinds=tuple(_kind(stage, rule, facts) for stage in ranked),
        doubts=tuple({"code": code, **_numbers(code, facts, rule)} for code in doubt_codes),
    )


def decisions(
    loads: Sequence[JudgedStage], waits: Sequence[DataWait], machine_cores: float, *, alone: bool = True
) -> list[Decision]:
    """One decision for each repetition, on its rank that waits most: every rank waits for the slowest one.

    `loads`: of one pipeline for each rank. Ranks of which only warm-up was seen, and pipelines without batches, are
    left out.
    """
    warmup_only = {(row.rep, row.rank) for row in waits if row.kind != "train"}
    groups: dict[tuple[int, int], list[JudgedStage]] = {}
    for row in loads:
        key = (row.rep, row.rank)
        if key not in warmup_only and row.wait_share is not None:
            groups.setdefault(key, []).append(row)
    worst: dict[int, tuple[float, list[JudgedStage]]] = {}
    for (rep, _), rows in groups.items():
        share = rows[0].wait_share or 0.0
        if rep not in worst or share > worst[rep][0]:
            worst[rep] = share, rows
    return [decide(rows, machine_cores, alone=alone) for _, rows in worst.values()]


def with_kinds(loads: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of diagnose/load, each with the `kind` of its stage by itself."""
    return [{**row, "kind": StageFacts.of(SimpleNamespace(**row)).kind} for row in loads]


def with_stages(sinks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of diagnose/sink, each with the `stage` that is late: data_processing | data_transmission | None."""
    return [{**row, "stage": next(codes(SINK_STAGES, SimpleNamespace(**row)), None)} for row in sinks]


def _by_use(stage: StageFacts) -> tuple[bool, float, int]:
    """Ascending: the stage that is used most, then those of which nothing is known."""
    return stage.use is None, -(stage.use or 0.0), stage.op_id


def _kind(stage: StageFacts, rule: Rule, facts: Facts) -> str | None:
    """The kind of a stage, given which rule named the first one and what else ran on the machine."""
    if stage is facts.first and rule.kind is not None:
        return rule.kind
    if stage.kind == "cpu" and all_hold(SATURATED, facts):
        return "host_saturated"
    if stage.kind is None and stage is facts.first and rule.code == "untimed":
        return next(codes(UNTIMED_KINDS, stage), None)
    return stage.kind


_NUMBERS: dict[str, Callable[[Facts], dict[str, Any]]] = {
    "not_busy": lambda facts: {"op": named(facts.first), "utilisation": facts.first_utilisation},
    "close": lambda facts: {
        "op": named(facts.runner_up),
        "utilisation": facts.runner_up and facts.runner_up.utilisation,
        "named_utilisation": facts.first_utilisation,
    },
    "queues_elsewhere": lambda facts: {"op": named(facts.drop_stage)},
    "few_batches": lambda facts: {"batches": facts.batches},
    "prefilled": lambda facts: {"op": named(facts.first), "times": facts.over_capacity},
    "overrun": lambda facts: {"op": named(facts.first), "times": facts.overrun},
    "holds_lock": lambda facts: {"share": facts.gil_share},
    "untimed_cpu": lambda facts: {"op": named(facts.untimed_worker), "cores": facts.untimed_cores},
    "shares_cpu": lambda facts: {"op": named(facts.first), "share": facts.pipeline_share, "times": facts.freed},
    "other_load": lambda facts: {"other_cores": facts.others_share * facts.cores, "cores": facts.cores},
    "indirect": lambda facts: {"op": named(facts.first)},
}


def _numbers(code: str, facts: Facts, rule: Rule) -> dict[str, Any]:
    """Numbers that the sentence about a doubt needs."""
    numbers = _NUMBERS[code](facts) if code in _NUMBERS else {}
    return numbers | {"rule": rule.code} if code == "indirect" else numbers


def named(stage: StageFacts | None) -> dict[str, Any] | None:
    """A stage by its number, type and name."""
    return {"op_id": stage.op_id, "op_type": stage.op_type, "name": stage.name} if stage else None
