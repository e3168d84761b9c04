"""Tables of runs that are too large to be made row by row, and what a command on them costs."""

from __future__ import annotations

import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq

from pipeprof.record.checksums import seal
from pipeprof.record.schema import BY_NAME

MIB = 1024  # KiB


def cost(*words):
    """CPU seconds, and peak MiB, of a pipeprof command."""
    child = subprocess.Popen([sys.executable, "-m", "pipeprof", *map(str, words)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"pipeprof {words[0]} ended with {child.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / MIB


def write(run, table, *, rep=0, rank=0, **columns):
    """One Parquet file of a table; columns that are not given are null."""
    schema = BY_NAME[table].arrow()
    rows = len(next(iter(columns.values())))
    arrays = [pa.array(columns[name], field.type) if name in columns else pa.nulls(rows, field.type)
              for name, field in zip(schema.names, schema, strict=True)]  # fmt: skip
    path = run.path / table / f"rep={rep}" / f"rank={rank}"
    path.mkdir(parents=True)
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), path / "part-00000.parquet", compression="zstd")
    run.manifest.tables[table] = run.manifest.tables.get(table, 0) + rows


def sealed(run):
    """The run, with the checksums of its files in its manifest, as a recording ends."""
    seal(run)
    run.save()
    return run
