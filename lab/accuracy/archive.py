"""Packs a run into a small archive and takes it out again; the same run always gives the same bytes."""

from __future__ import annotations

import io
import json
import lzma
import re
import tarfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterable

KEPT = ("step", "fetch", "pipeline", "pipeline_op", "pipeline_edge", "queue", "op_service", "cpu", "stage")
HIDDEN = {"workdir": None, "launcher_pid": None, "launcher_start": None, "git": None, "parts": None}
MACHINE = ("host", "kernel", "container", "environment")
PLACES = ("site", "code")
XZ = 9 | lzma.PRESET_EXTREME


def pack(run: Path, archive: Path, kept: Iterable[str] = KEPT) -> int:
    """Write the archive of a run folder and return its size in bytes. See PROVENANCE.md for what is left out."""
    files = [("run.json", _manifest(run / "run.json", kept))]
    for table in kept:
        files += [(str(path.relative_to(run)), _parquet(path)) for path in sorted(run.glob(f"{table}/**/*.parquet"))]
    return _write(files, archive)


def pack_folder(folder: Path, archive: Path) -> int:
    """Write the archive of a folder as it is, and return its size in bytes."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return _write([(str(path.relative_to(folder)), path.read_bytes()) for path in paths], archive)


def unpack(archive: Path, folder: Path) -> None:
    """Take the files out into an empty folder, in which they all stay. Not every Python 3.10 and 3.11 can see to that by itself."""
    with tarfile.open(archive) as file:
        for entry in file:
            inside = PurePosixPath(entry.name)
            if inside.is_absolute() or ".." in inside.parts or not (entry.isfile() or entry.isdir()):
                raise ValueError(f"{archive} holds {entry.name}, which would lie elsewhere")
            path = folder / inside
            if entry.isdir():
                path.mkdir(parents=True, exist_ok=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.extractfile(entry).read())


def _write(files: Iterable[tuple[str, bytes]], archive: Path) -> int:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.USTAR_FORMAT) as file:
        for name, content in files:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            file.addfile(entry, io.BytesIO(content))
    archive.write_bytes(lzma.compress(data.getvalue(), preset=XZ))
    return archive.stat().st_size


def _manifest(path: Path, kept: Iterable[str]) -> bytes:
    manifest = json.loads(path.read_text(encoding="utf-8")) | HIDDEN
    manifest["command"] = [_base(word) for word in manifest["command"]]
    manifest["tables"] = {name: rows for name, rows in manifest["tables"].items() if name in kept}
    manifest["fingerprint"] = {name: value for name, value in manifest["fingerprint"].items() if name not in MACHINE}
    for rank in [rank for rep in manifest["reps"] for rank in rep["ranks"]]:
        rank["host"] = "machine"
        rank["python"] = _base(rank["python"]) if rank.get("python") else None
    return json.dumps(manifest, indent=1).encode()


def _parquet(path: Path) -> bytes:
    """The file without compression, which the archive does better, and with bare names of source files."""
    data = pq.ParquetFile(path).read()
    for name in set(PLACES) & set(data.column_names):
        column = data.column(name).to_pylist()
        place = data.column_names.index(name)
        bare = [None if value is None else re.sub(r"^.*/", "", value) for value in column]
        data = data.set_column(place, data.schema.field(name), pa.array(bare, pa.string()))
    out = io.BytesIO()
    encodings = {field.name: "DELTA_BINARY_PACKED" for field in data.schema if str(field.type) == "int64"}
    pq.write_table(data, out, compression="none", use_dictionary=False, column_encoding=encodings,
                   write_statistics=False, store_schema=False)  # fmt: skip
    return out.getvalue()


def _base(word: str) -> str:
    return PurePosixPath(word).name if word.startswith("/") else word
