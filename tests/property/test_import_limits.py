"""Files that are large, or made to take all memory or all time: each is read or refused within bounds."""

import gzip
import json
import resource
import subprocess
import sys
import time
import tracemalloc

import pytest
from ascend_files import EPOCH_US, write_output
from import_bench import write_profile

MEMORY_MIB = 420  # of the whole process, which begins with some 120
MANY_MIB = 520  # where as much is kept as may be: the largest needed 360
GRAPH_MIB = 90  # of what Python holds: 73, and 111 when texts that differ for each operator were kept in a dict
SECONDS = 300  # of CPU time: the longest needs 15 on a slow machine, and one of quadratic time hours
RUN = """
import sys
from pathlib import Path
from pipeprof.errors import PipeprofError
from pipeprof.read.foreign import import_path
try:
    run = import_path(Path(sys.argv[1]), Path(sys.argv[2]))
    print(run.manifest.state, len(run.manifest.warnings))
except PipeprofError as error:
    print("refused", error.message)
status = Path("/proc/self/status").read_text()  # ru_maxrss would begin with that of the process that started this one
print(int(status.partition("VmHWM:")[2].split()[0]) // 1024)
"""
HEAD = "Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim\n"
EVENT = '{"ph": "X", "name": "%s", "pid": %s, "tid": %s, "ts": "%d.000", "dur": 1.0}'


def bombs(kind):
    """(name, what to write in front, what to repeat, how often) of a file that unpacks to some hundred MB or more."""
    line = b"x" * (1 << 20)
    return {
        "one line of kernels": ("kernel_details.csv", HEAD.encode(), line, 500),
        "one line of steps": ("step_trace_raw_0_detail_time.csv", b"step_num,start_point,end_point,total,fp_point\n", line, 500),
        "one header": ("step_trace_raw_0_detail_time.csv", b"step_num,start_point,end_point,total,fp_point,", line, 500),
        "one event": ("trace_view.json", b'[{"ph": "X", "args": "', line, 500),
        "one operator": ("communication.json", b'{"step1": {"collective": {"a@1": {"Communication Time Info": "', line, 500),
        "deep": ("communication.json", b'{"step1": {"collective": {"a@1": {"Communication Time Info": ', b"[" * (1 << 20), 100),
        "lists": ("communication.json", b'{"step1": {"collective": {"a@1": {"Communication Time Info": [', b"[]," * (1 << 19), 200),
        "one object": ("profiler_info_0.json", b'{"config": {"common_config": 1}, "x": [', b"[]," * (1 << 19), 200),
        "one execution": ("cpu_op_execute_timestamp_0.txt", b"a;HostCpuOps;", b"1700000000000000000" * (1 << 15), 300),
        "zeros": ("ts_track.data.0.slice_0", b"", b"\0" * (1 << 20), 300),
    }[kind]  # fmt: skip


@pytest.fixture
def judge(tmp_path):
    def run(most_mib=MEMORY_MIB):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, "-c", RUN, str(tmp_path / "raw"), str(tmp_path / "run")], capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode == 0, done.stderr[-2000:]
        assert done.stderr == ""
        said, peak = done.stdout.splitlines()
        assert int(peak) < most_mib, said
        assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < SECONDS, said
        return said

    (tmp_path / "raw").mkdir()
    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    ["one line of kernels", "one line of steps", "one header", "one event", "one operator", "deep", "lists", "one object",
     "one execution", "zeros"],
)  # fmt: skip
def test_a_packed_file_that_never_ends_is_refused_within_bounds(tmp_path, judge, kind):
    name, front, part, times = bombs(kind)
    with gzip.open(tmp_path / "raw" / f"{name}.gz", "wb", compresslevel=1) as file:
        file.write(front)
        for _ in range(times):
            file.write(part)
    assert judge().startswith(("refused", "partial"))


def many_names():
    return (
        "kernel_details.csv",
        HEAD,
        (f"name{n},type{n},core{n},{EPOCH_US + n}.000\t,1.5,0,0\n" for n in range(700_000)),
    )


def many_steps():
    lines = (f"{n},1,A,T,AI_CORE,{EPOCH_US + n}.000\t,1.5,0,0\n" for n in range(3_000_000))
    return "kernel_details.csv", "Step Id,Stream ID," + HEAD, lines


def many_bad_rows():
    lines = (f"{'x,' * (n % 50)}\n" for n in range(1_000_000))
    return "output_timeline_data_0.txt", "op_name, stream_id, start_time(ms), duration(ms)\n", lines


def many_threads():
    lines = ((", " if n else "") + EVENT % ("e", n, n, EPOCH_US + n) for n in range(600_000))
    return "trace_view.json", "[", lines


def many_marks():
    lines = (
        (", " if n else "") + '{"ph": "X", "args": {"a": "\\"process_name\\" \\"thread_name\\"' for n in range(600_000)
    )
    return "trace_view.json", "[", lines


def many_loaders():
    name = "enumerate(DataLoader)#x"
    lines = ((", " if n else "") + EVENT % (name, 1, 1, EPOCH_US + n) for n in range(1_200_000))
    return "trace_view.json", "[", lines


@pytest.mark.slow
@pytest.mark.parametrize("make", [many_names, many_steps, many_bad_rows, many_threads, many_marks, many_loaders])
def test_more_of_anything_than_can_be_kept_is_said(tmp_path, judge, make):
    name, front, lines = make()
    with (tmp_path / "raw" / name).open("w", encoding="ascii") as file:
        file.write(front)
        file.writelines(lines)
        file.write("]" if front == "[" else "")
    assert not judge(MANY_MIB).endswith(" 0")


@pytest.mark.slow
def test_hundreds_of_ranks_are_read_in_seconds(tmp_path):
    from pipeprof.read.foreign import import_path

    for rank in range(300):
        write_output(tmp_path / "job" / f"host{rank}_ascend_pt", rank=rank)
    start = time.process_time()
    run = import_path(tmp_path / "job", tmp_path / "run")
    assert [rank.rank for rank in run.manifest.reps[0].ranks] == list(range(300))
    assert time.process_time() - start < SECONDS
    assert json.loads((run.path / "run.json").read_text())["tables"]["op"] == 300


@pytest.mark.slow
def test_a_profile_of_a_hundred_thousand_operators_takes_little_more_than_their_numbers(tmp_path):
    """Counted object by object: the peak of a whole process differs by 30 MiB from one run to the next."""
    from pipeprof.read.foreign import import_path

    (tmp_path / "raw").mkdir()
    write_profile(tmp_path / "raw" / "profile.json", 100_000)
    tracemalloc.start()
    try:
        run = import_path(tmp_path / "raw", tmp_path / "run")
        peak = tracemalloc.get_traced_memory()[1] >> 20
    finally:
        tracemalloc.stop()
    assert run.manifest.state == "complete"
    assert peak < GRAPH_MIB
