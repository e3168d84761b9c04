"""JSON of pytest-benchmark as one side of a comparison."""

import json

import pytest

from pipeprof.errors import SourceError, UsageError
from pipeprof.experiment.compare import compare_sides
from pipeprof.read.benchmarks import is_benchmark, read_benchmarks
from pipeprof.record.baseline import appended, without_old
from pipeprof.record.note import sentence


def write(path, median=0.5, when="2026-01-01T00:00:00+00:00", node="box", **more):
    content = {
        "machine_info": {"node": node, "machine": "x86_64", "system": "Linux", "python_version": "3.11.2",
                         "cpu": {"brand_raw": "A", "count": 2}},
        "commit_info": {"id": "abc", "dirty": False},
        "benchmarks": [{"fullname": "test_x.py::test_a", "stats": {"median": median, "rounds": 5}}],
        "datetime": when,
    }  # fmt: skip
    path.write_text(json.dumps(content | more))
    return path


def test_every_file_is_a_repetition_in_the_order_of_time(tmp_path):
    late = write(tmp_path / "a.json", 0.7, "2026-01-02T00:00:00+00:00")
    early = write(tmp_path / "b.json", 0.5)
    found = read_benchmarks([late, early], "both")
    assert found.values == {"benchmark/test_x.py::test_a": {0: 0.5, 1: 0.7}}
    assert found.reps[0].order < found.reps[1].order
    assert found.jobs == {found.reps[0].job}
    assert found.git == {"revision": "abc", "dirty": False}


def test_its_place_in_time_is_that_of_other_runs(tmp_path):
    found = read_benchmarks([write(tmp_path / "a.json", when="2026-01-01T00:00:00.123457+00:00")], "x")
    assert found.reps[0].order == 1_767_225_600_123_457_000


@pytest.mark.parametrize("when", ["9999-12-31T00:00:00+00:00", "0001-01-01T00:00:00+00:00", "0001-01-01T00:00:00", "x"])
def test_a_time_that_cannot_be_is_named(tmp_path, when):
    with pytest.raises(SourceError, match=f"time `{when[:4]}.*a.json"):
        read_benchmarks([write(tmp_path / "a.json", when=when)], "x")


def test_old_benchmarks_leave_a_baseline_and_those_without_a_time_stay(tmp_path):
    days = ("2026-01-01", "2026-03-01", "2026-03-02")
    machine = {"node": "box", "cpu": {"count": 2}}
    sides = [
        read_benchmarks(
            [
                write(
                    tmp_path / f"{at}.json", at + 1.0, f"{day}T00:00:00+00:00", machine_info=machine | {"job": f"j{at}"}
                )
            ],
            "x",
        )
        for at, day in enumerate(days)
    ]
    joined = appended(appended(sides[0], sides[1]), sides[2])
    assert without_old(joined, None, 30)[0].jobs == {"j1", "j2"}
    sides[0].reps[0].order //= 10**6  # ms, as it was stored once
    joined = appended(appended(sides[0], sides[1]), sides[2])
    assert [rep.job for rep in sorted(joined.reps.values(), key=lambda rep: rep.order)] == ["j0", "j1", "j2"]
    assert without_old(joined, None, 30)[0].jobs == {"j0", "j1", "j2"}
    assert without_old(joined, 2, 30)[0].jobs == {"j1", "j2"}


def test_a_real_file_is_read(pytester_benchmark):
    assert is_benchmark(pytester_benchmark)
    (values,) = read_benchmarks([pytester_benchmark], "x").values.values()
    assert 0 < values[0] < 1


@pytest.fixture
def pytester_benchmark(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # nothing runs beside it: benchmarks count
    import subprocess
    import sys

    (tmp_path / "test_one.py").write_text("def test_sum(benchmark):\n    benchmark(sum, range(100))\n")
    out = tmp_path / "out.json"
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "--benchmark-json", str(out), str(tmp_path)]
    done = subprocess.run([*words, "--benchmark-max-time", "0.05"], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode()
    return out


def test_files_of_two_machines_are_refused(tmp_path):
    with pytest.raises(SourceError, match="differ in host"):
        read_benchmarks([write(tmp_path / "a.json"), write(tmp_path / "b.json", node="other")], "x")


def test_jobs_of_one_host_are_told_apart_by_what_the_file_says(tmp_path):
    machine = {"node": "box", "machine": "x86_64", "system": "Linux", "python_version": "3.11.2", "cpu": {"count": 2}}
    named = [write(tmp_path / f"{job}.json", machine_info=machine | {"job": job}) for job in ("ci:1", "ci:2")]
    unnamed = write(tmp_path / "null.json", machine_info=machine | {"job": None})
    assert read_benchmarks(named, "x").jobs == {"ci:1", "ci:2"}
    (job,) = read_benchmarks([unnamed], "x").jobs
    assert job.startswith("node:")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"machine_info": {}, "benchmarks": [{"fullname": 3}], "datetime": ""}']
)
def test_damaged_files_are_named(tmp_path, text):
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(SourceError, match=r"bad\.json"):
        read_benchmarks([path], "x")


def test_other_json_is_no_benchmark_file(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"benchmarks": 3}')
    assert not is_benchmark(path)
    assert not is_benchmark(tmp_path)


def test_a_benchmark_that_is_there_twice_is_refused(tmp_path):
    twice = [{"fullname": "a", "stats": {"median": 1.0}}, {"fullname": "a", "stats": {"median": 2.0}}]
    with pytest.raises(SourceError, match=r"a\.json.*`a` twice"):
        read_benchmarks([write(tmp_path / "a.json", benchmarks=twice)], "x")


def test_a_machine_that_is_no_table_is_named(tmp_path):
    with pytest.raises(SourceError, match=r"`cpu` of machine_info in .*a\.json"):
        read_benchmarks([write(tmp_path / "a.json", machine_info={"cpu": "fast"})], "x")


def test_a_copy_counts_but_is_said_to_be_one(tmp_path):
    paths = [write(tmp_path / f"{number}.json") for number in range(2)]
    (stored,) = read_benchmarks(paths, "x").notes
    assert stored["code"] == "copied_file"
    assert "1.json` is a copy of" in sentence(stored)
    assert read_benchmarks([paths[0], write(tmp_path / "1.json", 0.6)], "x").notes == []


def test_a_file_is_not_compared_with_itself_but_with_one_of_the_same_times(tmp_path):
    one, copy = write(tmp_path / "1.json"), write(tmp_path / "copy.json")
    later = write(tmp_path / "2.json", when="2026-01-02T00:00:00+00:00")
    sides = [read_benchmarks([path], "x") for path in (one, copy, later)]
    with pytest.raises(UsageError, match="a copy of one of"):
        compare_sides(sides[0], sides[1])
    assert compare_sides(sides[0], sides[2])["exit_code"] == 4


def test_a_file_that_is_not_utf_8_is_no_benchmark_and_damaged(tmp_path):
    path = write(tmp_path / "a.json", node="b?x")
    path.write_bytes(path.read_bytes().replace(b"?", b"\xff"))
    assert not is_benchmark(path)
    with pytest.raises(SourceError, match="damaged benchmark file"):
        read_benchmarks([path], "x")
