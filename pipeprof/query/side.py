"""A side of a comparison by its name: a run or a baseline, here or in object storage, or files of pytest-benchmark."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from pipeprof.errors import RunError
from pipeprof.query.engine import Engine
from pipeprof.query.measure import measure
from pipeprof.read.benchmarks import is_benchmark, read_benchmarks
from pipeprof.read.spool.finish import open_run
from pipeprof.read.tables.writer import numbers, strings

if TYPE_CHECKING:
    from pipeprof.record.measures import Measures


def open_measures(path: str | Path) -> Measures:
    """One side of a comparison from a run or a baseline (folder or URL), or JSON files of pytest-benchmark.

    A folder of JSON files is one side with a repetition for each file; the folder of a workload is its baseline, when
    there is only one. Raises RunError when it is none of these.
    """
    from pipeprof.record import baseline  # noqa: PLC0415 - object storage is only for those who use it

    text, local_path = str(path), Path(path)
    if "://" in text:
        return _measured_at(text) or baseline.load(text)
    check_exist(text)
    if local_path.joinpath(baseline.MANIFEST).is_file():
        return baseline.load(text)
    if local_path.is_file() and is_benchmark(local_path):
        return read_benchmarks([local_path], text)
    if local_path.is_file():
        raise RunError(
            f"`{text}` cannot be compared: it is not a complete JSON file of pytest-benchmark",
            "give a run, a baseline, or what `pytest --benchmark-json FILE` wrote",
        )
    measures = None if local_path.joinpath("run.json").is_file() else _baseline_or_benchmarks(local_path)
    return measures or measure(open_run(local_path))


def check_exist(*paths: str | Path) -> None:
    """Raises RunError with all of these that do not exist; what URLs name is not looked at."""
    missing = [f"`{path}`" for path in paths if "://" not in str(path) and (path == "" or not Path(path).exists())]
    if missing:
        raise RunError(
            f"no such run, baseline or file: {', '.join(missing)}",
            "record a run with `pipeprof collect`, or a baseline with `pipeprof baseline write RUN --workload NAME`",
        )


def _measured_at(url: str) -> Measures | None:
    """A run in object storage; None when the URL names none."""
    from pipeprof.record.run_objects import fetch_if_run  # noqa: PLC0415 - object storage is only for those who use it

    copy = fetch_if_run(url)
    return None if copy is None else measure(open_run(copy))


def _baseline_or_benchmarks(folder: Path) -> Measures | None:
    """The only baseline below a workload's folder, or all its JSON files of pytest-benchmark; None without either."""
    from pipeprof.record import baseline  # noqa: PLC0415 - object storage is only for those who use it

    machines = sorted(file.parent for file in folder.glob(f"*/{baseline.MANIFEST}"))
    if len(machines) == 1:
        return baseline.load(str(machines[0]))
    if machines:
        names = ", ".join(f"`{machine.name}`" for machine in machines)
        raise RunError(f"`{folder}` has baselines of {len(machines)} machines: {names}", "name one of its folders")
    files = sorted(folder.glob("*.json"))
    others = [file for file in files if not is_benchmark(file)]
    if files and not others:
        return read_benchmarks(files, str(folder))
    if len(others) < len(files):
        raise RunError(
            f"`{others[0]}` is not a complete JSON file of pytest-benchmark, unlike other files of its folder",
            "keep only files that `pytest --benchmark-json FILE` wrote in a folder of them",
        )
    return None


def open_base(path: str | Path, new: Measures) -> Measures:
    """As `open_measures`; besides, ROOT/WORKLOAD is the baseline of that workload for the machine class of `new`.

    Raises RunError, naming the machine classes there are, when it has none for this one.
    """
    from pipeprof.record import baseline  # noqa: PLC0415 - object storage is only for those who use it

    measured = _measured_at(str(path)) if "://" in str(path) else None
    if measured is not None:
        return measured
    head, _, query = str(path).partition("?") if "://" in str(path) else (str(Path(path).absolute()), "", "")
    root, _, workload = head.rstrip("/").rpartition("/")
    root = f"{root}?{query}" if query else root
    here = "://" in head or any(Path(head).glob(f"*/{baseline.MANIFEST}"))
    saved = baseline.names(root, workload) if here else []
    if not saved:
        return open_measures(path)
    measures = baseline.of_machine(root, workload, new)
    if measures is None:
        raise RunError(
            f"no baseline of `{workload}` for this machine; there is {', '.join(machine for _, machine in saved)}",
            f"pipeprof baseline write {shlex.quote(new.label)} --workload {shlex.quote(workload)}",
        )
    return measures


def engine_of(base: Measures, new: Measures) -> Engine:
    """An engine over the two sides. Close it, or use it in a `with`."""
    sides = {"base": base, "new": new}
    rows = [(side, 0, 0, name, text) for side, measures in sides.items() for name, text in measures.facts.items()]
    which, reps, ranks, names, texts = list(zip(*rows, strict=True)) or [()] * 5
    columns = [strings(which), numbers(reps), numbers(ranks), strings(names), strings(texts)]
    return Engine.of_tables({"side_fact": pa.Table.from_arrays(columns, ["side", "rep", "rank", "name", "value"])})
