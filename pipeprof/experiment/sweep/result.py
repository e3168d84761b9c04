"""The result of a sweep as plain data, from the session alone: what `sweep.json` holds and every format shows."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pipeprof.collect.probe.redact import without_secrets
from pipeprof.experiment.sweep.spec import BASE
from pipeprof.report.words.experiments import noted, reasoned
from pipeprof.verdict.gate.result import note
from pipeprof.verdict.sweep import RULES, STAGES, Estimate, Judged, apart, estimate, judge_stage, shared_rounds
from pipeprof.verdict.sweep_choice import OBJECTIVES, break_even, chosen, cost, difference, pareto

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipeprof.experiment.sweep.plan import Phase, Variant
    from pipeprof.experiment.sweep.session import SweepSession
    from pipeprof.experiment.sweep.spec import Spec
    from pipeprof.verdict.gate.result import Note

    Series = Mapping[int, float]
    Row = Mapping[str, Any]

SCHEMA_VERSION = 1


def phase_words(spec: Spec, phase: Phase, session: SweepSession, rounds: int | None = None) -> dict[str, str]:
    """Name -> verdict on the stage that is judged, from the first `rounds` rounds."""
    series = {arm.name: _series(session, phase, arm, spec.judge, rounds) for arm in phase.arms}
    return {name: one.word for name, one in _judge(spec, phase, spec.judge, series).items()}


def content_of(
    spec: Spec, phases: Sequence[Phase], session: SweepSession, command: Sequence[str], steps: int | None,
    more: Sequence[Note] = (),
) -> dict[str, Any]:  # fmt: skip
    """The whole result; docs/sweep.md says what each member means. `more`: codes to be noted besides."""
    tables = [_table(spec, phase, session, steps) for phase in phases]
    content: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "kind": "measured",
        "title": spec.title,
        "search": spec.search,
        "judge": spec.judge,
        "steps": steps,
        "command": without_secrets(command),
        "tables": tables,
        "recommendation": _recommendation(spec, phases, session, tables, steps),
        "session": {
            "session_id": session.session_id,
            "stopped": session.stopped,
            "seed": session.seed,
            "starts": session.starts,
            "seconds": session.spent,
            "runs": len(session.repetitions),
            "order": [entry.variant for entry in session.repetitions],
        },
        **noted([*_notes(session), *more, *cost_notes(tables, steps)]),
    }
    return content


def cost_notes(tables: Sequence[Mapping[str, Any]], steps: int | None) -> list[Note]:
    """Why no row can be the best for a number of steps, as a code; nothing where one can, or nothing was measured."""
    stages = [row["stages"] for table in tables for row in table["rows"] if row["stages"]]
    return (
        [note("no_cost", steps=steps)] if steps is not None and stages and not any("cost" in s for s in stages) else []
    )


def _table(spec: Spec, phase: Phase, session: SweepSession, steps: int | None) -> dict[str, Any]:
    stages = {stage: {arm.name: _series(session, phase, arm, stage) for arm in phase.arms} for stage in STAGES}
    if steps is not None:
        stages["cost"] = {
            name: {
                at: cost(series[at], stages["steady"][name][at], steps) for at in series if at in stages["steady"][name]
            }
            for name, series in stages["setup"].items()
        }
    stages = {stage: series for stage, series in stages.items() if any(series.values())}
    judged = {stage: _judge(spec, phase, stage, series) for stage, series in stages.items()}
    rows = [_row(spec, phase, session, arm, stages, judged) for arm in phase.arms]
    objectives = {
        row["name"]: {name: row["stages"][name]["value"] for name in OBJECTIVES if name in row["stages"]}
        for row in rows
        if row["verdict"] != "failed" and row["stages"]
    }
    best = pareto(objectives, {name: spec.rule(name).min_effect for name in OBJECTIVES})
    for row in rows:
        row["pareto"] = row["name"] in best
    by = "cost" if steps is not None else spec.judge
    chosen_row = best_row(
        rows, by, steps, lambda one, other: apart(*shared_rounds(stages[by][one["name"]], stages[by][other["name"]]))
    )
    return {
        "name": phase.name,
        "reference": phase.reference.name,
        "alpha": phase.alpha,
        "family": phase.family,
        "looks": list(spec.looks),
        "noise": None,
        "rows": rows,
        "pareto": best,
        "best": chosen_row and {"name": chosen_row[0]["name"], **chosen_row[1]},
        "notes": [],
    }


def _row(
    spec: Spec, phase: Phase, session: SweepSession, arm: Variant, stages: Mapping[str, Mapping[str, Series]],
    judged: Mapping[str, Mapping[str, Judged]],
) -> dict[str, Any]:  # fmt: skip
    name, reference = arm.name, phase.reference.name
    failures = [text for number in range(phase.number + 1) for text in session.failed(number, name)]
    shown = {}
    for stage, series in stages.items():
        estimated = estimate(list(series[name].values()))
        if estimated is not None:
            shown[stage] = stage_facts(stage, estimated, None if name == reference else judged[stage][name])
    word = judged.get(spec.judge, {}).get(name, Judged("not measured")).word
    if name == reference:
        word = "base"
    elif failures:
        word = "failed"
    return {
        "key": f"{phase.number}/{name}",
        "name": name,
        "verdict": word,
        "options": arm.facts(),
        "stages": shown,
        "break_even": None if name == reference else _break_even(stages, judged, reference, name),
        "pareto": False,
        "failures": failures,
        "prepare_s": session.prepared.get(name),
    }


def stage_facts(stage: str, estimated: Estimate, judged: Judged | None) -> dict[str, Any]:
    """What a row says of a stage; `judged` None: it is the base's."""
    facts = asdict(estimated) | {"unit": RULES[stage].unit, "direction": RULES[stage].direction}
    if judged is None:
        return facts | {"verdict": "base"}
    return facts | {
        "verdict": judged.word, "ratio": judged.ratio, "ratio_low": judged.low, "ratio_high": judged.high,
        "p_value": judged.p_value, "alpha": judged.alpha, "look": judged.look,
    }  # fmt: skip


