"""Why the step takes longer or shorter than it did: phases, pipeline stages, operators, structure. Pure.

Secondary metrics say where a change of the step time went; each counts when its own test says so, or when it holds a
large part of a step time that changed, or, unproven, moved by a tenth. Facts are texts that are compared exactly.

Families of GPU kernels: names without what another library version or tile size changes. Pure.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeprof.verdict.gate import causes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.verdict.gate.result import Verdict

    Fact = Mapping[str, Any]


LARGE = 0.10  # of the change of the step time: worth a line even when it is not proven by itself
SIGNS = {"regressed", "improved"}
# Phases that add up to a step. Outside the windows in which operators are recorded the backward pass has no end that is
# known, so that a run may have both of the first two.
STEPS = (("data_wait", "compute"), ("data_wait", "forward_backward", "tail"), ("whole",))
ORDER = ("structure", "pipeline_op", "operator", "phase")  # of equal weight the one that says more goes first


@dataclass(frozen=True)
class Level:
    """A metric on both sides, None where it was not measured; `proven`: its own test says that it changed."""

    base: float | None
    new: float | None
    proven: bool = False

    @property
    def delta(self) -> float:
        """New - base; a side that lacks it spent nothing on it."""
        return (self.new or 0.0) - (self.base or 0.0)

    @property
    def ratio(self) -> float | None:
        """New / base; None when one is missing or 0."""
        return self.new / self.base if self.base and self.new is not None else None

    @property
    def moved(self) -> bool:
        """Whether it came, went or changed by a tenth."""
        ratio = self.ratio
        return ratio is None or abs(ratio - 1) >= LARGE


def explanation(verdict: Verdict, appeared: Mapping[str, float], facts: Sequence[Fact]) -> list[dict[str, Any]]:
    """What changed: the most telling line, then the others by the part of the step's change that they hold.

    `appeared`: levels of metrics that only new has; `facts`: rows of compare/fact_change. `share` is of the change of
    the mean step time, negative when the part went the other way; None when the step time hardly changed, and for
    stages of the pipeline, which work beside the training.
    """
    levels = {one.name: Level(one.base, one.new, one.verdict in SIGNS) for one in verdict.metrics}
    levels |= {name: Level(None, level) for name, level in appeared.items()}
    total, base = sum_of_phases(levels, "delta"), sum_of_phases(levels, "base")
    far = total is not None and base is not None and base > 0 and abs(total) >= LARGE * base
    changed = any(one.verdict in SIGNS for one in verdict.metrics if one.name in causes.OF_STEPS)
    step = Step(levels, total, changed=changed or far)
    entries = [*_structure(step, facts), *_phases(step), *_stages(step), *_operators(step)]
    entries.sort(key=step.position)
    entries += _instructions(levels)
    lead = causes.lead(verdict)
    grew = lead is None or lead.ratio is None or lead.ratio > 1
    if lead is not None and lead.name == causes.INSTRUCTIONS:
        cause = causes.stated_cause(lead.verdict, lead.name, lead.ratio, entries)
    else:
        cause = causes.cause(entries, grew=grew)
    return [cause, *(entry for entry in entries if entry is not cause)] if cause else entries


@dataclass(frozen=True)
class Step:
    """The metrics of both sides and the change of the mean step time, ns; None when the sides have no phases."""

    levels: Mapping[str, Level]
    total: float | None
    changed: bool

    def share(self, level: Level) -> float | None:
        """Part of the change of the step time that a metric holds."""
        return level.delta / self.total if self.total else None

    @property
    def waits(self) -> Level:
        """Levels of the data wait."""
        return self.levels.get("phase/data_wait", Level(None, None))

    @property
    def by_data(self) -> float:
        """Part of the change that the wait for data holds, 0 at least: what stages of the pipeline can account for."""
        return max(self.share(self.waits) or 0.0, 0.0) if None not in (self.waits.base, self.waits.new) else 0.0

    def counts(self, level: Level, share: float | None) -> bool:
        """Whether a metric is worth a line."""
        return level.proven or (self.changed and share is not None and share >= LARGE and level.moved)

    def counts_beside(self, stage: Level) -> bool:
        """The same for a stage of the pipeline: its work moved as the data wait did, and by a good part of it."""
        wait = self.waits.delta
        enough = stage.moved and stage.delta * wait > 0 and abs(stage.delta) >= LARGE * abs(wait)
        return stage.proven or (self.changed and self.by_data >= LARGE and enough)

    def position(self, entry: Mapping[str, Any]) -> tuple[float, int, float, str]:
        """Where an entry stands: by its share; stages by that of the data wait, which they can cause."""
        stage = entry["kind"] == "pipeline_op" or entry["name"].startswith("stage ")
        weight = abs(entry["share"] or 0.0) if entry["share"] is not None or not stage else self.by_data
        delta = 0.0 if entry["kind"] == "structure" else abs((entry["new"] or 0.0) - (entry["base"] or 0.0))
        return -weight, ORDER.index(entry["kind"]), -delta, entry["name"]


def sum_of_phases(levels: Mapping[str, Level], column: str) -> float | None:
    """Over the first of the sets of phases that both sides have whole: a step is made up of each in another way."""
    for phases in STEPS:
        rows = [levels.get(f"phase/{phase}") for phase in phases]
        if all(row is not None and None not in (row.base, row.new) for row in rows):
            return math.fsum(getattr(row, column) for row in rows)
    return None


def _phases(step: Step) -> list[dict[str, Any]]:
    entries = []
    for name, level in _named(step.levels, "phase/"):
        if level.ratio is not None and name != "whole" and step.counts(level, step.share(level)):
            entries.append(causes.phase(name, level, step.share(level)))
    return entries


def _stages(step: Step) -> list[dict[str, Any]]:
    """Stages work beside the training, unless their time is the wait itself."""
    entries = []
    for name, level in _named(step.levels, "pipeline/"):
        beside = (level.base, level.new) != (step.waits.base, step.waits.new)
        share = None if beside else step.share(level)
        if level.ratio is not None and (step.counts_beside(level) if beside else step.counts(level, share)):
            entries.append(causes.stage(name, level, share, beside=beside))
    return entries


def _instructions(levels: Mapping[str, Level]) -> list[dict[str, Any]]:
    """Stages whose Python executes more or less for a row."""
    found = [pair for pair in _named(levels, f"{causes.INSTRUCTIONS}/") if pair[1].proven and pair[1].ratio is not None]
    return [causes.counted(*pair) for pair in sorted(found, key=lambda pair: (-abs(pair[1].delta), pair[0]))]


def _operators(step: Step) -> list[dict[str, Any]]:
    """Operators, GPU kernels by family: which of them runs depends on the version and on the size of the tiles."""
    families: dict[str, list[str]] = {}
    for name, _ in _named(step.levels, "op/"):
        families.setdefault(family(name), []).append(name)
    entries = []
    for kernels, names in families.items():
        level = _together([step.levels[f"op/{name}"] for name in names])
        share = step.share(level)
        if (len(names) > 1 or level.ratio is not None) and step.counts(level, share):
            counted = [step.levels.get(f"count/{name}") for name in names]
            runs = None if None in counted else _together([count for count in counted if count])
            entries.append(causes.operator(kernels, names, level, share, runs))
    return entries


def _structure(step: Step, facts: Sequence[Fact]) -> list[dict[str, Any]]:
    """What came, went or became another one. The time of a kernel whose family has several is in the family's line."""
    members = Counter(family(name) for name, _ in _named(step.levels, "op/"))
    entries = []
    for row in facts:
        kind, _, name = row["name"].partition(" ")
        if kind != "op":
            entries.append(causes.structure(row, name, None, None))
            continue
        kernels, level = family(name), step.levels.get(f"op/{name}")
        several = row["change"] != "changed" and members[kernels] > 1
        share = step.share(level) if level is not None and not several else None
        entries.append(causes.structure(row, kernels, level, share) | ({"family": kernels} if several else {}))
    return entries


