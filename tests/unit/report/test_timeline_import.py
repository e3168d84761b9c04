"""The reader of other programs' traces finds the same in our trace as in the run."""

from __future__ import annotations

import random

from trace_format import imported

from pipeprof.query.engine import Engine
from pipeprof.report.timeline import Choice, write

TOTALS = """
SELECT i.name, count(*) AS n, sum(o.dur_ns) AS total_ns, sum(CASE WHEN i.device = 'CPU' THEN o.self_ns ELSE 0 END) AS self_ns
FROM op AS o INNER JOIN op_info AS i ON o.rep = i.rep AND o.rank = i.rank AND o.op_id = i.op_id
GROUP BY i.name ORDER BY i.name
"""


def totals(run):
    with Engine.open(run) as engine:
        return engine.sql(TOTALS).to_pylist()


def host_ops(chance, rank):
    """Calls that call each other, on two threads, with their own times."""
    rows = []
    for thread in ("main", "loader"):
        at = chance.randrange(1000)
        for _ in range(200):
            inner = [chance.randrange(1, 900) for _ in range(chance.randrange(4))]
            own = chance.randrange(10, 5000)
            row = {"rank": rank, "op_id": chance.randrange(4), "start_ns": at, "track": thread, "side": "host"}
            rows.append(row | {"dur_ns": own + sum(inner), "self_ns": own})
            for dur in inner:
                rows.append(row | {"op_id": 4 + chance.randrange(3), "start_ns": at, "dur_ns": dur, "self_ns": dur})
                at += dur
            at += own + chance.randrange(500)
    return rows


def test_the_same_operator_totals(make_run, tmp_path):
    chance = random.Random(11)  # noqa: S311 - not for secrets
    info = [
        {"rank": rank, "op_id": n, "name": f"op {n}", "type": "T", "device": "GPU" if n > 6 else "CPU"}
        for rank in (0, 1)
        for n in range(9)
    ]
    kernels = [
        {"rank": rank, "op_id": 7 + n % 2, "start_ns": 1_000_000 + n * 1003, "dur_ns": 1 + n % 1000, "track": "stream 7",
         "side": "device", "self_ns": 1 + n % 1000}
        for rank in (0, 1)
        for n in range(300)
    ]  # fmt: skip
    steps = [
        {"rank": rank, "step": 0, "kind": "train", "start_ns": 0, "fp_ns": 10, "end_ns": 3_000_000} for rank in (0, 1)
    ]
    run = make_run({"op": host_ops(chance, 0) + host_ops(chance, 1) + kernels, "op_info": info, "step": steps})
    write(run, tmp_path / "ours.json.gz", Choice())
    again = imported(tmp_path / "ours.json.gz", tmp_path / "again")
    assert totals(again) == totals(run)
    assert again.manifest.state == "complete", again.manifest.reason
