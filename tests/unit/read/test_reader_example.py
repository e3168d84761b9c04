"""The reader that CONTRIBUTING.md shows: what a reader has without a line of its own."""

import gzip
import json
import sys
from pathlib import Path

import pytest
from stored_rows import rows

from pipeprof.errors import SourceError
from pipeprof.read import foreign
from pipeprof.record import limits, store

FOLDER = Path(__file__).parents[3] / "examples" / "reader"
LINES = (
    {"step": 0, "start_us": "1000", "dur_us": "40"},
    {"op": "Conv2D", "name": "net/conv1", "start_us": "1001.5", "dur_us": "30.25", "step": 0},
    {"op": "ReLU", "start_us": "1032", "dur_us": "2.125", "step": 0},
    {"op": "Conv2D", "name": "net/conv1", "start_us": "1041", "dur_us": "30", "step": None},
)


@pytest.fixture(autouse=True)
def _example(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setenv("PYTHONPATH", str(FOLDER))
    import op_lines

    reader = foreign.Reader(op_lines.KIND, op_lines.WHAT, op_lines.recognise, op_lines.add_files)
    monkeypatch.setattr(foreign, "READERS", (*foreign.READERS, reader))
    yield
    sys.modules.pop("op_lines", None)


def text(later_us=0):
    moved = ({**line, "start_us": str(float(line["start_us"]) + later_us)} for line in LINES)
    return "".join(json.dumps(line) + "\n" for line in moved).encode()


@pytest.fixture
def raw(tmp_path):
    """`raw({name: content})`: a folder with these files."""

    def write(files):
        (tmp_path / "raw").mkdir()
        for name, content in files.items():
            (tmp_path / "raw" / name).write_bytes(content)
        return tmp_path / "raw"

    return write


def test_the_example_is_short():
    assert len((FOLDER / "op_lines.py").read_text().splitlines()) < 80


def test_ranks_are_on_one_clock_plain_or_packed(tmp_path, raw):
    run = foreign.import_path(raw({"ops_0.log": text(), "ops_1.log": gzip.compress(text(5))}), tmp_path / "run")
    assert run.manifest.state == "complete"
    assert rows(run, "op", "rank", "start_ns", "dur_ns", "step") == [
        (0, 1_500, 30_250, 0), (0, 32_000, 2_125, 0), (0, 41_000, 30_000, None),
        (1, 6_500, 30_250, 0), (1, 37_000, 2_125, 0), (1, 46_000, 30_000, None),
    ]  # fmt: skip
    assert rows(run, "step", "rank", "start_ns", "end_ns") == [(0, 0, 40_000), (1, 5_000, 45_000)]
    assert rows(run, "op_info", "rank", "name", "type", "scope")[:2] == [
        (0, "net/conv1", "Conv2D", "net"), (0, "ReLU", "ReLU", None),
    ]  # fmt: skip
    assert run.manifest.reps[0].dur_ns == 76_000
    assert [item.what for item in run.manifest.not_measured] == ["queue"]


def test_several_processes_read_the_same(tmp_path, raw, several):
    source = raw({f"rank{rank}.log": text(rank) for rank in range(3)})
    alone = foreign.import_path(source, tmp_path / "alone")
    several(2)
    told = []
    spread = foreign.import_path(source, tmp_path / "several", progress=told.append)
    assert any("of 3 done" in text for text in told)
    for table in ("op", "op_info", "step"):
        assert store.read(spread, table).equals(store.read(alone, table))


def test_damage_is_said_and_the_rest_is_read(tmp_path, raw):
    packed = gzip.compress(b"".join(text(n) for n in range(5000)))
    files = {"rank0.log": text() + b'{"op": "Cut', "rank1.log": packed[: len(packed) // 2]}
    run = foreign.import_path(raw(files), tmp_path / "run")
    said = {item.code: item.message for item in run.manifest.warnings}
    assert said["bad_value"].endswith("1 entry was left out: line that is no operator and no step (first: line 5)")
    assert "rank1.log" in said["damaged_file"]
    assert run.manifest.state == "partial"
    assert {rank for (rank,) in rows(run, "op", "rank")} == {0, 1}


def test_limits_hold(tmp_path, monkeypatch):
    path = tmp_path / "rank0.log"
    path.write_bytes(text())
    monkeypatch.setenv(limits.ROWS, "2")
    with pytest.raises(SourceError, match="more than 2 rows of the table `op`"):
        foreign.import_path(path, tmp_path / "run")
    assert [found.name for found in tmp_path.iterdir()] == ["rank0.log"]
    monkeypatch.delenv(limits.ROWS)
    monkeypatch.setenv(limits.BYTES, "100")
    with pytest.raises(SourceError):
        foreign.import_path(path, tmp_path / "run")
