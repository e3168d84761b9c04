"""Adversarial traces: an import is refused in words, or makes a run whose tables can be read. Nothing else ever happens."""

import gzip
import json
import shutil
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from damages import damage
from fuzz_cases import CASES, PLACE
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kineto_files import imported, memory, op, training

from pipeprof.errors import PipeprofError
from pipeprof.read.chrome.reader import KINETO
from pipeprof.record import store

pytestmark = pytest.mark.slow  # makes up its input

many = settings(max_examples=200 + CASES // 2, deadline=None, database=None)
odd_numbers = st.sampled_from([0, -1, 2**53 + 1, 2**62, 2**63, 2**64, 10**30, -(2**63), 1e300, 0.1, 5e-324])
odd_text = st.one_of(st.text(max_size=8), st.sampled_from([
    "", "[memory]", "ProfilerStep#", "ProfilerStep#9" + "9" * 40, "enumerate(DataLoader)#", "\x00", "\ud800",
    "<script>alert(1)</script>", '},{"ph":"X"', "a" * 5000, "NaN", "1e999999999", "-", "1.", ".5", "0x10", " 7 ",
    "Ascend Hardware", "HCCL", "CPU functions", "CUDA functions", "[[2, 3], [3, 4]]", "CPU",
]))  # fmt: skip
scalars = st.one_of(st.none(), st.booleans(), st.integers(-5, 300), odd_numbers, odd_text)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=2)),
    max_leaves=4,
)
SEEN = set()
KEYS = [
    "External id", "Sequence number", "Fwd thread id", "Input Dims", "Input type", "Call stack", "correlation", "bytes",
    "Bytes", "Addr", "Device Type", "Device Id", "Total Allocated", "Total Reserved", "In msg nelems", "dtype", "name",
    "Process Group Name", "labels", "value", "external id", "Concrete Inputs", "flops",
]  # fmt: skip
CATEGORIES = [
    "cpu_op", "user_annotation", "python_function", "kernel", "gpu_memcpy", "cuda_runtime", "cpu_instant_event", "async_npu",
    "HostToDevice", "Operator", "Kernel", "", "x",
]  # fmt: skip
NAMES = [
    "a", "b", "[memory]", "ProfilerStep#3", "enumerate(DataLoader)#X.__next__", "MmBackward0", "process_name",
    "ncclAllReduce", "aten::conv2d", "aten::mm", "LaunchKernel_x",
]  # fmt: skip
events = st.fixed_dictionaries(
    {
        "ph": st.sampled_from(["X", "X", "X", "i", "s", "f", "t", "M", "C", "b", "B", "", "XX"]),
        "name": st.one_of(st.sampled_from(NAMES), values),
        "ts": st.one_of(st.integers(0, 60), st.integers(0, 60).map(str), st.floats(0, 50), values),
        "pid": st.one_of(st.integers(0, 2), values),
    },
    optional={
        "cat": st.one_of(st.sampled_from(CATEGORIES), values),
        "tid": st.one_of(st.integers(0, 2), values),
        "dur": st.one_of(st.integers(0, 30), st.integers(-3, -1), values),
        "id": values,
        "args": st.one_of(st.dictionaries(st.sampled_from(KEYS), values, max_size=4), values),
    },
)
good = st.builds(op, st.sampled_from("abc"), st.integers(0, 50), st.integers(0, 20))


def judge(content, name="x.json"):
    """The run's state, or None when the import was refused; nothing is left behind then."""
    place = Path(tempfile.mkdtemp(prefix="pipeprof-kineto-", dir=PLACE))
    try:
        path = place / name
        path.write_bytes(content)
        KINETO.recognise(path)
        run = imported(place / "run", path)
        check_tables(run)
        assert run.manifest.state in ("complete", "partial")
        assert run.manifest.state == "complete" or run.manifest.reason
        check(store.read(run, "op"), overlaps="overlaps" in {warning.code for warning in run.manifest.warnings})
    except PipeprofError as error:
        assert str(path) in error.message  # noqa: PT017 - a refusal is one of two right answers
        assert error.hint  # noqa: PT017
        assert not list(place.glob("run/.kineto*"))
        return None
    else:
        return run.manifest.state
    finally:
        shutil.rmtree(place)


def check_tables(run):
    """The tables have the rows that the manifest says; of every new kind of run, all of them are read."""
    kind = (run.manifest.state, *run.manifest.tables, *sorted({warning.code for warning in run.manifest.warnings}))
    for table, count in run.manifest.tables.items():
        if kind in SEEN:
            assert sum(pq.read_metadata(file).num_rows for file in run.files(table)) == count > 0
        else:
            assert store.read(run, table).num_rows == count > 0
    SEEN.add(kind)


