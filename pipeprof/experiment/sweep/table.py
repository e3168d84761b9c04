"""Published tables of option sets as the result of a sweep without repetitions: noise comes from repeated baselines.

Tables of load_and_run's options and what they cost, as CSV: one row per variant, variants grouped into tables.

Columns: table_id, row_in_table, variant, options, is_baseline, configure_ms, warmup_first_ms, warmup_second_ms,
inference_ms, and others that stay text. A warm-up cell may hold both steps, `30.1/410.1`; `----` is a step that was not
made. A row is named by its table and its number there: a table may have the same variant twice. Numbers compare within
a table only; two tables may be of two machines.
"""

from __future__ import annotations

import csv
import io
import math
import shlex
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pipeprof.errors import MeasureError, SourceError
from pipeprof.experiment.sweep.result import SCHEMA_VERSION, best_row, cost_notes, stage_facts
from pipeprof.record.plain_file import open_file
from pipeprof.report.words.experiments import noted, reasoned
from pipeprof.verdict.gate.result import note
from pipeprof.verdict.sweep import RULES, Estimate, Judged, beyond_noise
from pipeprof.verdict.sweep_choice import OBJECTIVES, Difference, break_even, cost, pareto

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path


# Columns that say something about a row and nothing about what was measured; every other one is a setting.
_REMARKS = frozenset([
    "table_no", "seed_line", "variant_raw", "marked_columns", "inference_speedup_vs_baseline", "note",
])  # fmt: skip


def table_content(path: Path, steps: int | None = None) -> dict[str, Any]:
    """The tables of a CSV file as a result; every row is compared within its own table, ratios are row / baseline.

    Raises SourceError for a file that is none, MeasureError when a table has not exactly one baseline with a time.
    """
    tables: dict[str, list[Variant]] = {}
    for variant in read_option_table(path):
        tables.setdefault(variant.table, []).append(variant)
    if not tables:
        raise MeasureError(f"there is no row in `{path}`", "expected a table of option sets")
    bases = {name: _base_of(name, rows, path) for name, rows in tables.items()}
    noise = noise_of(bases.values())
    shown = [_table(name, rows, bases[name], noise[name], steps) for name, rows in tables.items()]
    one = shown[0]["best"] if len(shown) == 1 else None
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "table",
        "title": path.name,
        "search": "list",
        "judge": "steady",
        "steps": steps,
        "command": [],
        "tables": shown,
        "recommendation": one and one | reasoned(note("measured_once")),
        "session": None,
        **noted([note("no_repetitions"), *cost_notes(shown, steps)]),
    }


def _base_of(name: str, rows: Sequence[Variant], path: Path) -> Variant:
    bases = [row for row in rows if row.is_baseline and row.times.get("steady")]
    if len(bases) != 1:
        raise MeasureError(
            f"the table `{name}` in `{path}` has {len(bases)} baselines with a time, expected one",
            "mark one row of each table in the column is_baseline",
        )
    return bases[0]


def noise_of(bases: Iterable[Variant]) -> dict[str, tuple[float, str]]:
    """Table -> relative noise of its steady time and where that is from.

    The largest over the smallest of the baselines that repeat each other, less 1: those that agree in every setting,
    their own options included. Another model is no repetition. A baseline that nothing repeats takes the largest such
    spread of its kind of device, else of all; without any only rounding is known.
    """
    groups: dict[tuple[tuple[str, str], ...], list[Variant]] = {}
    for base in bases:
        groups.setdefault(_settings(base), []).append(base)
    spread = {key: _spread(rows) for key, rows in groups.items() if len(rows) > 1}
    by_table = {}
    for key, rows in groups.items():
        kind = dict(key).get("device")
        device = [value for other, value in spread.items() if kind and dict(other).get("device") == kind]
        if key in spread:
            noise, why = spread[key], f"spread of {len(rows)} baselines of {_about(rows[0])}"
        elif device:
            noise, why = max(device), "not repeated here: largest spread of repeated baselines of this kind of device"
        elif spread:
            noise, why = max(spread.values()), "not repeated here: largest spread of all repeated baselines"
        else:
            noise, why = 0.0, "no baseline was repeated: only rounding is known"
        for row in rows:
            by_table[row.table] = (noise, why)
    return by_table


