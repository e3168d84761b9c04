"""The reader of other programs' traces finds the same in our trace as in the run."""

import random
import resource
from pathlib import Path

from trace_format import imported

from pipeprof.query.engine import Engine
from pipeprof.report.timeline.trace import Choice, write

TOTALS = """
SELECT o.rep, o.rank, i.name, count(*) AS n, sum(o.dur_ns) AS total_ns,
  sum(CASE WHEN i.device = 'CPU' THEN o.self_ns ELSE 0 END) AS self_ns, min(o.track) AS track
FROM op AS o INNER JOIN op_info AS i ON o.rep = i.rep AND o.rank = i.rank AND o.op_id = i.op_id
GROUP BY o.rep, o.rank, i.name ORDER BY o.rep, o.rank, i.name
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


def test_the_same_operator_totals_of_every_rank(make_run, tmp_path):
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
    ops = host_ops(chance, 0) + host_ops(chance, 1) + kernels
    late = [{**row, "rep": 1, "start_ns": row["start_ns"] + 5_000} for row in host_ops(chance, 1)]
    info += [{**row, "rep": 1} for row in info if row["rank"] == 1]
    levels = [{"rank": rank, "t_ns": rank, "device": "CPU", "name": "pool", "allocated_bytes": 7} for rank in (0, 1)]
    run = make_run({"op": ops + late, "op_info": info, "step": steps, "memory": levels})
    write(run, tmp_path / "ours.json.gz", Choice())
    again = imported(tmp_path / "ours.json.gz", tmp_path / "again")
    assert totals(again) == totals(run)
    assert again.manifest.state == "complete", again.manifest.reason
    assert [(rep.rep, [rank.rank for rank in rep.ranks]) for rep in again.manifest.reps] == [(0, [0, 1]), (1, [1])]
    assert again.manifest.warnings == []
    with Engine.open(again) as engine:
        counters = engine.sql(
            "SELECT rank, name, value FROM counter WHERE name LIKE '%memory%' ORDER BY rank"
        ).to_pylist()
    assert [(row["rank"], row["value"]) for row in counters] == [(0, 7.0), (1, 7.0)]


def test_events_of_a_process_that_is_no_rank_are_counted(make_run, tmp_path):
    run = make_run({"op": [{"op_id": 0, "start_ns": 5, "dur_ns": 5, "track": "CPU"}]})
    path = tmp_path / "ours.json"
    write(run, path, Choice())
    strange = ',\n{"ph":"X","pid":9,"tid":1,"ts":1,"dur":1,"cat":"cpu_op","name":"x","args":{}}\n]}'
    path.write_text(path.read_text().removesuffix("\n]}\n") + strange)
    again = imported(path, tmp_path / "again")
    assert [warning.message for warning in again.manifest.warnings] == [
        "`ours.json`: events left out: 1 with a process that is none of its ranks"
    ]
    assert again.manifest.tables["op"] == 1


def test_many_ranks_need_few_open_files(make_run, tmp_path, monkeypatch):
    count = 100
    info = [{"rank": rank, "op_id": 0, "name": f"op {rank}", "type": "T", "device": "CPU"} for rank in range(count)]
    ops = [
        {"rank": rank, "op_id": 0, "start_ns": rank, "dur_ns": 5, "self_ns": 5, "track": "CPU"} for rank in range(count)
    ]
    run = make_run({"op": ops, "op_info": info})
    write(run, tmp_path / "ours.json", Choice())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_now = max(int(entry.name) for entry in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + 80, hard))
    try:
        again = imported(tmp_path / "ours.json", tmp_path / "again")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert totals(again) == totals(run)
