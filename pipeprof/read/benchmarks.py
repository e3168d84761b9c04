"""JSON files of pytest-benchmark: every file is one repetition, every benchmark a metric.

The unit of replication is the process that ran the benchmarks; its rounds say how long it took, not how much that
varies from run to run. Format: https://pytest-benchmark.readthedocs.io (`--benchmark-json`).
"""

from __future__ import annotations

import datetime as dt
import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from pipeprof.errors import SourceError
from pipeprof.record.document import BAD_JSON, refuse_many_values
from pipeprof.record.measures import Measures, Repetition
from pipeprof.record.note import Note, note
from pipeprof.record.plain_file import read_file

MOST_BYTES = 1 << 26
MOST_SECONDS = 9.2e9  # before and after 1970: in ns they fit into 64 bits
HINT = "write it with `pytest --benchmark-json FILE`"


class _Stats(msgspec.Struct):
    median: float


class _Benchmark(msgspec.Struct):
    fullname: str
    stats: _Stats


class _File(msgspec.Struct):
    machine_info: dict[str, Any]
    benchmarks: list[_Benchmark]
    datetime: str
    commit_info: dict[str, Any] = {}


def is_benchmark(path: Path) -> bool:
    """Whether the file is JSON with a list of benchmarks."""
    try:
        content = _content(path, Any)
    except (OSError, *BAD_JSON):
        return False
    return isinstance(content, dict) and isinstance(content.get("benchmarks"), list) and "machine_info" in content


def read_benchmarks(paths: Sequence[Path], label: str) -> Measures:
    """Medians, seconds, of every benchmark, one repetition per file in the order of their times.

    A copy of another file counts, with a note: a repetition that counts twice looks surer than it is. Raises
    SourceError, naming the file, when one is damaged, comes from another machine, holds no finite median, or a
    benchmark twice.
    """
    files = sorted(((_decoded(path), path) for path in paths), key=lambda pair: (_time(*pair), str(pair[1])))
    first, first_path = files[0]
    about = _fingerprint(first, first_path)
    measures = Measures(
        label=label, kind="benchmark", workload="benchmarks", fingerprint=about, created_at=first.datetime,
        git={"revision": first.commit_info["id"], "dirty": first.commit_info.get("dirty")}
        if first.commit_info.get("id") else None, notes=_copies(files), digests=[_digest(file) for file, _ in files],
    )  # fmt: skip
    for rep, (file, path) in enumerate(files):
        other = _fingerprint(file, path)
        if other != about:
            name = next(name for name in about if about[name] != other.get(name))
            raise SourceError(
                f"`{path}` and `{first_path}` differ in {name}", "keep files of one machine in one folder"
            )
        measures.reps[rep] = Repetition(order=_time(file, path), job=_job(file, about))
        for name, median in _medians(file, path).items():
            measures.values.setdefault(f"benchmark/{name}", {})[rep] = median
    return measures


def _medians(file: _File, path: Path) -> dict[str, float]:
    medians: dict[str, float] = {}
    for one in file.benchmarks:
        if not math.isfinite(one.stats.median):
            raise SourceError(f"median of `{one.fullname}` in `{path}` is {one.stats.median}", HINT)
        if one.fullname in medians:
            raise SourceError(f"`{path}` holds `{one.fullname}` twice", HINT)
        medians[one.fullname] = one.stats.median
    return medians


def _copies(files: Sequence[tuple[_File, Path]]) -> list[Note]:
    """A note for each file that says the same as one before it, of the same moment: they are one repetition."""
    first_with: dict[str, Path] = {}
    notes: list[Note] = []
    for file, path in files:
        content = _digest(file)
        if first_with.setdefault(content, path) is not path:
            notes.append(note("copied_file", file=str(path), original=str(first_with[content])))
    return notes


def _digest(file: _File) -> str:
    """Of what it says and of its moment: short benchmarks may take equally long twice."""
    return hashlib.sha256(msgspec.json.encode([file.datetime, file.benchmarks])).hexdigest()[:32]


def _decoded(path: Path) -> _File:
    try:
        file: _File = _content(path, _File)
    except OSError as error:
        raise SourceError(f"cannot read `{path}`: {error.strerror}", HINT) from error
    except BAD_JSON as error:
        raise SourceError(f"damaged benchmark file `{path}`: {error}", HINT) from error
    return file


def _content(path: Path, kind: Any) -> Any:
    data = read_file(path, MOST_BYTES)
    refuse_many_values(data)
    return msgspec.json.decode(data, type=kind)


def _time(file: _File, path: Path) -> int:
    """When it was written, ns as of all runs; its text has microseconds."""
    try:
        seconds = dt.datetime.fromisoformat(file.datetime.replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError) as error:
        raise SourceError(f"time `{file.datetime}` in `{path}` cannot be read", HINT) from error
    if abs(seconds) >= MOST_SECONDS:
        raise SourceError(f"time `{file.datetime}` in `{path}`, expected a year from 1678 to 2261", HINT)
    return round(seconds * 1e6) * 1000


def _job(file: _File, about: dict[str, Any]) -> str:
    """What the benchmarks' own hook put into machine_info as `job`; else all of a host are one."""
    job = file.machine_info.get("job")
    return job if isinstance(job, str) and job else f"node:{about['host']}"


def _fingerprint(file: _File, path: Path) -> dict[str, Any]:
    machine = file.machine_info
    cpu = machine.get("cpu") or {}
    if not isinstance(cpu, dict):
        raise SourceError(f"`cpu` of machine_info in `{path}` is {cpu!r}, expected a table", HINT)
    return {
        "cpu_model": cpu.get("brand_raw") or cpu.get("brand"),
        "cpu_cores": cpu.get("count"),
        "architecture": machine.get("machine"),
        "system": machine.get("system"),
        "python": machine.get("python_version"),
        "host": hashlib.sha256(str(machine.get("node")).encode()).hexdigest()[:12],
    }