def _settings(row: Variant) -> tuple[tuple[str, str], ...]:
    facts = {name: text.strip() for name, text in row.facts.items() if name not in _REMARKS}
    return tuple(sorted((facts | {"options": " ".join(_words(row.options))}).items()))


def _about(row: Variant) -> str:
    """What was measured, as far as the table says: "CUDA, float32, resnet50"."""
    return ", ".join(filter(None, (row.facts.get(part, "") for part in ("platform", "dtype", "model"))))


def _spread(rows: Sequence[Variant]) -> float:
    times = [row.times["steady"] for row in rows if row.times.get("steady")]
    return max(times) / min(times) - 1


def _table(
    name: str, rows: Sequence[Variant], base: Variant, noise: tuple[float, str], steps: int | None
) -> dict[str, Any]:
    shown = [_row(name, row, base, noise[0], steps) for row in rows]
    objectives = {row["key"]: {n: row["stages"][n]["value"] for n in OBJECTIVES if n in row["stages"]} for row in shown}
    best = pareto(objectives, {"setup": noise[0], "steady": noise[0]})
    for row in shown:
        row["pareto"] = row["key"] in best
    return {
        "name": name, "about": _about(base), "reference": base.name, "alpha": None,
        "family": None, "looks": [], "noise": {"steady": noise[0], "from": noise[1]}, "rows": shown,
        "pareto": best,
        "best": _best(shown, [_summed(row.halves, steps) for row in rows], noise[0], steps), "notes": [],
    }  # fmt: skip


def _row(table: str, row: Variant, base: Variant, noise: float, steps: int | None) -> dict[str, Any]:
    own, theirs = _summed(row.times, steps), _summed(base.times, steps)
    halves = _summed(row.halves, steps), _summed(base.halves, steps)
    stages: dict[str, dict[str, Any]] = {}
    for stage, value in own.items():
        judged = None
        if row is not base and theirs.get(stage):
            slack = max(noise, _rounding((value, theirs[stage]), (halves[0][stage], halves[1][stage])))
            judged = Judged(beyond_noise(value / theirs[stage], slack), value / theirs[stage])
        stages[stage] = stage_facts(stage, Estimate(value, None, None, 1), judged)
        if row is not base and judged is None:
            stages[stage]["verdict"] = "not measured"
    word = str(stages["steady"]["verdict"]) if "steady" in stages else "not measured"
    return {
        "key": f"{table}/{row.row}", "name": row.name, "verdict": word, "options": {"args": _words(row.options)},
        "stages": stages, "break_even": None if row is base else _break_even(own, theirs, word), "pareto": False,
        "failures": [], "note": row.facts.get("note", ""),
    }  # fmt: skip


def _summed(given: Mapping[str, float], steps: int | None) -> dict[str, float]:
    """With what follows from the times, or from what they were rounded by: set-up and cost."""
    times = dict(given)
    if "configure" in times and "warmup_first" in times:
        times["setup"] = times["configure"] + times["warmup_first"] + times.get("warmup_second", 0.0)
    if steps is not None and "setup" in times and "steady" in times:
        times["cost"] = cost(times["setup"], times["steady"], steps)
    return {stage: times[stage] for stage in RULES if stage in times}


def _rounding(values: tuple[float, float], halves: tuple[float, float]) -> float:
    """The largest difference, relative to the smaller one, that two figures may have by rounding alone."""
    return sum(halves) / min(values) if min(values) > 0 else 0.0


def _break_even(own: Mapping[str, float], base: Mapping[str, float], word: str) -> dict[str, Any]:
    setup, steady = (
        Difference(own[stage] - base[stage]) if stage in own and stage in base else None
        for stage in ("setup", "steady")
    )
    return asdict(break_even(setup, steady, word))