def _break_even(
    stages: Mapping[str, Mapping[str, Series]], judged: Mapping[str, Mapping[str, Judged]], base: str, name: str
) -> dict[str, Any]:
    sides = {
        stage: shared_rounds(stages[stage][base], stages[stage][name]) if stage in stages else ([], [])
        for stage in ("setup", "steady")
    }
    word = judged["steady"][name].word if "steady" in judged else "not measured"
    return asdict(break_even(difference(*sides["setup"]), difference(*sides["steady"]), word))


def best_row(
    rows: Sequence[Row], by: str, steps: int | None, are_apart: Callable[[Row, Row], bool]
) -> tuple[Row, dict[str, Any]] | None:
    """The row to take, and what is said of it, with the rows that cannot be told apart from it."""
    measured = {row["key"]: row for row in rows if by in row["stages"] and row["verdict"] != "failed"}
    base = next((key for key, row in measured.items() if row["verdict"] == "base"), None)
    if base is None:
        return None
    stages = {key: row["stages"][by] for key, row in measured.items()}
    sign = -1 if RULES[by].direction == "higher" else 1
    words = {key: stage["verdict"] for key, stage in stages.items()}
    key = chosen({key: sign * stage["value"] for key, stage in stages.items()}, words, base)
    row = measured[key]
    return row, {
        "by": by, "steps": steps, "value": stages[key]["value"], "unit": stages[key]["unit"], "options": row["options"],
        "not_told_apart": [one["name"] for other, one in measured.items() if other != key and not are_apart(row, one)],
    }  # fmt: skip


def _recommendation(
    spec: Spec, phases: Sequence[Phase], session: SweepSession, tables: Sequence[Mapping[str, Any]], steps: int | None
) -> dict[str, Any] | None:
    """What to take. Of a greedy search only what its last phase confirmed; the base otherwise."""
    if not tables or tables[0]["best"] is None:
        return None
    last = tables[-1]
    confirmed = spec.search != "greedy" or phases[-1].number == 2
    if confirmed and last["best"] is not None and last["best"]["name"] != BASE:
        return dict(last["best"]) | reasoned(note("confirmed") if spec.search == "greedy" else None)
    reason = note("none_better")
    if spec.search == "greedy" and any(table["best"] and table["best"]["name"] != BASE for table in tables):
        reason = note("not_better_again" if confirmed and session.stopped == "decided" else "not_confirmed")
    same = last["best"]["not_told_apart"] if last["best"] and last["best"]["name"] == BASE else []
    return {
        "name": BASE, "by": "cost" if steps is not None else spec.judge, "steps": steps, "value": None, "unit": "",
        "options": {}, "not_told_apart": same, **reasoned(reason),
    }  # fmt: skip


def _judge(spec: Spec, phase: Phase, stage: str, series: Mapping[str, Series]) -> dict[str, Judged]:
    others = {arm.name: series[arm.name] for arm in phase.arms[1:]}
    return judge_stage(series[phase.reference.name], others, spec.rule(stage), spec.looks, phase.alpha, phase.family)


def _series(
    session: SweepSession, phase: Phase, arm: Variant, stage: str, rounds: int | None = None
) -> dict[int, float]:
    series = session.series(phase.number, arm.name, stage)
    return {at: value for at, value in series.items() if rounds is None or at < rounds}


def _notes(session: SweepSession) -> list[Note]:
    failed = [entry for entry in session.repetitions if entry.state == "failed"]
    notes = [note("variant_failed", variant=entry.variant, run=entry.name, error=entry.error) for entry in failed]
    notes += [note("variant_prepared", variant=name, seconds=took) for name, took in session.prepared.items()]
    if session.starts > 1:
        notes.append(note("sweep_continued", times=session.starts - 1))
    return notes
