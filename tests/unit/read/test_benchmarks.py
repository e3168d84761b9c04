"""JSON of pytest-benchmark as one side of a comparison."""

import json
import subprocess
import sys

import pytest

from pipeprof.errors import SourceError, UsageError
from pipeprof.experiment.compare import compare_sides
from pipeprof.read.benchmarks import is_benchmark, read_benchmarks
from pipeprof.record.baseline import appended, without_old
from pipeprof.record.note import sentence

MACHINE = {"node": "box", "machine": "x86_64", "system": "Linux", "python_version": "3.11.2", "cpu": {"count": 2}}


@pytest.fixture
def write(tmp_path):
    """`write("a.json")`: a file with one benchmark."""

    def to(name, median=0.5, when="2026-01-01T00:00:00+00:00", **more):
        benchmark = {"fullname": "test_x.py::test_a", "stats": {"median": median, "rounds": 5}}
        content = {"machine_info": MACHINE, "commit_info": {"id": "abc", "dirty": False}, "benchmarks": [benchmark]}
        tmp_path.joinpath(name).write_text(json.dumps(content | {"datetime": when} | more))
        return tmp_path / name

    return to


def read(*paths):
    return read_benchmarks(list(paths), "x")


def test_every_file_is_a_repetition_in_the_order_of_time(write):
    found = read(write("a.json", 0.7, "2026-01-02T00:00:00+00:00"), write("b.json", 0.5))
    assert found.values == {"benchmark/test_x.py::test_a": {0: 0.5, 1: 0.7}}
    assert found.reps[0].order < found.reps[1].order
    assert found.jobs == {found.reps[0].job}
    assert found.git == {"revision": "abc", "dirty": False}


def test_its_place_in_time_is_that_of_other_runs(write):
    found = read(write("a.json", when="2026-01-01T00:00:00.123457+00:00"))
    assert found.reps[0].order == 1_767_225_600_123_457_000


def test_old_benchmarks_leave_a_baseline_and_those_without_a_time_stay(write):
    days = enumerate(("2026-01-01", "2026-03-01", "2026-03-02"))
    one, two, three = (
        read(write(f"{at}.json", at + 1.0, f"{day}T00:00:00+00:00", machine_info=MACHINE | {"job": f"j{at}"}))
        for at, day in days
    )
    joined = appended(appended(one, two), three)
    assert without_old(joined, None, 30)[0].jobs == {"j1", "j2"}
    one.reps[0].order //= 10**6  # ms, as it was stored once
    joined = appended(appended(one, two), three)
    assert [rep.job for rep in sorted(joined.reps.values(), key=lambda rep: rep.order)] == ["j0", "j1", "j2"]
    assert without_old(joined, None, 30)[0].jobs == {"j0", "j1", "j2"}
    assert without_old(joined, 2, 30)[0].jobs == {"j1", "j2"}


def test_a_real_file_is_read(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # nothing runs beside it: benchmarks count
    (tmp_path / "test_one.py").write_text("def test_sum(benchmark):\n    benchmark(sum, range(100))\n")
    out = tmp_path / "out.json"
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "--benchmark-json", str(out), str(tmp_path)]
    done = subprocess.run([*words, "--benchmark-max-time", "0.05"], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode()
    assert is_benchmark(out)
    (values,) = read(out).values.values()
    assert 0 < values[0] < 1


def test_files_of_two_machines_are_refused(write):
    with pytest.raises(SourceError, match="differ in host"):
        read(write("a.json"), write("b.json", machine_info=MACHINE | {"node": "other"}))


def test_jobs_of_one_host_are_told_apart_by_what_the_file_says(write):
    named = [write(f"{job}.json", machine_info=MACHINE | {"job": job}) for job in ("ci:1", "ci:2")]
    assert read(*named).jobs == {"ci:1", "ci:2"}
    (job,) = read(write("null.json", machine_info=MACHINE | {"job": None})).jobs
    assert job.startswith("node:")


TWICE = [{"fullname": "a", "stats": {"median": median}} for median in (1.0, 2.0)]
IMPOSSIBLE = ("9999-12-31T00:00:00+00:00", "0001-01-01T00:00:00+00:00", "0001-01-01T00:00:00", "x")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        *(({"datetime": when}, f"time `{when[:4]}.*a.json") for when in IMPOSSIBLE),
        ({"benchmarks": TWICE}, r"a\.json.*`a` twice"),
        ({"machine_info": {"cpu": "fast"}}, r"`cpu` of machine_info in .*a\.json"),
        ("", r"a\.json"),
        ("{", r"a\.json"),
        ("[]", r"a\.json"),
        ('{"machine_info": {}, "benchmarks": [{"fullname": 3}], "datetime": ""}', r"a\.json"),
    ],
)
def test_a_file_that_cannot_be_is_named(write, content, said):
    path = write("a.json", **(content if isinstance(content, dict) else {}))
    if isinstance(content, str):
        path.write_text(content)
    with pytest.raises(SourceError, match=said):
        read(path)


def test_other_json_is_no_benchmark_file(write, tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"benchmarks": 3}')
    assert not is_benchmark(path)
    assert not is_benchmark(tmp_path)
    path = write("a.json", machine_info=MACHINE | {"node": "b?x"})
    path.write_bytes(path.read_bytes().replace(b"?", b"\xff"))  # no UTF-8
    assert not is_benchmark(path)
    with pytest.raises(SourceError, match="damaged benchmark file"):
        read(path)


def test_a_copy_counts_but_is_said_to_be_one(write):
    paths = [write("0.json"), write("1.json")]
    (stored,) = read(*paths).notes
    assert stored["code"] == "copied_file"
    assert "1.json` is a copy of" in sentence(stored)
    assert read(paths[0], write("1.json", 0.6)).notes == []


def test_a_file_is_not_compared_with_itself_but_with_one_of_the_same_times(write):
    later = write("2.json", when="2026-01-02T00:00:00+00:00")
    sides = [read(path) for path in (write("1.json"), write("copy.json"), later)]
    with pytest.raises(UsageError, match="a copy of one of"):
        compare_sides(sides[0], sides[1])
    assert compare_sides(sides[0], sides[2])["exit_code"] == 4
