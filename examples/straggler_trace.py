"""Makes a run of a trace as published with ByteDance's "Understanding Stragglers in Large Model Training" (OSDI 2025).

python examples/straggler_trace.py trace-ST.parquet RUN
pipeprof report RUN --section causes

A row of such a trace is one operation: dp_rank, stage, rank, step, optype, start_ts and duration (s), seq_id, mc (model
chunk of the stage). This is also how a trace of your own becomes a run: passes with the category `pass`, and
communication with its group. Transfers that the trace records but that took place with nobody are left out.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq

from pipeprof import __version__
from pipeprof.record import checksums, store
from pipeprof.record.run import Manifest, Run, new_run_id
from pipeprof.record.schema import BY_NAME

PASSES = {"forward-compute": "forward", "backward-compute": "backward", "optimizer": "optimizer", "gc": "other"}
COLLECTIVES = {
    "grads-reduce-scatter": "reduce_scatter", "params-all-gather": "all_gather",
    "separate-grads-all-reduce": "all_reduce", "embedding-grads-all-reduce": "all_reduce",
    "layernorm-grads-all-reduce": "all_reduce", "optimizer-clip-main-grad": "all_reduce",
}  # fmt: skip
COLUMNS = ("dp_rank", "stage", "rank", "step", "optype", "start_ts", "duration", "seq_id", "mc")
NEAR = 5e-4  # s that clocks of ranks may differ


def main(trace, folder):
    """Write the run; raises KeyError for an operation of an unknown type."""
    rows = read(trace)
    places = {(row["dp_rank"], row["stage"]): row["rank"] for row in rows}
    chunks = max(row["mc"] for row in rows) + 1
    zero = min(row["start_ts"] for row in rows)
    tables = defaultdict(list)
    for rank, mine in grouped(rows, "rank").items():
        for step, inside in sorted(grouped(mine, "step").items()):
            add_step(tables, rank, step, inside, zero)
            for row in real(inside, places, chunks):
                add(tables, rank, row, places, chunks, zero)
    write(tables, Path(folder))


def read(trace):
    rows = pq.read_table(trace, columns=list(COLUMNS)).to_pylist()
    for row in rows:
        row["mc"] = int(row["mc"]) if row["mc"] is not None and row["mc"] == row["mc"] else 0
    return rows


def grouped(rows, column):
    found = defaultdict(list)
    for row in rows:
        found[row[column]].append(row)
    return found


def peer(row, places, chunks):
    """The rank at the other end of a transfer, None beyond the first and the last part of the model."""
    stages = max(stage for _, stage in places) + 1
    kind, side = row["optype"].split("-")
    depth = row["mc"] * stages + row["stage"] + (1 if (kind == "forward") == (side == "send") else -1)
    return places[row["dp_rank"], depth % stages] if 0 <= depth < stages * chunks else None


def real(rows, places, chunks):
    """Rows without transfers that took place with nobody: beyond the model, or before and behind all passes."""
    passes = grouped(rows, "optype")
    for row in sorted(rows, key=lambda row: (row["start_ts"], row["seq_id"])):
        kind, _, side = row["optype"].partition("-")
        if side not in ("send", "recv"):
            yield row
            continue
        mine = passes[f"{kind}-compute"]
        last = max(other["start_ts"] for other in mine)
        first = min(other["start_ts"] + other["duration"] for other in mine)
        late = side == "recv" and row["start_ts"] > last + NEAR
        early = side == "send" and row["start_ts"] + row["duration"] < first - NEAR
        if not late and not early and peer(row, places, chunks) is not None:
            yield row


def times(row, zero):
    start, end = (round(1e9 * (t - zero)) for t in (row["start_ts"], row["start_ts"] + row["duration"]))
    return {"step": row["step"], "start_ns": start, "dur_ns": end - start}


def add_step(tables, rank, step, rows, zero):
    start = min(row["start_ts"] for row in rows)
    end = max(row["start_ts"] + row["duration"] for row in rows)
    number = sum(1 for _ in tables["step", rank])
    tables["step", rank].append({
        "step": step, "kind_step": number, "kind": "train", "start_ns": round(1e9 * (start - zero)),
        "end_ns": round(1e9 * (end - zero)), "source_step": step, "in_window": False,
    })  # fmt: skip


def add(tables, rank, row, places, chunks, zero):
    optype, chunk = row["optype"], row["mc"]
    name = f"chunk{chunk}/{optype}"
    if optype in PASSES:
        infos = tables["op_info", rank]
        names = [info["name"] for info in infos]
        if name not in names:
            infos.append(
                {"op_id": len(infos), "name": name, "type": optype, "phase": PASSES[optype], "category": "pass"}
            )
            names.append(name)
        tables["op", rank].append(
            {**times(row, zero), "op_id": names.index(name), "track": "compute", "side": "device"}
        )
        return
    track = "dp" if optype in ("grads-reduce-scatter", "params-all-gather") else optype
    other = {**times(row, zero), "name": name, "track": track}
    tables["collective", rank].append({**other, **group(row, places, chunks)})


def group(row, places, chunks):
    """Who takes part."""
    optype, stage = row["optype"], row["stage"]
    if optype not in COLLECTIVES:
        ends = sorted((row["rank"], peer(row, places, chunks)))
        return {"kind": "send" if optype.endswith("send") else "receive", "group_name": "pp-{}-{}".format(*ends)}
    names = {
        "embedding-grads-all-reduce": f"embedding-{row['dp_rank']}",
        "layernorm-grads-all-reduce": f"tensor-{row['rank']}",
        "optimizer-clip-main-grad": "world",
    }
    return {"kind": COLLECTIVES[optype], "group_name": names.get(optype, f"dp-{stage}")}


def write(tables, folder):
    manifest = Manifest(
        run_id=new_run_id(), state="complete", source="import:straggler-trace", started_at="2025-01-01T00:00:00Z",
        pipeprof_version=__version__,
    )  # fmt: skip
    run = Run(folder, manifest)
    folder.mkdir(parents=True)
    for (table, rank), rows in sorted(tables.items()):
        ordered = sorted(rows, key=lambda row: (row.get("start_ns", 0), row.get("op_id", 0)))
        columns = BY_NAME[table].column_names
        written = store.write(run, table, 0, rank, [[row.get(name) for name in columns] for row in ordered])
        manifest.tables[table] = manifest.tables.get(table, 0) + written
    checksums.seal(run)
    run.save()


if __name__ == "__main__":
    main(*sys.argv[1:])
