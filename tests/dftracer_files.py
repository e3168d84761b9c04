"""Small traces of DFTracer for tests."""

import gzip
import json


def event(number, name, start, end, category="reader", tid=1):
    return {
        "id": f"{number}", "name": name, "cat": category, "pid": "0", "tid": f"{tid}", "ts": f"{start}",
        "dur": f"{end - start}", "ph": "X", "args": {"hostname": "h"},
    }  # fmt: skip


# Of DLIO: a reader of its own thread, two blocks of computing, a checkpoint between them. Microseconds.
DLIO = [
    event(1, "TorchDataLoader.read", 100, 110, "data_loader"),
    event(1, "NPZReader.open", 120, 480, tid=2),
    event(2, "TorchFramework.compute", 500, 600, "ai_framework"),
    event(3, "TorchFramework.checkpoint", 650, 700, "ai_framework"),
    event(2, "NPZReader.open", 610, 900, tid=2),
    event(4, "TorchFramework.compute", 1000, 1100, "ai_framework"),
]


def written(path, lines, ending=",\n"):
    path.write_bytes(gzip.compress(("[\n" + ending.join(map(json.dumps, lines)) + "\n").encode()))
    return path


def write_lines(folder):
    """A folder with a trace that is not packed."""
    folder.mkdir()
    folder.joinpath("trace.pfw").write_text("[\n" + "".join(f"{json.dumps(line)}\n" for line in DLIO), encoding="utf-8")
    return folder