def _together(levels: Sequence[Level]) -> Level:
    """The sum; a side that has none of them is missing. Proven when one of them is and went the same way."""
    base, new = (_sum(values) for values in ([one.base for one in levels], [one.new for one in levels]))
    delta = (new or 0.0) - (base or 0.0)
    return Level(base, new, any(one.proven and one.delta * delta > 0 for one in levels))


def _sum(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return math.fsum(there) if there else None


def _named(levels: Mapping[str, Level], prefix: str) -> list[tuple[str, Level]]:
    return [(name.removeprefix(prefix), level) for name, level in levels.items() if name.startswith(prefix)]


# Wrappers whose argument says what is computed, not the wrapper.
_WRAPPED = re.compile(r"^(?:void )?cutlass(?:__\w+__)?::(?:Kernel\w*|device_kernel)<(?P<inner>[\w:]+)")
_NCCL = re.compile(r"^nccl(?:Dev)?Kernel_(?P<what>[A-Za-z]+?)_")
_MEM = re.compile(r"^(?P<what>Mem(?:cpy \w+|set))\b")
_TRITON = re.compile(r"^(?P<what>triton_.*?)_\d+\w*$")
# `_64x64_32x6_tn_align4`, `_tilesize128x64x32_stage3`, `_128x64_nn`: from the first tile on; else a hash at the end.
_TILE = re.compile(r"_(?:tilesize)?\d+x\d+.*$")
_HASH = re.compile(r"_(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}(?:_\d+)?$")
_ARCH = re.compile(r"^cutlass_\d+_")
_LAMBDA = re.compile(r"\{lambda.*$")
_GEMM = re.compile(r"^(?P<what>.*?gemm)(?:_[a-z]+\d+[a-z0-9]*)*(?:_[tn]{1,2}){0,3}$")


def family(name: str) -> str:
    """The family of an operator's name; the name itself of all that is no GPU kernel or copy.

    Template and call arguments, tile sizes, layouts and hashes are left out: `void f<4, g<float> >(int)` is `f`,
    `ampere_sgemm_128x64_nn` is `ampere_sgemm`, `Memcpy DtoD (Device -> Device)` is `Memcpy DtoD`.
    """
    for pattern, words in ((_NCCL, "nccl {}"), (_MEM, "{}"), (_TRITON, "{}")):
        if match := pattern.match(name):
            return words.format(match["what"])
    wrapped = _WRAPPED.match(name)
    if wrapped:
        return _untiled(wrapped["inner"])
    if _is_function(name):
        return _function(name)
    return _untiled(name) if "/" not in name and "::" not in name else name


def _is_function(name: str) -> bool:
    """Whether it reads as a C++ signature: with a return type or arguments. `aten::add` and scopes do not."""
    return name.startswith("void ") or (name.endswith(")") and "(" in name and "::" in name)


def _function(name: str) -> str:
    """The function's name: without return type, namespaces, template and call arguments."""
    text = name.removeprefix("void ").replace("(anonymous namespace)::", "").replace("<unnamed>::", "")
    depth, signs = 0, []
    for sign in text:
        if sign == "(" and depth == 0:
            break
        depth += (sign == "<") - (sign == ">" and depth > 0)
        if depth == 0 and sign != ">":
            signs.append(sign)
    return _LAMBDA.sub("", "".join(signs)).strip().rpartition("::")[2] or name


def _untiled(name: str) -> str:
    text = _ARCH.sub("cutlass_", _HASH.sub("", _TILE.sub("", name)))
    match = _GEMM.match(text)
    return (match["what"] if match else text) or name
