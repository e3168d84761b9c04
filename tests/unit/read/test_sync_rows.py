"""Calls that waited for the network, from marks, in the steps they began in."""

from pathlib import Path

from pipeprof.read.spool.marks import Kind, Mark
from pipeprof.read.spool.process import Process
from pipeprof.read.spool.spans import add_syncs
from pipeprof.read.spool.step_rows import Step
from pipeprof.read.tables.rows import RankRows
from pipeprof.record.schema import BY_NAME


def test_calls_go_to_the_step_they_began_in():
    marks = [
        Mark(Kind.SYNC, 0, 1, 0, begin, end) for begin, end in [(5, 9), (110, 115), (120, 150), (195, 230), (250, 260)]
    ]
    marks.append(Mark(Kind.SYNC, 0, 7, 0, 111, 112))  # its line was not written
    event = {"e": "sync_site", "t": 0, "number": 1, "call": "item", "site": "train.py:3", "via": ""}
    out = RankRows(0, 0, 0)
    process = Process(Path("proc"), {}, marks, [event])
    add_syncs(process, [Step("train", 100, 150), Step("train", 150, 200)], out, first_step=10)
    names = BY_NAME["sync"].column_names
    rows = [dict(zip(names, row, strict=True)) for row in out.rows["sync"]]
    assert [(row["step"], row["call"], row["count"], row["total_ns"], row["max_ns"]) for row in rows] == [
        (None, "item", 2, 14, 10),
        (10, "item", 2, 35, 30),
        (11, "item", 1, 35, 35),
        (10, None, 1, 1, 1),
    ]
    assert rows[0]["site"] == "train.py:3"
    assert rows[0]["via"] is None