def check(ops, *, overlaps):
    """Own times are never more than the whole, and negative only where events overlap partly; times begin at 0."""
    for row in ops.to_pylist():
        assert row["self_ns"] <= row["dur_ns"], row
        assert row["self_ns"] >= 0 or overlaps, row
        assert row["start_ns"] >= 0


def text_of(listed, header):
    text = json.dumps(listed)
    if header is not None:
        text = json.dumps(header)[:-1] + ', "traceEvents": ' + text + "}"
    return text.encode("utf-8", "surrogatepass")


HEADERS = st.sampled_from([
    None, {"a": 1}, {"schemaVersion": 1, "baseTimeNanoseconds": 5}, {"baseTimeNanoseconds": "x"},
    {"baseTimeNanoseconds": 2**70},
])  # fmt: skip
RANKS = st.fixed_dictionaries({"schemaVersion": st.just(1), "distributedInfo": values, "baseTimeNanoseconds": values})
listed = st.lists(st.one_of(events, good, st.just(memory(3, 8, 1))), min_size=1, max_size=12)


@many
@given(listed, st.one_of(HEADERS, RANKS))
@example([op("a", 0, 1), op("b", 2**60, 1)], {"baseTimeNanoseconds": 2**62})
@example([op("a", "1e99", 1), op("a", 1, "1e-400")], None)
@example([{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 2**55}, op("b", -(2**55), 1)], None)
def test_any_events_are_imported_or_refused(found, header):
    judge(text_of(found, header))


SOUND = text_of(training(4), {"schemaVersion": 1})


@many
@given(seed=st.integers(0, 2**40), again=st.booleans(), kept=st.sampled_from([None, 1.0, 0.99, 0.5, 0.01]))
def test_any_damage_is_reported(seed, again, kept):
    content = damage(SOUND, seed)
    if again:
        content = damage(content, seed + 1)
    if kept is None:
        judge(content)
    else:
        packed = gzip.compress(content, mtime=0)
        judge(packed[: int(kept * len(packed))], "x.json.gz")


DEEP = 100_000
ONE = b'[{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1'
CASES = {
    "deep lists": ONE + b', "args": {"Input Dims": ' + b"[" * DEEP + b"]" * DEEP + b"}}]",
    "deep objects": ONE + b', "x": ' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}]",
    "never closed": ONE + b"}," + b'{"a":[' * DEEP,
    "huge name": b'[{"ph": "X", "cat": "cpu_op", "ts": 1, "dur": 1, "name": "' + b"n" * (3 << 20) + b'"}]',
    "unclosed string": ONE + b'},{"name": "' + b"n" * (3 << 20),
    "backslashes": ONE + b'},{"name": "' + b"\\" * (3 << 20),
    "huge number": b'[{"ph": "X", "cat": "cpu_op", "name": "a", "dur": 1, "ts": ' + b"9" * 100_000 + b"}]",
    "utf-16": (ONE + b"}]").decode().encode("utf-16"),
    "utf-8 with mark": b"\xef\xbb\xbf" + ONE + b"}]",
    "latin-1": b'[{"ph": "X", "cat": "cpu_op", "name": "\xe4", "ts": 1, "dur": 1}]',
    "duplicate keys": b'[{"ph": "M", "ph": "X", "cat": "cpu_op", "name": "a", "name": "b", "ts": 9, "ts": 1, "dur": 1}]',
    "not a list": b'{"schemaVersion": 1, "traceEvents": {"ph": "X"}}',
    "two lists": b'{"traceEvents": [], "traceEvents": ' + ONE + b"}]}",
    "brackets": b"[" * DEEP,
    "long prefix": b'{"schemaVersion": 1, "x": "' + b"y" * (18 << 20) + b'"',
    "nothing": b"",
    "zeros": bytes(100_000),
}
EXPECTED = {
    "utf-8 with mark": "complete", "latin-1": "complete", "duplicate keys": "complete", "never closed": "partial",
    "utf-16": None,
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_hostile_files_neither_hang_nor_crash(name):
    state = judge(CASES[name])
    assert state == EXPECTED.get(name, state)


def test_deeply_nested_calls_are_walked():
    depth = 20_000
    for names in ("f", "fg"):
        found = [
            op(names[number % len(names)], number, 2 * (depth - number) + 1, cat="python_function")
            for number in range(depth)
        ]
        assert judge(text_of(found, None)) == "complete"
