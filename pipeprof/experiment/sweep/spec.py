"""The file of a sweep: which option sets are tried on which command, and how it is measured. Strict TOML."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from pipeprof.errors import BAD_PATTERN, UsageError
from pipeprof.record import document
from pipeprof.record.document import BAD_JSON
from pipeprof.record.plain_file import read_file
from pipeprof.units import seconds_from_text
from pipeprof.verdict.gate import MOST_ROUNDS
from pipeprof.verdict.sweep import RULES, STAGES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipeprof.verdict.gate.policy import Rule

BASE = "base"
MOST_VARIANTS = 200
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MOST_BYTES = 1 << 20
HINT = "see docs/sweep.md for the keys and their meaning"


class DatasetChange(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """Settings of one dataset operator, found as the `nth` of its type (`Map`, `Batch`, `Generator`) in pre-order."""

    op: str
    nth: int = 1
    workers: int | None = None
    prefetch: int | None = None
    processes: bool | None = None


class Context(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """MindSpore's context, whatever the script sets: execution mode, jit level, threads of the runtime and OpenMP."""

    mode: Literal["graph", "pynative"] | None = None
    jit_level: Literal["O0", "O1", "O2"] | None = None
    threads: int | None = None


class Options(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """An option set: variables, words put after the command, and what is changed through the hook.

    `prepare`: commands that run once, before the first repetition. `command`: in place of the sweep's own.
    """

    prepare: tuple[tuple[str, ...], ...] = ()
    command: tuple[str, ...] = ()
    env: dict[str, str | int | float] = {}
    args: tuple[str, ...] = ()
    dataset: DatasetChange | None = None
    context: Context | None = None


class Named(Options, kw_only=True, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """An option set with a name."""

    name: str


class Axis(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, frozen=True):
    """One dimension of a grid; leaving it as it is, is always one of its values."""

    option: tuple[Named, ...]


class Capture(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, frozen=True):
    """How one stage is read from what a command says: the first group of `pattern` is a number in `unit`."""

    pattern: str
    unit: str = "ms"
    take: Literal["first", "last", "median", "mean", "min", "max", "sum"] = "median"


class Judge(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, frozen=True):
    """What counts for one stage, over the defaults: relative change, absolute change (`floor`, in ns, bytes or 1/s)."""

    min_effect: float | None = None
    margin: float | None = None
    floor: float | None = None


class Spec(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, frozen=True):
    """A whole sweep. `judge`: the stage that decides about better and worse, and when enough was measured."""

    command: tuple[str, ...] = ()
    title: str = ""
    search: Literal["list", "grid", "greedy"] = "list"
    measure: Literal["run", "load_and_run", "regex"] = "run"
    judge: str = "steady"
    looks: tuple[int, ...] = (5, 8, 12)
    alpha: float = 0.01
    budget: str | float | None = None
    timeout: str | float | None = None
    discard: Literal["none", "base", "all"] = "base"
    seed: int | None = None
    base: Options = Options()
    variant: tuple[Named, ...] = ()
    axis: tuple[Axis, ...] = ()
    addition: tuple[Named, ...] = ()
    stages: dict[str, Capture] = {}
    rules: dict[str, Judge] = {}

    def rule(self, stage: str) -> Rule:
        """What counts as a change of a stage."""
        given = self.rules.get(stage, Judge())
        changes = {name: value for name, value in msgspec.structs.asdict(given).items() if value is not None}
        return msgspec.structs.replace(RULES[stage], **changes)


def load_spec(path: Path) -> Spec:
    """The sweep in a file. Raises UsageError that names the file and the key for what is no TOML, unknown or wrong."""
    try:
        content = document.decode(read_file(path, MOST_BYTES))
    except OSError as error:
        raise UsageError(f"cannot read the sweep `{path}`: {error.strerror}", "give a TOML file") from error
    except BAD_JSON as error:
        raise UsageError(f"`{path}` is not TOML: {error}", "see docs/sweep.md for an example") from error
    return read_spec(content, f"`{path}`")


def read_spec(content: Mapping[str, Any], where: str) -> Spec:
    """A sweep from a parsed table. Raises UsageError that names `where` and the key."""
    try:
        spec = msgspec.convert(content, Spec, strict=True)
    except msgspec.ValidationError as error:
        raise UsageError(f"sweep in {where}: {error}", HINT) from error
    for wrong, text in (*_numbers(spec), *_rules(spec), *_names(spec), *_options(spec)):
        if wrong:
            raise UsageError(f"sweep in {where}: {text}", HINT)
    for name in ("budget", "timeout"):
        seconds_of(getattr(spec, name), f"`{name}` in {where}")
    return spec


def seconds_of(value: str | float | None, where: str) -> float | None:
    """Seconds above 0 of a number, `90s`, `10m` or `1h30m`; None: no limit. Raises UsageError for what is no time."""
    if value is None:
        return None
    seconds = seconds_from_text(str(value))
    if seconds is None:
        raise UsageError(f'{where} is `{value}`: expected seconds, or for example "10m" or "1h30m"', HINT)
    return seconds


def _numbers(spec: Spec) -> list[tuple[bool, str]]:
    looks = list(spec.looks)
    return [
        (not looks or looks != sorted(set(looks)) or looks[0] < 3, "`looks` must be growing numbers, from 3 on"),
        (max(looks, default=0) > MOST_ROUNDS, f"`looks` has {max(looks, default=0)}, expected at most {MOST_ROUNDS}"),
        (not 0 < spec.alpha <= 0.2, f"`alpha` is {spec.alpha}, expected more than 0 and at most 0.2"),
        (spec.judge not in STAGES, f"`judge` is `{spec.judge}`, expected one of {', '.join(STAGES)}"),
        (any(name not in STAGES for name in spec.stages), f"`stages` may hold {', '.join(STAGES)}"),
        (any(name not in RULES for name in spec.rules), f"`rules` may hold {', '.join(RULES)}"),
        (spec.measure == "regex" and spec.judge not in _readable(spec), f"there is no table `[stages.{spec.judge}]`"),
        (spec.measure != "regex" and bool(spec.stages), '`stages` is for measure = "regex"'),
    ]


def _readable(spec: Spec) -> set[str]:
    """Stages that a command under `regex` can be judged by: those with a pattern, those known without, what follows."""
    stages = {*spec.stages, "total", "peak_memory"}
    stages |= {"setup"} if {"configure", "warmup_first"} <= stages else set()
    return stages | ({"throughput"} if "steady" in stages else set())


def _rules(spec: Spec) -> list[tuple[bool, str]]:
    checks = []
    for name, judge in spec.rules.items():
        for key, value in msgspec.structs.asdict(judge).items():
            wrong = value is not None and not 0 <= value < math.inf
            checks.append((wrong, f"`{key}` of `rules.{name}` is {value}, expected 0 or more"))
    return checks


def _names(spec: Spec) -> list[tuple[bool, str]]:
    given = [one.name for one in (*spec.variant, *spec.addition)]
    double = next((name for name in given if given.count(name) > 1), "")
    axes = [[one.name for one in axis.option] for axis in spec.axis]
    every = [*given, *(name for names in axes for name in names)]
    size = 1
    for options in axes:
        size *= len(options) + 1
    grid, greedy = spec.search == "grid", spec.search == "greedy"
    return [
        (any(name.strip() in ("", BASE) for name in every), f"a variant needs a name, other than `{BASE}`"),
        (not all(name.isprintable() for name in every), "a name must be one line of printable characters"),
        (bool(double), f"two variants have the name `{double}`"),
        (any(len(set(names)) < len(names) for names in axes), "two options of an axis have the same name"),
        (not grid and bool(spec.axis), '`axis` is for search = "grid"'),
        (grid and not any(axes), 'search = "grid" needs `[[axis]]` with `[[axis.option]]`'),
        (not grid and not spec.variant, "there is no `[[variant]]`"),
        (grid and bool(spec.variant), 'search = "grid" takes `[[axis]]`, not `[[variant]]`'),
        (not greedy and bool(spec.addition), '`addition` is for search = "greedy"'),
        (max(size, len(given)) > MOST_VARIANTS, f"{max(size, len(given))} variants, at most {MOST_VARIANTS}"),
    ]


def _options(spec: Spec) -> list[tuple[bool, str]]:
    named = [*spec.variant, *spec.addition, *(one for axis in spec.axis for one in axis.option)]
    every: list[Options] = [spec.base, *named]
    wrong = [name for one in every for name in one.env if not _NAME.fullmatch(name)]
    commands = [command for one in every for command in (*one.prepare, one.command)]
    words = [str(word) for one in every for word in (*one.args, *one.env.values())] + [w for c in commands for w in c]
    empty = [one.name for one in named if msgspec.structs.replace(one, name="") == Named(name="")]
    changes = [one.dataset for one in every if one.dataset]
    hooked = any(one.dataset or one.context for one in every)
    bare = [
        change.op for change in changes if (change.workers, change.prefetch, change.processes) == (None, None, None)
    ]
    numbers = [n for change in changes for n in (change.nth, change.workers, change.prefetch) if n is not None]
    numbers += [one.context.threads for one in every if one.context and one.context.threads is not None]
    return [
        (bool(wrong), f"`{(wrong or [''])[0]}` is not the name of an environment variable"),
        (any("\0" in word for word in words), "an argument or a variable holds a zero byte"),
        (any(not command for one in every for command in one.prepare), "a command of `prepare` has no words"),
        (bool(empty), f"the option set `{(empty or [''])[0]}` changes nothing"),
        (any(not change.op.isidentifier() for change in changes), "`op` must be a type of dataset operator, as Map"),
        (bool(bare), f"the change of `{(bare or [''])[0]}` sets none of workers, prefetch, processes"),
        (any(number < 1 for number in numbers), "nth, workers, prefetch and threads must be 1 or more"),
        (hooked and spec.measure != "run", '`dataset` and `context` need measure = "run": they are for MindSpore'),
        *_patterns(spec),
    ]


def _patterns(spec: Spec) -> list[tuple[bool, str]]:
    checks = []
    for name, capture in spec.stages.items():
        units = units_of(name)
        checks.append(
            (capture.unit not in units, f"`unit` of `{name}` is `{capture.unit}`, expected {', '.join(units)}")
        )
        try:
            groups = re.compile(capture.pattern).groups
        except BAD_PATTERN as error:
            checks.append((True, f"`pattern` of `{name}` is not a regular expression: {error}"))
        else:
            checks.append((groups < 1, f"`pattern` of `{name}` has no group for the number, as in `time: ([0-9.]+)`"))
    return checks


def units_of(stage: str) -> dict[str, float]:
    """Units that a stage may be read in, each with its factor to the stage's own."""
    times = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
    sizes = {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
    return {"1/s": 1.0} if stage == "throughput" else sizes if stage == "peak_memory" else times
