"""Static-graph profiles of every generation, and the scanner below them."""

import io
import json
from pathlib import Path

import msgspec
import pytest
from megengine_files import GPU, footprint, op, profile, times, var, write

from pipeprof.errors import SourceError
from pipeprof.read.foreign import import_path, recognise
from pipeprof.read.megengine import files as kinds
from pipeprof.read.megengine.profile import read_profile
from pipeprof.read.source import json_stream
from pipeprof.record import store


@pytest.fixture
def imported(tmp_path):
    def read(content, **how):
        run = import_path(write(tmp_path / "profile.json", content, **how), tmp_path / "run", force=True)
        return run, {table: store.read(run, table).to_pylist() for table in run.manifest.tables}

    return read


def known(row, *names):
    return {name: row[name] for name in names}


def test_executions_on_both_sides_and_what_the_operators_are(imported):
    run, rows = imported(profile())
    assert (run.manifest.state, run.manifest.warnings) == ("complete", [])
    device = [row for row in rows["op"] if row["side"] == "device"]
    assert [(row["op_id"], row["start_ns"], row["dur_ns"], row["wait_ns"], row["track"]) for row in device] == [
        (0, 0, 4000, 1000, GPU), (1, 4000, 6000, 0, GPU), (2, 10000, 1000, 0, GPU), (3, 11000, 2000, 1000, GPU),
    ]  # fmt: skip
    host = [row for row in rows["op"] if row["side"] == "host"]
    assert [(row["op_id"], row["dur_ns"], row["wait_ns"], row["track"]) for row in host] == [
        (0, 500, 100, "worker"), (1, 500, 100, "worker"), (2, 500, None, "worker"), (3, 500, 100, "worker"),
    ]  # fmt: skip
    facts = (
        "op_id",
        "source_id",
        "name",
        "type",
        "flops",
        "bytes",
        "in_shapes",
        "out_shapes",
        "in_strides",
        "in_types",
    )
    assert [tuple(row[name] for name in facts) for row in rows["op_info"]] == [
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
    assert rows["allocation"] == [
        {
            "rep": 0,
            "rank": 0,
            "address": address,
            "bytes": size,
            "produced_ns": None,
            "released_ns": None,
            "op_id": owner,
            "evidence": None,
            "device": None,
        }
        for address, size, owner in ((None, 12, None), (94106063605632, 4096, 0), (9, 8, 4))
    ]
    (owner,) = (row for row in rows["op_info"] if row["op_id"] == 4)
    assert (owner["name"], owner["type"]) == ("const[100]", "SharedDeviceTensor")


def test_times_that_are_text_are_unknown_and_counted(imported):
    content = profile()
    content["profiler"]["device"]["4"][GPU]["end"] = "nan"
    content["profiler"]["device"]["6"][GPU]["kern"] = "inf"
    run, rows = imported(content)
    device = [(row["op_id"], row["dur_ns"], row["wait_ns"]) for row in rows["op"] if row["side"] == "device"]
    assert device == [(0, 4000, 1000), (1, None, 0), (2, 1000, None), (3, 2000, 1000)]
    assert [warning.message for warning in run.manifest.warnings] == [
        "left out 1 time: times on the device that are not numbers"
    ]


def test_negative_durations_are_unknown_and_counted(imported):
    content = profile()
    content["profiler"]["device"]["4"][GPU] = times(5.0, 5.0, 4.0)
    run, rows = imported(content)
    assert next(row for row in rows["op"] if row["op_id"] == 1)["dur_ns"] is None
    assert "left out 1 time: times on the device that end before they start" in [
        item.message for item in run.manifest.warnings
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
    assert [(row["dur_ns"], row["track"]) for row in rows["op"]] == [(6_000_000, "gpu0:0"), (300_000, "host")]
    assert known(rows["op_info"][0], "flops", "bytes", "in_types") == {"flops": None, "bytes": None, "in_types": None}
    assert rows["op_info"][0]["params"] == '{"stride_h":2}'


def test_several_profiles_are_repetitions(tmp_path):
    for number in range(3):
        write(tmp_path / f"run{number}.json", profile())
    run = import_path(tmp_path, tmp_path.parent / f"{tmp_path.name}-run")
    assert [rep.rep for rep in run.manifest.reps] == [0, 1, 2]
    assert run.manifest.tables["op"] == 3 * 8


def test_of_a_key_that_comes_twice_the_last_counts(tmp_path):
    text = json.dumps(profile()).replace(
        '"device": {', '"device": {"2": {"gpu9:0": {"start": 0, "kern": 0, "end": 9}}}, "device": {'
    )
    path = tmp_path / "twice.json"
    path.write_text(text, encoding="utf-8")
    assert set(read_profile(path).places) >= {GPU}
    run = import_path(path, tmp_path / "run")
    assert {row["track"] for row in store.read(run, "op").to_pylist()} == {GPU, "worker"}


def test_ids_above_two_to_the_53_stay_apart(imported):
    content = profile()
    big = [str(2**53 + 1), str(2**53), str(2**70)]
    graph = content["graph_exec"]
    content["profiler"]["device"] = {key: {GPU: times(0.0, 0.0, 1e-6)} for key in big}
    graph["operator"] = {
        key: op(key, f"op{key}", "Elemwise", (3,)) if False else {"name": key, "type": "E", "input": [key]}
        for key in big
    }
    graph["comp_seq"] = big
    rows = imported(content)[1]["op_info"]
    assert [row["source_id"] for row in rows][:3] == big
    assert [row["name"] for row in rows][:3] == big


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
    assert [row["op_id"] for row in rows["op"] if row["side"] == "device"] == [0, 2, 3]
    assert len(run.manifest.warnings) == 2
    assert all(warning.code == "left_out" for warning in run.manifest.warnings)


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
    "text", ['{"1": 1, "2": x}', '{"1": 1 "2": 2}', '{"1": 1,, "2": 2}', '{"1": NaN}', '{"\\ud800": 1}']
)
def test_damaged_json_is_an_error_with_a_place(text):
    with pytest.raises(SourceError, match="at byte"):
        list(scanner(text.encode()).entries(*ANY))


@pytest.mark.parametrize("text", ['{"1": 1', '{"1": ', "{", "", '{"1": "abc'])
def test_json_that_ends_is_an_error_that_says_so(text):
    with pytest.raises(json_stream.CutOffError, match="ends inside a value"):
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
    rows = imported(content)[1]["op_info"]
    assert rows[0]["in_types"] == '["Int32"]'


def test_parameters_and_what_an_operator_waits_for_are_kept_as_json(imported):
    content = profile()
    param = {"mode": "CROSS_CORRELATION", "pad_h": 1, "stride_h": 2, "format": "NCHW"}
    prints = content["profiler"]["opr_footprint"]
    prints["2"]["param"], prints["4"]["param"], prints["6"]["param"] = param, [1], {"text": "x" * 70_000}
    waits = {"cpux:0": {"dev_ready": ["2"], "host_ready": []}}
    content["graph_exec"]["operator"]["4"]["waiting_spec"] = waits
    rows = imported(content)[1]["op_info"]
    assert [json.loads(row["params"]) if row["params"] else None for row in rows[:4]] == [param, None, None, None]
    assert [json.loads(row["waits_for"]) if row["waits_for"] else None for row in rows[:3]] == [None, waits, None]


def test_the_end_of_the_memory_that_output_variables_had_before_is_kept(imported):
    content = profile()
    variables = content["graph_exec"]["var"]
    ends = {"2": 94106063605644, "6": None, "8": "94106063605644", "100": 1 << 70}
    for number, end in ends.items():
        content["graph_exec"]["operator"][number]["output"] = [1, f"1{number}"]
        variables[f"1{number}"] = var(int(f"1{number}"), "Float32") | {"prev_dev_ptr_end": end}
    rows = {row["source_id"]: row["out_previous_ends"] for row in imported(content)[1]["op_info"]}
    assert json.loads(rows["2"]) == [None, 94106063605644]
    assert [rows[number] for number in ("4", "6", "8")] == [None, None, None]


def test_flags_of_output_variables_are_kept(imported):
    content = profile()
    variables = content["graph_exec"]["var"]
    flags = {"2": ["NO_MEM_RECLAIM", "VOLATILE_CONTENT"], "6": [], "8": {"not": "a list"}, "100": ["x" * 300]}
    for number, found in flags.items():
        content["graph_exec"]["operator"][number]["output"] = [f"1{number}", 1]
        variables[f"1{number}"] = var(int(f"1{number}"), "Float32") | {"flag": found}
    rows = {row["source_id"]: row["out_flags"] for row in imported(content)[1]["op_info"]}
    assert json.loads(rows["2"]) == [flags["2"], []]
    assert rows["4"] is None
    assert rows["6"] is None
    assert json.loads(rows["8"]) == [[], []]
