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


LINE, LISTS = b"x" * (1 << 20), b"[]," * (1 << 19)
COLLECTIVE = b'{"step1": {"collective": {"a@1": {"Communication Time Info": '
STEPS = b"step_num,start_point,end_point,total,fp_point"
# (name, what to write in front, what to repeat, how often) of a file that unpacks to some hundred MB or more.
BOMBS = {
    "one line of kernels": ("kernel_details.csv", HEAD.encode(), LINE, 500),
    "one line of steps": ("step_trace_raw_0_detail_time.csv", STEPS + b"\n", LINE, 500),
    "one header": ("step_trace_raw_0_detail_time.csv", STEPS + b",", LINE, 500),
    "one event": ("trace_view.json", b'[{"ph": "X", "args": "', LINE, 500),
    "one operator": ("communication.json", COLLECTIVE + b'"', LINE, 500),
    "deep": ("communication.json", COLLECTIVE, b"[" * (1 << 20), 100),
    "lists": ("communication.json", COLLECTIVE + b"[", LISTS, 200),
    "one object": ("profiler_info_0.json", b'{"config": {"common_config": 1}, "x": [', LISTS, 200),
    "one execution": ("cpu_op_execute_timestamp_0.txt", b"a;HostCpuOps;", b"1700000000000000000" * (1 << 15), 300),
    "zeros": ("ts_track.data.0.slice_0", b"", b"\0" * (1 << 20), 300),
}


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
@pytest.mark.parametrize("kind", BOMBS)
def test_a_packed_file_that_never_ends_is_refused_within_bounds(tmp_path, judge, kind):
    name, front, part, times = BOMBS[kind]
    with gzip.open(tmp_path / "raw" / f"{name}.gz", "wb", compresslevel=1) as file:
        file.write(front)
        for _ in range(times):
            file.write(part)
    assert judge().startswith(("refused", "partial"))


MARK = '{"ph": "X", "args": {"a": "\\"process_name\\" \\"thread_name\\"'


def events(form, count):
    """So many events of a list."""
    return "trace_view.json", "[", ((", " if n else "") + form(n) for n in range(count))


MANY = {  # file, what stands in front, and lines
    "names": lambda: ("kernel_details.csv", HEAD,
                      (f"name{n},type{n},core{n},{EPOCH_US + n}.000\t,1.5,0,0\n" for n in range(700_000))),
    "steps": lambda: ("kernel_details.csv", "Step Id,Stream ID," + HEAD,
                      (f"{n},1,A,T,AI_CORE,{EPOCH_US + n}.000\t,1.5,0,0\n" for n in range(3_000_000))),
    "bad rows": lambda: ("output_timeline_data_0.txt", "op_name, stream_id, start_time(ms), duration(ms)\n",
                         (f"{'x,' * (n % 50)}\n" for n in range(1_000_000))),
    "threads": lambda: events(lambda n: EVENT % ("e", n, n, EPOCH_US + n), 600_000),
    "marks": lambda: events(lambda _: MARK, 600_000),
    "loaders": lambda: events(lambda n: EVENT % ("enumerate(DataLoader)#x", 1, 1, EPOCH_US + n), 1_200_000),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", MANY)
def test_more_of_anything_than_can_be_kept_is_said(tmp_path, judge, kind):
    name, front, lines = MANY[kind]()
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