def _best(
    rows: Sequence[Mapping[str, Any]], halves: Sequence[Mapping[str, float]], noise: float, steps: int | None
) -> dict[str, Any] | None:
    by = "steady" if steps is None else "cost"
    half = {row["key"]: one.get(by, 0.0) for row, one in zip(rows, halves, strict=True)}

    def are_apart(best: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        value, its = best["stages"][by]["value"], other["stages"][by]["value"]
        slack = max(noise, _rounding((its, value), (half[other["key"]], half[best["key"]])))
        return beyond_noise(its / value if value else math.inf if its else 1.0, slack) != "within noise"

    best = best_row(rows, by, steps, are_apart)
    return best and {"name": best[0]["name"], "key": best[0]["key"], **best[1]}


def _words(options: str) -> list[str]:
    try:
        return shlex.split(options)
    except ValueError:
        return options.split()


_NEEDED = ("table_id", "row_in_table", "variant", "is_baseline", "inference_ms")
_FIRST, _SECOND = "warmup_first_ms", "warmup_second_ms"
_STAGES = {"configure_ms": "configure", _FIRST: "warmup_first", _SECOND: "warmup_second", "inference_ms": "steady"}
_NS_PER_MS = 1e6
_NONE = frozenset(["", "-", "--", "---", "----"])


@dataclass(frozen=True)
class Variant:
    """One row: `times` by stage in ns, as far as the table has them; `facts` are the other columns as text.

    `halves`: stage -> half of the last digit of its time, in ns: so much it may be rounded by.
    """

    table: str
    row: int
    name: str
    options: str
    is_baseline: bool
    times: dict[str, float]
    halves: dict[str, float]
    facts: dict[str, str]


def read_option_table(path: Path) -> list[Variant]:
    """Rows in file order. Raises SourceError, with the line, for a missing column or a cell that is no number."""
    try:
        with io.TextIOWrapper(open_file(path, packed=False), encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            _check_columns(path, list(reader.fieldnames or ()))
            rows = [_variant(path, reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SourceError(f"cannot read `{path}`: {getattr(error, 'strerror', '') or error}") from error
    names: set[tuple[str, int]] = set()
    for row in rows:
        if (row.table, row.row) in names:
            raise SourceError(f"two rows of table `{row.table}` in `{path}` have the place {row.row}")
        names.add((row.table, row.row))
    return rows


def _check_columns(path: Path, names: list[str]) -> None:
    """Raises SourceError unless all that is needed is there, and nothing twice."""
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        raise SourceError(
            f"no column {', '.join(missing)} in `{path}`: found {', '.join(names) or 'nothing'}",
            "expected a table of load_and_run's options",
        )
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise SourceError(f"the column `{double}` is there twice in `{path}`", "remove one, or give it another name")


def _variant(path: Path, line: int, row: dict[str, Any]) -> Variant:
    try:
        cells = _cells(row)
        figures = {stage: cells[name].strip() for name, stage in _STAGES.items() if cells.get(name)}
        figures = {stage: figure for stage, figure in figures.items() if figure not in _NONE}
        times = {stage: _time(figure) * _NS_PER_MS for stage, figure in figures.items()}
        halves = {stage: _half(figure) * _NS_PER_MS for stage, figure in figures.items()}
        number = int(row["row_in_table"])
    except (ValueError, ArithmeticError) as error:
        raise SourceError(f"damaged row in `{path}`, line {line}: {error}") from error
    return Variant(
        table=row["table_id"], row=number, name=row["variant"], options=row.get("options") or "",
        is_baseline=row["is_baseline"] == "1",
        times=times, halves=halves,
        facts={name: text for name, text in row.items() if name not in {*_NEEDED, *_STAGES, "options"}},
    )  # fmt: skip


def _cells(row: dict[str, Any]) -> dict[str, str]:
    """The cells by column, each with one number at most."""
    if None in row or None in row.values():
        raise ValueError("its number of cells is not that of the table's header")
    first, slash, second = (row.get(_FIRST) or "").partition("/")
    if slash and row.get(_SECOND):
        raise ValueError("two numbers for the second warm-up step")
    return row | ({_FIRST: first, _SECOND: second} if slash else {})


def _time(text: str) -> float:
    value = float(text)
    if not 0 <= value < math.inf:
        raise ValueError(f"expected a time, 0 or more, found {text}")
    return value


def _half(number: str) -> float:
    exponent = Decimal(number).as_tuple().exponent
    return 0.5 * 10.0 ** int(exponent)
