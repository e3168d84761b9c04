"""Static-graph profiles of every generation, the scanner below them, and files of MegEngine in other dress."""

import gzip
import io
import json
from pathlib import Path

import msgspec
import pytest
from megengine_files import GPU, footprint, profile, times, var, write

from pipeprof.errors import SourceError
from pipeprof.read.foreign import import_path, recognise
from pipeprof.read.megengine import files as kinds
from pipeprof.read.megengine.profile import read_profile
from pipeprof.read.source import json_stream
from pipeprof.record import store
from pipeprof.record.schema import BY_NAME


@pytest.fixture
def imported(tmp_path):
    def read(content, **how):
        run = import_path(write(tmp_path / "profile.json", content, **how), tmp_path / "run", force=True)
        return run, {table: store.read(run, table).to_pylist() for table in run.manifest.tables}

    return read


def columns(rows, names, **where):
    """Tuples of the rows whose columns have these values."""
    chosen = (row for row in rows if all(row[name] == value for name, value in where.items()))
    return [tuple(row[name] for name in names.split()) for row in chosen]


def params(content, name):
    """That column of the operators, by their number in the profile."""
    return {row["source_id"]: json.loads(row[name]) if row[name] else None for row in content}


def test_executions_on_both_sides_and_what_the_operators_are(imported):
    run, rows = imported(profile())
    assert (run.manifest.state, run.manifest.warnings) == ("complete", [])
    assert columns(rows["op"], "op_id start_ns dur_ns wait_ns track", side="device") == [
        (0, 0, 4000, 1000, GPU), (1, 4000, 6000, 0, GPU), (2, 10000, 1000, 0, GPU), (3, 11000, 2000, 1000, GPU),
    ]  # fmt: skip
    assert columns(rows["op"], "op_id dur_ns wait_ns track", side="host") == [
        (0, 500, 100, "worker"), (1, 500, 100, "worker"), (2, 500, None, "worker"), (3, 500, 100, "worker"),
    ]  # fmt: skip
    facts = "op_id source_id name type flops bytes in_shapes out_shapes in_strides in_types"
    assert columns(rows["op_info"], facts) == [
        (0, "2", "conv(a)[2]", "ConvolutionForward", 4000, 1024, "[[1,3]]", "[[1,3]]", None, '["Float32"]'),
        (1, "4", "conv(b)[4]", "ConvolutionForward", 9000, 4096, "[[1,3]]", "[[1,3]]", None, '["Int8"]'),
        (2, "6", "reshape[6]", "Reshape", None, 12, "[[2,3]]", "[[6]]", None, '["Float32"]'),
        (3, "8", "copy[8]", "Copy", None, None, "[[6]]", "[[6]]", "[[2]]", '["Float32"]'),
    ]
    assert {row["device"] for row in rows["op_info"]} == {"gpu0:0"}


