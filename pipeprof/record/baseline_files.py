"""The files of a baseline: Measures to bytes and back. Same measures, same bytes; damaged or newer files are refused.

`measures.parquet` has one row per metric and repetition, `facts.json` one line per fact (`facts.json.zst` when that is
too large), `summary.md` is for people, and `baseline.json` says what it is and holds the SHA-256 of the others and of
itself.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from pipeprof.errors import MeasureError, RunError
from pipeprof.record import pages
from pipeprof.record.baseline_summary import summary_text
from pipeprof.record.document import BAD_JSON, FileName, Sha256
from pipeprof.record.machine import fingerprint_hash, machine_class
from pipeprof.record.measures import Measures, Repetition
from pipeprof.record.note import Note  # noqa: TC001 - msgspec reads the annotation
from pipeprof.record.place import MOST_BYTES
from pipeprof.version import __version__

BASELINE_VERSION = 1
POINTER = "baseline.json"
VALUES = "measures.parquet"
FACTS = "facts.json"
PACKED_FACTS = "facts.json.zst"
SUMMARY = "summary.md"
_MOST_FACTS = 64 << 20  # unpacked; a damaged length must not fill the memory
_MOST_VALUES = 64 << 20  # the same
_TEXT = (".json", ".md")
_SCHEMA = pa.schema(
    [
        pa.field("metric", pa.string(), nullable=False),
        pa.field("rep", pa.int64(), nullable=False),
        pa.field("order", pa.int64(), nullable=False),
        pa.field("job", pa.string()),
        pa.field("value", pa.float64(), nullable=False),
    ]
)
_SPEED = pa.field("calibration_ns", pa.int64())  # a column that is there when any repetition has it


class NoBaselineError(RunError):
    """There is no baseline where one was asked for."""


class DamagedBaselineError(RunError):
    """A file of a baseline is missing, cut, or was edited by hand."""


class NewerBaselineError(RunError):
    """A newer pipeprof wrote this baseline."""


class Part(msgspec.Struct, kw_only=True):
    """One file beside `baseline.json`. Text is hashed with LF line ends, as git may change them."""

    sha256: Sha256
    bytes: int


class Document(msgspec.Struct, kw_only=True):
    """What `baseline.json` holds. `created_at`: when it was measured; `dropped`: what was left out on request.

    `note_facts`: notes as codes with values.

    `command`, `run_ids` and `digests` are those of the measures; empty in a baseline of before they were written.
    """

    schema_version: int = BASELINE_VERSION
    label: str
    workload: FileName
    machine: FileName
    created_at: str | None
    pipeprof_version: str
    git: dict[str, Any] | None
    reps: int
    jobs: int
    metrics: int
    fingerprint_hash: str
    fingerprint: dict[str, Any]
    note_facts: list[Note] = []
    command: list[str] = []
    run_ids: list[str] = []
    digests: list[str] = []
    places: dict[str, str] = {}
    dropped: list[str] = []
    files: dict[FileName, Part] = {}
    sha256: str = ""


class _Facts(msgspec.Struct):
    facts: dict[str, str]


def encode(measures: Measures, dropped: Sequence[str] = ()) -> dict[str, bytes]:
    """The files by name, `baseline.json` last.

    Raises MeasureError when a value is no finite number, a repetition holds none, the fingerprint is empty, or a file
    is larger than `MOST_BYTES`: it says which, and what takes the room.
    """
    _check(measures)
    files = {VALUES: _values_bytes(measures), **_facts_bytes(measures)}
    document = described(measures, dropped)
    about = msgspec.to_builtins(document)
    files[SUMMARY] = summary_text(measures, about, packed=PACKED_FACTS in files).encode()
    document.files = {name: Part(sha256=digest(name, data), bytes=len(data)) for name, data in files.items()}
    document.sha256 = _own_digest(msgspec.to_builtins(document))
    files[POINTER] = msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
    for name, data in files.items():
        if len(data) > MOST_BYTES:
            raise MeasureError(
                f"`{name}` of the baseline would be {len(data):,} bytes, at most {MOST_BYTES:,} are kept: "
                + _what_is_large(measures, name),
                "leave metrics or facts out with --drop, as --drop 'op/*'",
            )
    return files


def described(measures: Measures, dropped: Sequence[str] = ()) -> Document:
    """What a baseline of these measures says of itself, without files."""
    return Document(
        label=measures.label, workload=measures.workload, machine=machine_class(measures.fingerprint),
        created_at=measures.created_at, pipeprof_version=__version__, git=measures.git, reps=len(measures.reps),
        jobs=len(measures.jobs), metrics=len(measures.values), fingerprint=measures.fingerprint, dropped=list(dropped),
        fingerprint_hash=fingerprint_hash(measures.fingerprint),
        note_facts=measures.notes,
        command=measures.command, run_ids=measures.run_ids, digests=measures.digests,
        places=measures.places,
    )  # fmt: skip


def read_document(data: bytes, where: str) -> Document:
    """`baseline.json`, checked against its own hash.

    Raises DamagedBaselineError, or NewerBaselineError for a higher schema_version; both name `where`.
    """
    try:
        raw = msgspec.json.decode(data)
        version = raw["schema_version"]
        if isinstance(version, int) and version > BASELINE_VERSION:
            raise NewerBaselineError(
                f"`{where}` was written by a newer pipeprof: schema_version {version}, this one reads up to "
                f"{BASELINE_VERSION}",
                "upgrade pipeprof, or remove it with pipeprof baseline drop and write it again",
            )
        document = msgspec.convert(raw, Document, strict=True)
    except (*BAD_JSON, KeyError, TypeError) as error:
        raise _damaged(where, f"no baseline can be read from it ({error})") from error
    if document.sha256 != _own_digest(raw):
        raise _damaged(where, "its content does not match its SHA-256: edited by hand, or damaged")
    return document


def decode(document: Document, part: Callable[[str], bytes | None], where: str) -> Measures:
    """The measures of a baseline; `part(name)` gives the content of a file, None when it is not there.

    Raises DamagedBaselineError that names the file.
    """
    contents: dict[str, bytes] = {}
    for name, expected in document.files.items():
        data = part(name)
        if data is None:
            raise _damaged(f"{where}/{name}", "it is missing")
        if digest(name, data) != expected.sha256:
            raise _damaged(f"{where}/{name}", "its content does not match its SHA-256: edited by hand, or damaged")
        contents[name] = data
    try:
        facts = _read_facts(contents)
        reps, values = _read_values(contents[VALUES])
    except (*BAD_JSON, KeyError, ValueError, pa.ArrowException, OSError) as error:
        raise _damaged(where, str(error).partition("\n")[0]) from error
    for metric, of_metric in values.items():
        wrong = next((rep for rep, value in of_metric.items() if not math.isfinite(value)), None)
        if wrong is not None:
            raise _damaged(f"{where}/{VALUES}", f"`{metric}` of repetition {wrong} is {of_metric[wrong]}")
    return Measures(
        label=document.label, kind="baseline", workload=document.workload, reps=reps, values=values, facts=facts,
        fingerprint=document.fingerprint, git=document.git, created_at=document.created_at,
        notes=document.note_facts, command=document.command, run_ids=document.run_ids,
        digests=document.digests,
        places=document.places,
    )  # fmt: skip


def digest(name: str, data: bytes) -> str:
    """SHA-256 of a file's content; of text with LF line ends."""
    return hashlib.sha256(data.replace(b"\r\n", b"\n") if name.endswith(_TEXT) else data).hexdigest()


