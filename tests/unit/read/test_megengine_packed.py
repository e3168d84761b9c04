"""Files of MegEngine that are gzipped, or have a byte order mark in front, are the same files."""

import gzip
import json

import pytest
from megengine_files import profile

from pipeprof.errors import SourceError
from pipeprof.read.foreign import import_path
from pipeprof.read.megengine import files as kinds
from pipeprof.read.megengine.profile import read_profile
from pipeprof.record import store
from pipeprof.record.schema import BY_NAME

MARK = b"\xef\xbb\xbf"
EVENTS = [
    {"name": "thread_name", "ph": "M", "tid": 1, "pid": 42, "args": {"name": "worker"}},
    {"name": "Conv", "ph": "B", "tid": 1, "pid": 42, "ts": 1.5},
    {"name": "Conv", "ph": "E", "tid": 1, "pid": 42, "ts": 4, "args": {"__id__": "1", "__name__": "c"}},
]
CLOCK = {"name": "Metadata", "ph": "I", "pid": 42, "tid": 0, "ts": 0, "args": {"localTime": 1625027241000000}}
PADDING = [{"name": "pad", "ph": "i", "tid": 1, "pid": 42, "ts": 1 + number} for number in range(2000)]
FLOW = (
    '<svg xmlns:tag="https://megengine.org.cn"><rect tag:type="tensor" tag:name="tensör" tag:address="0x100" '
    'tag:size="1KB " tag:produced="5us " tag:erased="9us "/></svg>'
)
MEMORY = {
    "chunk": {"0": {"id": "0", "time_begin": "0", "time_end": "1", "logic_addr_begin": "0", "logic_addr_end": "64"}}
}
LOG = "load model: 1.5ms\n=== prepare: 2ms; going to warmup\nwarm up 0  3ms\nrun testcase: 0 \niter 0/1: 4 ms (exec=1 ms)\n"
FILES = {
    "profile.json": json.dumps(profile()),
    "42.chrome_timeline.json": json.dumps({"traceEvents": EVENTS, "metadata": {"localTime": "1625027241000000000"}}),
    "43.chrome_timeline.json": json.dumps(
        {"traceEvents": EVENTS + PADDING, "metadata": {"localTime": "1625027241000000000"}}
    ),
    "44.chrome_timeline.json": json.dumps([CLOCK, *EVENTS]),
    "42.memory_flow.svg": FLOW,
    "StaticMemoryInfo.json": json.dumps(MEMORY),
    "run.log": LOG,
}


def packed(data):
    return gzip.compress(data)


def marked(data):
    return MARK + data


def both(data):
    return gzip.compress(MARK + data)


def tables(run):
    return {table: store.read(run, table).to_pylist() for table in BY_NAME if run.files(table)}


@pytest.mark.parametrize("dress", [packed, marked, both])
@pytest.mark.parametrize("name", FILES)
def test_the_dress_of_a_file_changes_nothing(tmp_path, name, dress):
    plain = tmp_path / "plain" / name
    other = tmp_path / "other" / (name if dress is marked else f"{name}.gz")
    for path, data in ((plain, FILES[name].encode()), (other, dress(FILES[name].encode()))):
        path.parent.mkdir()
        path.write_bytes(data)
    one, two = (import_path(path, tmp_path / path.parent.name / "run") for path in (plain, other))
    assert tables(one)
    assert tables(two) == tables(one)
    assert two.manifest.state == one.manifest.state
    assert [warning.code for warning in two.manifest.warnings] == [warning.code for warning in one.manifest.warnings]


def test_a_packed_profile_that_is_cut_off_gives_what_is_there(tmp_path):
    path = tmp_path / "profile.json.gz"
    filler = {f"x{number}": {"id": f"{number * 7919 % 104729}"} for number in range(40_000)}
    content = profile()
    content["graph_exec"]["operator"] |= filler
    whole = gzip.compress(json.dumps(content).encode())
    path.write_bytes(whole[: len(whole) * 3 // 4])
    assert kinds.identify(path) == kinds.PROFILE
    found = read_profile(path)
    assert found.measured
    assert "cannot read" in str(found.damage)


@pytest.mark.parametrize(
    "data",
    [b"\x1f\x8b", b"\x1f\x8b\x08\x00garbage", gzip.compress(b"{" * 100, mtime=0)[:-12]],
    ids=["empty", "garbage", "cut off"],
)
def test_what_is_packed_and_damaged_from_the_begin_is_no_file_of_megengine(tmp_path, data):
    path = tmp_path / "profile.json"
    path.write_bytes(data)
    assert kinds.identify(path) is None
    with pytest.raises(SourceError, match="cannot read"):
        read_profile(path)