def shuffled(value):
    """The same content with every object's keys in the opposite order."""
    if isinstance(value, dict):
        return {key: shuffled(inner) for key, inner in reversed(value.items())}
    return [shuffled(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("how", [{}, {"indent": 2}, {"separators": (",", ":")}])
def test_neither_the_order_of_keys_nor_blanks_matter(imported, how):
    def facts(rows):
        return [sorted(map(str, rows[table])) for table in ("op", "op_info")]

    assert facts(imported(shuffled(profile()), **how)[1]) == facts(imported(profile())[1])


def test_planned_memory_has_a_size_and_no_time(imported):
    content = profile()
    content["graph_exec"]["mem_chunk"] |= {
        "chk2": {"id": "chk2", "size": 4096, "owner_var": "3", "dev_ptr": 94106063605632},
        "chk3": {"id": "chk3", "size": None, "dev_ptr": 7},
        "chk4": {"id": "chk4", "size": -1, "dev_ptr": 7},
        "chk5": {"id": "chk5", "size": 8, "owner_var": "101", "dev_ptr": 9},
    }
    run, rows = imported(content)
    assert run.manifest.state == "complete"
    assert columns(rows["allocation"], "address bytes op_id produced_ns released_ns evidence device") == [
        (*block, None, None, None, None) for block in ((None, 12, None), (94106063605632, 4096, 0), (9, 8, 4))
    ]
    assert columns(rows["op_info"], "name type", op_id=4) == [("const[100]", "SharedDeviceTensor")]


@pytest.mark.parametrize(
    ("times_of_4", "kern_of_6", "durations", "said"),
    [
        (
            (4e-6, 4e-6, "nan"),
            "inf",
            [(0, 4000, 1000), (1, None, 0), (2, 1000, None), (3, 2000, 1000)],
            "are not numbers",
        ),
        (
            (5.0, 5.0, 4.0),
            10e-6,
            [(0, 4000, 1000), (1, None, 0), (2, 1000, 0), (3, 2000, 1000)],
            "end before they start",
        ),
    ],
)
def test_times_that_are_no_numbers_or_end_before_they_start_are_unknown_and_counted(
    imported, times_of_4, kern_of_6, durations, said
):
    content = profile()
    content["profiler"]["device"]["4"][GPU] = times(*times_of_4)
    content["profiler"]["device"]["6"][GPU]["kern"] = kern_of_6
    run, rows = imported(content)
    assert columns(rows["op"], "op_id dur_ns wait_ns", side="device") == durations
    assert [warning.message for warning in run.manifest.warnings] == [
        f"left out 1 time: times on the device that {said}"
    ]


def test_the_generation_of_milliseconds_is_told(imported):
    content = {
        "graph_exec": {
            "var": [{"comp_node": "gpu0:0"}] * 2,
            "operator": {"0": {"input": [0], "output": [1], "name": "Convolution", "type": "imperative", "id": 0}},
        },
        "profiler": {
            "device": {"0": {"gpu0:0": times(0.0, 0.0, 0.006)}},
            "host": {"0": {"host": times(0.0, 0.0, 0.0003)}},
            "opr_footprint": {"0": {"in_shapes": [[1]], "out_shapes": [[2]], "params": {"stride_h": 2}}},
        },
    }
    run, rows = imported(content)
    assert [warning.code for warning in run.manifest.warnings] == ["time_unit"]
    assert columns(rows["op"], "dur_ns track") == [(6_000_000, "gpu0:0"), (300_000, "host")]
    assert columns(rows["op_info"], "flops bytes in_types params")[0] == (None, None, None, '{"stride_h":2}')


def test_several_profiles_are_repetitions(tmp_path):
    for number in range(3):
        write(tmp_path / f"run{number}.json", profile())
    run = import_path(tmp_path, tmp_path.parent / f"{tmp_path.name}-run")
    assert [rep.rep for rep in run.manifest.reps] == [0, 1, 2]
    assert run.manifest.tables["op"] == 3 * 8


def test_of_a_key_that_comes_twice_the_last_counts(tmp_path):
    path, first = tmp_path / "twice.json", '"device": {"2": {"gpu9:0": {"start": 0, "kern": 0, "end": 9}}}, '
    path.write_text(json.dumps(profile()).replace('"device": {', first + '"device": {'), encoding="utf-8")
    assert set(read_profile(path).places) >= {GPU}
    run = import_path(path, tmp_path / "run")
    assert {row["track"] for row in store.read(run, "op").to_pylist()} == {GPU, "worker"}


def test_ids_above_two_to_the_53_stay_apart(imported):
    content = profile()
    big = [str(2**53 + 1), str(2**53), str(2**70)]
    graph = content["graph_exec"]
    content["profiler"]["device"] = {key: {GPU: times(0.0, 0.0, 1e-6)} for key in big}
    graph["operator"] = {key: {"name": key, "type": "E", "input": [key]} for key in big}
    graph["comp_seq"] = big
    assert columns(imported(content)[1]["op_info"], "source_id name")[:3] == [(key, key) for key in big]


def test_a_file_that_ends_too_early_is_partial_when_it_has_times(tmp_path):
    text = json.dumps(profile())
    path = tmp_path / "cut.json"
    path.write_text(text[: text.index('"opr_internal_pf"')], encoding="utf-8")
    run = import_path(path, tmp_path / "run")
    assert run.manifest.state == "partial"
    assert "ends inside a value" in run.manifest.reason
    path.write_text(text[: text.index('"kern"')], encoding="utf-8")
    with pytest.raises(SourceError, match="ends inside a value"):
        import_path(path, tmp_path / "other")


def test_what_is_of_another_shape_is_left_out_and_counted(imported):
    content = profile()
    content["profiler"]["device"]["4"] = [1, 2]
    content["profiler"]["opr_footprint"]["2"] = "x"
    run, rows = imported(content)
    assert columns(rows["op"], "op_id", side="device") == [(0,), (2,), (3,)]
    assert [warning.code for warning in run.manifest.warnings] == ["left_out"] * 2


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ({"profiler": {}, "graph_exec": {}}, kinds.PROFILE),
        ({"graph_exec": {"var": []}}, kinds.PROFILE),
        ({"profiler": {"graph_exec": {"operator": {}}}}, kinds.PROFILE),
        ({"opr_footprint": {}, "graph_exec": {}}, kinds.FOOTPRINT),
        ({"traceEvents": [], "metadata": {"localTime": "12"}}, kinds.TIMELINE),
        ([{"name": "Metadata", "ph": "I", "args": {"localTime": 1.5}}], kinds.TIMELINE),
        ([{"name": "conv", "ph": "B", "tid": "host", "pid": 1, "ts": 1}], kinds.TIMELINE),
        ([{"name": "conv", "ph": "B", "tid": "gpu0:0", "pid": 1, "ts": 1}], kinds.TIMELINE),
        ({"schemaVersion": 1, "traceEvents": [{"name": "x"}]}, None),
        ([{"name": "x", "ph": "X", "tid": 1}], None),
        ({"profiler": {"version": 1}}, None),
        ({"chunk": {"0": {"id": "0", "logic_addr_begin": "0"}}, "opr": {}}, kinds.STATIC_MEMORY),
        ({}, None),
        ([], None),
        ("text", None),
    ],
)
def test_files_are_known_by_content(tmp_path, content, kind):
    path = write(tmp_path / "x", content)
    assert kinds.identify(path) == kind
    assert (recognise(path) == "megengine") == (kind is not None)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"opr_footprint": {"2": footprint(1, 2)}, "graph_exec": {}}, "has no times"),
        ({"profiler": {"device": {}, "host": {}}, "graph_exec": {}}, "no operator has a time"),
        ({"traceEvents": [], "metadata": {"localTime": "12"}}, "chrome timeline"),
    ],
)
def test_a_file_without_operators_says_what_it_is(tmp_path, content, said):
    with pytest.raises(SourceError, match=said):
        import_path(write(tmp_path / "x.json", content), tmp_path / "run")