def _damaged(where: str, what: str) -> DamagedBaselineError:
    return DamagedBaselineError(f"baseline file `{where}` is damaged: {what}", "restore it from git, or write it again")


def _own_digest(raw: Mapping[str, Any]) -> str:
    content = {name: value for name, value in raw.items() if name != "sha256"}
    return hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()


def _check(measures: Measures) -> None:
    if not any(value is not None for value in measures.fingerprint.values()):
        raise MeasureError(
            f"`{measures.label}` says nothing about its machine, so a baseline of it would be valid nowhere",
            "collect a run with pipeprof collect",
        )
    seen: set[int] = set()
    for metric, values in measures.values.items():
        seen |= set(values)
        for rep, value in values.items():
            if not math.isfinite(value):
                raise MeasureError(f"`{metric}` of repetition {rep} is {value}, expected a finite number")
    if not measures.reps or seen != set(measures.reps):
        wrong = sorted(seen ^ set(measures.reps))
        raise MeasureError(
            f"repetition {wrong[0]} of `{measures.label}` has no values or is not listed"
            if wrong
            else f"`{measures.label}` holds no repetitions"
        )


def _values_bytes(measures: Measures) -> bytes:
    rows = [
        (metric, rep, about.order, about.job, float(values[rep]), about.calibration_ns)
        for metric, values in sorted(measures.values.items())
        for rep, about in sorted(measures.reps.items())
        if rep in values
    ]
    columns = zip(*rows, strict=True)
    speeds = any(rep.calibration_ns is not None for rep in measures.reps.values())
    schema = _SCHEMA.append(_SPEED) if speeds else _SCHEMA
    table = pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=False)], schema=schema
    )
    sink = io.BytesIO()
    pq.write_table(
        table, sink, compression="zstd", compression_level=9, use_dictionary=["metric", "job"],
        column_encoding={"value": "BYTE_STREAM_SPLIT", "rep": "DELTA_BINARY_PACKED", "order": "DELTA_BINARY_PACKED"},
        write_statistics=False, store_schema=False,
    )  # fmt: skip
    return sink.getvalue()