def scanner(data):
    return json_stream.Scan(io.BytesIO(data), Path("x.json"))


ANY = (msgspec.json.Decoder(dict[str, int]), msgspec.json.Decoder(int))


@pytest.mark.parametrize("size", [1, 7, 64, 4096])
def test_batches_together_are_the_map_whatever_the_size_of_a_piece(monkeypatch, size):
    monkeypatch.setattr(json_stream, "CHUNK", size)
    wanted = {str(number): {'}, "7": {': [number, {"3": {"4": number}}]} for number in range(200)}
    reading = scanner(json.dumps({"a": wanted, "b": [1], "c": "x"}).encode())
    decoder = (msgspec.json.Decoder(dict[str, dict]), msgspec.json.Decoder(dict))
    found, rest = {}, {}
    for key in reading.members():
        if key == "a":
            for batch in reading.entries(*decoder):
                found.update(batch)
        else:
            rest[key] = reading.skip()
    assert found == wanted
    assert set(rest) == {"b", "c"}
    assert reading.at_end()


@pytest.mark.parametrize(
    ("error", "said", "texts"),
    [
        (
            SourceError,
            "at byte",
            ['{"1": 1, "2": x}', '{"1": 1 "2": 2}', '{"1": 1,, "2": 2}', '{"1": NaN}', '{"\\ud800": 1}'],
        ),
        (json_stream.CutOffError, "ends inside a value", ['{"1": 1', '{"1": ', "{", "", '{"1": "abc']),
    ],
)
def test_json_that_is_damaged_or_ends_is_an_error_with_a_place(error, said, texts):
    for text in texts:
        with pytest.raises(error, match=said):
            list(scanner(text.encode()).entries(*ANY))


def test_deep_nesting_is_an_error():
    text = b'{"1": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with pytest.raises(SourceError, match="shallow nesting"):
        list(scanner(text).entries(msgspec.json.Decoder(dict[str, list]), msgspec.json.Decoder(list)))


def test_an_entry_of_endless_size_is_an_error(monkeypatch):
    monkeypatch.setattr(json_stream, "CHUNK", 64)
    monkeypatch.setattr(json_stream, "LARGEST", 1024)
    with pytest.raises(SourceError, match="an entry larger than"):
        list(scanner(b'{"1": "' + b"x" * 100_000 + b'"}').entries(*ANY))


def test_variables_give_types_by_position_in_a_list(imported):
    content = profile()
    content["graph_exec"]["var"] = [var(number, "Int32") for number in range(9)]
    assert imported(content)[1]["op_info"][0]["in_types"] == '["Int32"]'


def test_parameters_and_what_an_operator_waits_for_are_kept_as_json(imported):
    content = profile()
    param = {"mode": "CROSS_CORRELATION", "pad_h": 1, "stride_h": 2, "format": "NCHW"}
    prints = content["profiler"]["opr_footprint"]
    prints["2"]["param"], prints["4"]["param"], prints["6"]["param"] = param, [1], {"text": "x" * 70_000}
    waits = {"cpux:0": {"dev_ready": ["2"], "host_ready": []}}
    content["graph_exec"]["operator"]["4"]["waiting_spec"] = waits
    rows = imported(content)[1]["op_info"]
    assert list(params(rows, "params").values())[:4] == [param, None, None, None]
    assert list(params(rows, "waits_for").values())[:3] == [None, waits, None]


def with_outputs(imported, column, facts, first):
    """That column of operators with another output each, whose variable says this."""
    content = profile()
    for number, fact in facts.items():
        output = [1, f"1{number}"] if first else [f"1{number}", 1]
        content["graph_exec"]["operator"][number]["output"] = output
        content["graph_exec"]["var"][f"1{number}"] = var(int(f"1{number}"), "Float32") | fact
    return params(imported(content)[1]["op_info"], column)


def test_the_end_of_the_memory_that_output_variables_had_before_is_kept(imported):
    ends = {"2": 94106063605644, "6": None, "8": "94106063605644", "100": 1 << 70}
    facts = {number: {"prev_dev_ptr_end": end} for number, end in ends.items()}
    found = with_outputs(imported, "out_previous_ends", facts, first=True)
    assert found["2"] == [None, 94106063605644]
    assert [found[number] for number in ("4", "6", "8")] == [None, None, None]


def test_flags_of_output_variables_are_kept(imported):
    flags = {"2": ["NO_MEM_RECLAIM", "VOLATILE_CONTENT"], "6": [], "8": {"not": "a list"}, "100": ["x" * 300]}
    facts = {number: {"flag": found} for number, found in flags.items()}
    found = with_outputs(imported, "out_flags", facts, first=False)
    assert [found[number] for number in ("2", "4", "6", "8")] == [[flags["2"], []], None, None, [[], []]]


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
LOCAL = {"localTime": "1625027241000000000"}
FILES = {
    "profile.json": json.dumps(profile()),
    "42.chrome_timeline.json": json.dumps({"traceEvents": EVENTS, "metadata": LOCAL}),
    "43.chrome_timeline.json": json.dumps({"traceEvents": EVENTS + PADDING, "metadata": LOCAL}),
    "44.chrome_timeline.json": json.dumps([CLOCK, *EVENTS]),
    "42.memory_flow.svg": FLOW,
    "StaticMemoryInfo.json": json.dumps(MEMORY),
    "run.log": LOG,
}


def tables(run):
    return {table: store.read(run, table).to_pylist() for table in BY_NAME if run.files(table)}


@pytest.mark.parametrize(("mark", "packed"), [(b"", True), (MARK, False), (MARK, True)])
@pytest.mark.parametrize("name", FILES)
def test_the_dress_of_a_file_changes_nothing(tmp_path, name, mark, packed):
    plain, other = tmp_path / "plain" / name, tmp_path / "other" / (f"{name}.gz" if packed else name)
    dressed = mark + FILES[name].encode()
    for path, data in ((plain, FILES[name].encode()), (other, gzip.compress(dressed) if packed else dressed)):
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