def _read_values(data: bytes) -> tuple[dict[int, Repetition], dict[str, dict[int, float]]]:
    reps: dict[int, Repetition] = {}
    values: dict[str, dict[int, float]] = {}
    # without threads: those of pyarrow abort a process that ends right after such a small file
    metadata = pq.read_metadata(io.BytesIO(data))
    if metadata.num_rows > MOST_BYTES:
        raise ValueError(f"`{VALUES}` has {metadata.num_rows:,} rows, expected at most {MOST_BYTES:,}")
    if sum(part.bytes for part in pages.parts_of_bytes(metadata, data)) > _MOST_VALUES:
        raise ValueError(f"`{VALUES}` unpacks to more than {_MOST_VALUES:,} bytes")
    there = metadata.schema.to_arrow_schema()
    texts = [field.name for field in there if field.type == pa.string()]
    file = pq.ParquetFile(io.BytesIO(data), read_dictionary=texts)  # a long text may be that of every row
    schema = _SCHEMA.append(_SPEED) if _SPEED.name in there.names else _SCHEMA
    table = file.read(use_threads=False).select(schema.names)
    for field, stored in zip(schema, table.schema, strict=True):
        kind = stored.type.value_type if pa.types.is_dictionary(stored.type) else stored.type
        if kind != field.type or (not field.nullable and table.column(field.name).null_count):
            raise ValueError(f"column `{field.name}` of `{VALUES}` holds {kind}, or nothing, expected {field.type}")
    columns = [_unpacked(table.column(name)) for name in schema.names]
    for metric, rep, order, job, value, *speed in zip(*columns, strict=True):
        reps.setdefault(rep, Repetition(order=order, job=job, calibration_ns=speed[0] if speed else None))
        values.setdefault(metric, {})[rep] = value
    return dict(sorted(reps.items())), values


def _unpacked(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column; texts that are the same share their memory."""
    if not pa.types.is_dictionary(column.type):
        return list(column.to_pylist())
    unpacked: list[Any] = []
    for chunk in column.chunks:
        texts = chunk.dictionary.to_pylist()
        unpacked += [None if index is None else texts[index] for index in chunk.indices.to_pylist()]
    return unpacked


def _facts_bytes(measures: Measures) -> dict[str, bytes]:
    lines = [
        f"    {msgspec.json.encode(name).decode()}: {msgspec.json.encode(text).decode()}"
        for name, text in sorted(measures.facts.items())
    ]
    body = ",\n".join(lines)
    text = f'{{\n  "schema_version": {BASELINE_VERSION},\n  "facts": {{\n{body}\n  }}\n}}\n'.encode()
    if len(text) <= MOST_BYTES:
        return {FACTS: text}
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(text)
    return {PACKED_FACTS: sink.getvalue().to_pybytes()}


def _read_facts(contents: Mapping[str, bytes]) -> dict[str, str]:
    if FACTS in contents:
        text = contents[FACTS]
    else:
        text = pa.CompressedInputStream(pa.BufferReader(contents[PACKED_FACTS]), "zstd").read(_MOST_FACTS)
    return msgspec.json.decode(text, type=_Facts).facts


def _what_is_large(measures: Measures, name: str) -> str:
    if name == VALUES:
        sizes: dict[str, int] = {}
        for metric in measures.values:
            family = metric.partition("/")[0] + "/*" if "/" in metric else metric
            sizes[family] = sizes.get(family, 0) + 1
        family = max(sizes, key=lambda at: sizes[at])
        part = f"{sizes[family]:,} of its {len(measures.values):,} metrics are `{family}`"
        return f"{part}, {len(measures.reps)} repetitions"
    if name == PACKED_FACTS:
        return f"{len(measures.facts):,} facts"
    return f"{len(measures.fingerprint)} facts of the machine, {len(measures.notes)} notes"
