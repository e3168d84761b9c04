"""`pipeprof ops`: options, formats, foreign files, and how it ends when it cannot."""

import csv
import io
import json
import os
import re
import time

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from kineto_files import op as trace_op
from kineto_files import write_trace
from megengine_files import profile, write
from rich.console import Console

from pipeprof.cli.ops import ops
from pipeprof.errors import RunError, SourceError, UsageError
from pipeprof.read import foreign, imported
from pipeprof.record.cache import cache_folder
from pipeprof.report.document import draw
from pipeprof.report.ops import content as cells
from pipeprof.report.ops import sections
from pipeprof.report.ops.groups import COLUMNS
from pipeprof.report.ops.question import SINGLE, Order, Question, parse_order
from pipeprof.report.ops.show import answer

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def file(tmp_path):
    return write(tmp_path / "profile.json", profile())


@pytest.fixture
def call(file):
    def run(*words, path=None):
        result = CliRunner().invoke(ops, [str(path or file), *map(str, words)])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


def as_json(call, *words, **how):
    return json.loads(call("--format", "json", *words, **how))


def rows(call, *words, **how):
    return as_json(call, *words, **how)["rows"]


def ids(call, *words):
    return [row["opr_id"] for row in rows(call, *words)]


def test_three_rows_of_a_profile_unless_the_user_says_how_many(call):
    assert ids(call) == ["4", "2", "8"]
    assert ids(call, "-t", "0") == ids(call, "--row-limit", "-1") == ["4", "2", "8", "6"]
    assert ids(call, "-t", "-1") == ["4", "2", "8"]
    assert ids(call, "-t", "-9") == []
    total = as_json(call)["total"]
    assert (total["device_ns"], total["host_ns"], total["count"]) == (pytest.approx(13_000), pytest.approx(2_000), 4)
    found = as_json(call, "--show-host")
    assert [row["side"] for row in found["rows"] + found["host_rows"]] == ["device"] * 3 + ["host"] * 3
    assert call("--dump-only-opr", "-t", "1") == "conv(b)[4] ConvolutionForward 4\n"
    by_type = call("--dump-only-opr", "--aggregate-by", "type", "--aggregate", "sum", "-t", "1")
    assert by_type == "ConvolutionForward 2\n"


def test_a_row_has_its_time_share_and_what_it_computed(call):
    row = rows(call)[0]
    assert (row["name"], row["type"], row["count"], row["position"]) == ("conv(b)[4]", "ConvolutionForward", 1, 1)
    assert row["self_ns"] == pytest.approx(6000)
    assert row["share"] == pytest.approx(6 / 13)
    assert row["flops"] == pytest.approx(9000 / 6e-6)
    assert row["bandwidth"] == pytest.approx(4096 / 6e-6)
    assert (row["computation"], row["memory"], row["in_shapes"]) == (9000, 4096, [[1, 3]])


NEAR_COPY = "--type copy matches no operator; did you mean `Copy`?"
ALL_TYPES = ["--exclude-type", "Copy", "--exclude-type", "Reshape", "--exclude-type", "ConvolutionForward"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--opr-name", "conv(A)[2]"], ("--opr-name conv(A)[2] matches the beginning of no operator's name; "
                                        "did you mean `conv(a)[2]` or `conv(b)[4]`?")),
        (["--search", "reshpae"], ("--search reshpae is in no operator's name or type; "
                                   "did you mean `Reshape` or `reshape[6]`?")),
        (ALL_TYPES, "--exclude-type leaves out all 3 types"),
        (["--type", "Copy", "--search", "conv", "--min-time", "1e-6"],
         "no operator that was timed passes --search conv and --type Copy and --min-time 1e-06"),
        (["--min-time", "5"], "no operator that was timed passes --min-time 5.0"),
        (["--type", "copy"], NEAR_COPY),
        (["--type", "copy", "--group-by", "type"], NEAR_COPY),
        (["--input-dtype", "Int"], "--input-dtype Int matches no operator; did you mean `Int8`?"),
        (["--type", "Copy"], None),
    ],
)  # fmt: skip
def test_an_empty_table_says_which_filter_matches_nothing(file, words, why):
    result = CliRunner().invoke(ops, [str(file), *words, "--format", "json"], catch_exceptions=False)
    assert (json.loads(result.stdout)["rows"] == []) is (why is not None)
    assert result.stderr.splitlines() == ([] if why is None else [f"note: {why}"])


@pytest.mark.parametrize(("words", "found"), [
    (["--opr-name", "conv*"], ["4", "2"]), (["--opr-name", "co"], ["4", "2", "8"]),
    (["--type", "Copy", "--type", "Reshape"], ["8", "6"]), (["--search", "FORWARD"], ["4", "2"]),
    (["--search", "PE["], ["6"]), (["--search", "o", "--opr-name", "c.*y"], ["8"]),
    (["--exclude-type", "ConvolutionForward"], ["8", "6"]),
    (["--exclude-type", "ConvolutionForward", "--exclude-type", "Copy"], ["6"]),
    (["--exclude-type", "Copy", "--type", "Copy", "--type", "Reshape"], ["6"]), (["--input-dtype", "Int8"], ["4"]),
    (["--min-time", "1.9e-6"], ["4", "2", "8"]), (["--max-time", "1.5e-6"], ["6"]),
    (["--min-time", "1e-6", "--max-time", "3e-6", "--opr-name", "c"], ["8"]),
    (["--order-by", "FLOPS"], ["4", "2", "6"]), (["--order-by", "+flops"], ["2", "4", "6"]),
    (["--order-by", "Device Self Time"], ["4", "2", "8"]), (["--order-by", "+opr_id"], ["2", "4", "6"]),
    (["--sort-by", "name"], ["6", "8", "4"]), (["--order-by", "+in_shapes"], ["2", "4", "6"]),
    (["--order-by", "in_shapes"], ["8", "6", "2"]), (["--order-by", "memory"], ["4", "2", "6"]),
    (["--top-end-key", "wait", "--type", "ConvolutionForward"], ["2", "4"]),
    (["--top-end-key", "exec", "-t", "2"], ["4", "2"]), (["--print-only", "host", "-t", "1"], ["2"]),
    (["--print-only", "summary"], []),
])  # fmt: skip
def test_filters_and_orders(call, words, found):
    assert ids(call, *words) == found


@pytest.mark.parametrize(("words", "message", "hint"), [
    (["--group-by", "nme"], "unknown --group-by `nme`", "did you mean `name`"),
    (["--order-by", "slef_ns"], "unknown column `slef_ns`", "did you mean `self_ns`"),
    (["--stack-depth", "3"], "--stack-depth is for stacks", "--group-by stack"),
    (["--top", "3", "--row-limit", "3"], "both say how many rows", "one of them"),
    (["--dump-only-opr", "--format", "json"], "is a form of text of its own, not json", "leave --dump-only-opr or"),
    (["--order-by", "nonsense"], "unknown column `nonsense` to order by", "choose from `self_ns`"),
    (["--order-by", "++time"], r"unknown column `\+\+time`", ""),
    (["--opr-name", "["], "not a regular expression", ""), (["--aggregate-by", "type"], "", "add --aggregate sum"),
    (["--group-by", "name", "--aggregate", "sum"], "cannot be combined with", ""),
    (["--group-by", "name", "--order-by", "bandwidth"], "unknown column `bandwidth`", ""),
    (["--group-by", "nonsense"], "", "choose from `name`, `shape`"),
    (["--group-by", "stack 0"], "unknown --group-by `stack 0`", "1 or more frames"),
    (["--group-by", "stack " + "9" * 5000], "unknown --group-by `stack 999", ""),
    (["--min-time", "nan"], "--min-time is no number of seconds: `nan`", ""),
    (["--group-by", "name 3"], "unknown --group-by `name 3`", "only `stack`"),
    (["--group-by", "scope", "--type", "x"], "have no type", ""),
    (["--group-by", "name", "--exclude-type", "Copy"], "groups by name have no type", ""),
    (["--format", "parquet"], "", "give a file"),
])  # fmt: skip
def test_an_option_that_cannot_be_or_does_nothing_is_refused(call, words, message, hint):
    with pytest.raises(UsageError) as refused:
        call(*words)
    assert re.search(f"{message}.*; .*{hint}", f"{refused.value.message}; {refused.value.hint}")


def test_groups_by_stacks_that_nobody_recorded_say_what_records_them(tmp_path):
    run = imported.imported(write_trace(tmp_path / "t.json", [trace_op("a", 0, 5)]))
    found = answer(run, Question(group_by="stack"))
    assert any("no call stack of an operator was recorded" in note for note in found.notes)


def test_operators_are_added_up_by_type(call):
    found = rows(call, "--aggregate-by", "type", "--aggregate", "sum")
    assert [(row["name"], row["count"]) for row in found] == [("ConvolutionForward", 2), ("Copy", 1), ("Reshape", 1)]
    assert found[0]["computation"] == 13_000
    (every,) = rows(call, "--aggregate", "mean", "--order-by", "name")
    assert (every["type"], every["count"], every["computation"]) == ("all", 4, 3250)


def test_a_sum_of_some_of_the_executions_says_of_how_many(call):
    said = "FLOPs are known for 2 of 4 executions: computation counts only these, FLOPS divides it by the time of all"
    assert said in " ".join(call("--aggregate", "sum").split())
    assert said in call("--aggregate", "sum", "--format", "markdown")
    assert rows(call, "--aggregate", "sum")[0]["computation_count"] == 2
    assert "FLOPs are known" not in call("--aggregate-by", "type", "--aggregate", "sum")
    row = {"name": "MatMul", "rep": 0, "computation_count": 1, "count": 3}
    (said,) = cells.partly_known([row | {"rank": 0}, row | {"rank": 1, "computation_count": 2}])
    assert "1 of 3 executions of MatMul (rep 0, rank 0), 2 of 3 executions of MatMul (rep 0, rank 1):" in said


def test_copies_have_lines_of_their_own(call):
    total = as_json(call, "--copy-time")["total"]
    assert total["copy_time_ns"] == total["copy_time_mean_ns"] == pytest.approx(2000)
    assert total["copy_wait_time_ns"] == pytest.approx(1000)
    assert "copy wait time" in call("--copy-time")
    assert as_json(call, "--copy-time", "--type", "Reshape")["total"]["copy_time_ns"] is None


@pytest.mark.parametrize("words", [[], ["--group-by", "type"], ["--aggregate", "sum"], ["--show-host"]])
def test_every_format_has_the_rows(call, tmp_path, words):
    document = as_json(call, *words)
    count = len(document["rows"]) + len(document.get("host_rows", []))
    assert next(iter(document)) == "schema_version"
    assert len(list(csv.DictReader(io.StringIO(call("--format", "csv", *words))))) == count
    assert call("--format", "markdown", *words).count("\n| ") >= count
    assert call("--format", "html", *words).count("<tr><td") >= count
    call("--format", "parquet", "-o", tmp_path / "ops.parquet", *words)
    assert pq.ParquetFile(tmp_path / "ops.parquet").read().num_rows == count


@pytest.mark.parametrize("width", [80, 120, 200])
@pytest.mark.parametrize(
    "asked", [{"top": 0}, {"aggregate": "sum", "aggregate_by": "type"}, {"group_by": "shape"}, {"show_host": True}]
)
def test_no_line_is_wider_than_the_terminal_and_no_word_is_cut(file, width, asked):
    buffer = io.StringIO()
    document = sections.document(answer(imported.imported(file), Question(**asked)), "profile.json", "")
    draw(Console(file=buffer, width=width, highlight=False), document)
    assert max(map(len, buffer.getvalue().splitlines())) <= width
    assert "…" not in buffer.getvalue()
    assert "ConvolutionForward" in buffer.getvalue() or "conv" in buffer.getvalue()


def test_groups_tell_the_sides_apart_and_are_ordered_by_their_operations(call):
    found = rows(call, "--group-by", "type", "--type", "ConvolutionForward")
    assert [(row["side"], row["count"]) for row in found] == [("device", 2), ("host", 2)]
    assert found[0]["device_self_ns"] == 10_000
    assert rows(call, "--group-by", "name", "--order-by", "+count", "--opr-name", "copy")[0]["name"] == "copy[8]"
    found = rows(call, "--group-by", "type", "--sort-by", "FLOPS")
    assert [(row["name"], row["computation"]) for row in found[:2]] == [("ConvolutionForward", 13_000)] * 2
    assert [row["computation"] for row in found[2:]] == [None] * 4


@pytest.mark.parametrize(
    ("asked", "column"),
    [
        ("cuda_time_total", "device_total_ns"), ("self_npu_time_total", "device_self_ns"), ("Self CUDA", "device_self_ns"),
        ("CUDA total", "device_total_ns"), ("Self CUDA %", "device_self_ns"), ("privateuse1_time", "device_mean_ns"),
        ("CPU total %", "total_ns"), ("CPU time avg", "mean_ns"), ("# of Calls", "count"), ("CPU Mem", "memory_bytes"),
        ("Self XPU Mem", "self_device_memory_bytes"), ("Total MFLOPs", "computation"), ("+key", "name"),
        ("self_cpu_memory_usage", "self_memory_bytes"), ("mtia_memory_usage", "device_memory_bytes"), ("stack", "stack"),
    ],
)  # fmt: skip
def test_columns_are_known_by_the_names_of_torch(asked, column):
    assert parse_order(asked, COLUMNS) == Order(column, asked.startswith("+"))


@pytest.mark.parametrize("asked", ["barracuda", "cuda", "", "+", "#", "self cpu total"])
def test_other_names_are_not(asked):
    with pytest.raises(UsageError):
        parse_order(asked, COLUMNS)


@pytest.mark.parametrize("words", [
    ["--group-by", "stack", "3"], ["--group-by", "stack 3"], ["--group-by=stack", "3"], ["--group-by=stack 3"],
])  # fmt: skip
def test_the_number_of_frames_may_stand_behind_stack(call, words, monkeypatch):
    asked = []
    monkeypatch.setattr("pipeprof.report.ops.show.show", lambda _run, question, *_more: asked.append(question))
    call(*words)
    call(*words, "--top", "1")
    assert [(one.group_by, one.stack_depth) for one in asked] == [("stack", 3)] * 2


def test_a_file_is_read_once_and_again_when_it_changes(call, file, monkeypatch):
    reads = []
    real = foreign.import_path
    monkeypatch.setattr(foreign, "import_path", lambda *args, **more: reads.append(1) or real(*args, **more))
    call()
    call("--show-host")
    assert len(reads) == 1
    write(file, profile(), indent=1)
    call()
    assert len(reads) == 2


def test_a_big_file_is_read_in_a_process_of_its_own(call, file, monkeypatch, tmp_path):
    monkeypatch.setattr(imported, "BIG", 1)
    assert ids(call) == ["4", "2", "8"]
    broken = tmp_path / "broken.json"
    broken.write_text('{"profiler": {"device": {"2": ', encoding="utf-8")
    with pytest.raises(SourceError, match="ends inside a value"):
        call(path=broken)
    assert not list(cache_folder("imports").glob(".*"))


def test_a_trace_that_is_read_in_a_process_of_its_own_tells_how_far_it_is(call, monkeypatch, tmp_path):
    """It says so from within a part of its own work."""
    monkeypatch.setattr(imported, "BIG", 1)
    trace = write_trace(tmp_path / "x.pt.trace.json", [trace_op("aten::mm", at, 5) for at in range(0, 600_000, 10)])
    said = []
    assert imported.imported(trace, said.append).manifest.tables["op"] == 60_000
    assert said[0] == "reading x.pt.trace.json"
    assert any(text.startswith("x.pt.trace.json: 5") and text.endswith("events read") for text in said)


def test_only_the_latest_imports_are_kept_and_the_rest_of_a_killed_one_for_a_day(call, tmp_path, monkeypatch):
    home = cache_folder("imports")
    for name, age_s in ((".old.1.importing", 90_000), (".new.2.importing", 3_600)):
        home.joinpath(name, "op").mkdir(parents=True)
        os.utime(home / name, (time.time() - age_s,) * 2)
    monkeypatch.setattr(imported, "KEPT", 2)
    for number in range(4):
        call(path=write(tmp_path / f"p{number}.json", profile()))
        assert [path.name for path in home.glob(".*")] == [".new.2.importing"]
    assert len(list(home.glob("[!.]*"))) == 2


def test_without_a_place_for_the_cache_the_file_is_read_all_the_same(call, tmp_path, monkeypatch):
    tmp_path.joinpath("blocked").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "blocked"))
    assert ids(call) == ["4", "2", "8"]


def test_what_has_no_operators_is_named_as_what_it_is(call, tmp_path):
    counter = {"name": "train_time_ratio", "ph": "C", "pid": 1, "tid": 0, "ts": 0.0, "args": {"value": 93.5}}
    timeline = {"traceEvents": [counter], "metadata": {"localTime": "1625027241000000000"}}
    with pytest.raises(SourceError, match="found a MegEngine chrome timeline"):
        call(path=write(tmp_path / "timeline.json", timeline))
    with pytest.raises(SourceError, match="of a kind that is not known"):
        call(path=write(tmp_path / "x.json", {"a": 1}))
    with pytest.raises(RunError, match="no such run"):
        call(path=tmp_path / "absent.json")


HOST = trace_op("aten::mm", 0, 9, **{"External id": 1})
KERNEL = trace_op("gemm", 20, 5, cat="kernel", pid=0, tid=7, correlation=3, **{"External id": 1})


def test_the_side_of_a_trace_that_has_what_is_meant_is_shown(call, tmp_path):
    trace = write_trace(tmp_path / "x.pt.trace.json", [HOST, KERNEL])
    for words, expected in (
        (("--opr-name", "aten::"), [("host", "aten::mm", 9000)]), (("--opr-name", ".*mm"), [("device", "gemm", 5000)]),
        (("--opr-name", "aten", "--print-only", "device"), []),
    ):  # fmt: skip
        found = rows(call, *words, path=trace)
        assert [(row["side"], row["name"], row["self_ns"]) for row in found] == expected
    assert call("--opr-name", "gemm", path=trace).count("gemm") == 1


def test_operators_without_types_are_told_apart_by_name(call, make_run):
    info = [{"op_id": number, "name": f"aclnn{number}"} for number in range(2)]
    times = [{"op_id": number, "start_ns": 10 * number, "dur_ns": 5, "self_ns": 5} for number in range(2)]
    found = rows(call, path=make_run({"op_info": info, "op": times}).path)
    assert [(row["name"], row["self_ns"]) for row in found] == [("aclnn0", 5), ("aclnn1", 5)]


PYTHON = trace_op("x.py(1): f", 1, 9, cat="python_function"), trace_op("aten::mm", 2, 5)


@pytest.mark.parametrize(("words", "header", "names"), [
    ([], {}, ["aten::mm"]), ([], {"host_name": "of torch 2.13"}, ["aten::mm", "x.py(1): f"]),
    (["--python-functions"], {}, ["aten::mm", "x.py(1): f"]),
    (["--no-python-functions", "--opr-name", "a|x"], {"host_name": "of torch 2.13"}, ["aten::mm"]),
    (["--group-by", "shape", "--python-functions"], {}, ["aten::mm", "x.py(1): f"]),
])  # fmt: skip
def test_python_functions_count_when_asked_or_as_in_their_torch(tmp_path, words, header, names):
    trace = write_trace(tmp_path / "x.pt.trace.json", PYTHON, **header)
    result = CliRunner().invoke(ops, [str(trace), *words, "--format", "json"], catch_exceptions=False)
    document = json.loads(result.stdout)
    assert sorted(row["name"] for row in document["rows"]) == names
    assert document["total"]["self_ns"] == {1: 5000, 2: 9000}[len(names)]
    assert ("--python-functions shows them" in result.stderr) is (not words and not header)


@pytest.mark.parametrize("words", [["--python-functions"], ["--no-python-functions"]])
def test_python_functions_are_refused_where_there_can_be_none(file, tmp_path, words):
    with pytest.raises(UsageError, match=r"only traces of torch\.profiler"):
        CliRunner().invoke(ops, [str(file), *words], catch_exceptions=False)
    trace = write_trace(tmp_path / "x.pt.trace.json", PYTHON)
    with pytest.raises(UsageError, match=f"{words[0]} is about groups"):
        CliRunner().invoke(ops, [str(trace), *words, "--copy-time"], catch_exceptions=False)


def test_the_lines_below_torchs_table_stand_below_the_groups_of_its_trace(call, tmp_path):
    host = HOST, trace_op("aten::add", 10, 2)
    shown = call("--group-by", "name", "--search", "add", path=write_trace(tmp_path / "host.pt.trace.json", host))
    assert shown.splitlines()[-1] == "Self CPU time total: 11.0 us"
    both = call(path=write_trace(tmp_path / "both.pt.trace.json", [*host, KERNEL])).splitlines()
    assert both[-2:] == ["Self CPU time total: 11.0 us", "Self device time total: 5.00 us"]
    assert "time total" not in call("--group-by", "name")


TORCHS = {
    (
        "Name | Self CPU % | Self CPU | CPU total % | CPU total | CPU time avg | Self device | Self device %"
        " | device total | device time avg | # of Calls"
    ),
    "aten::add | 70.00% | 2.100ms | 70.00% | 2.100ms | 2.100ms | 0.000us | 0.00% | 0.000us | 0.000us | 1",
    "aten::mm | 30.00% | 900.000us | 30.00% | 900.000us | 900.000us | 5.000us | 100.00% | 5.000us | 5.000us | 1",
}


@pytest.mark.parametrize("words", [["--row-limit", "-1"], ["--sort-by", "self_cuda_time_total"]])
def test_groups_are_printed_as_torch_does_where_it_is_asked_in_its_words(call, tmp_path, words):
    host = trace_op("aten::mm", 0, 900, **{"External id": 1}), trace_op("aten::add", 1000, 2100)
    kernel = trace_op("gemm", 3200, 5, cat="kernel", pid=0, tid=7, correlation=3, **{"External id": 1})
    path = write_trace(tmp_path / "both.pt.trace.json", [*host, kernel])
    lines = call("--group-by", "name", "--search", "aten", "--format", "markdown", *words, path=path).splitlines()
    found = {" | ".join(word.strip() for word in line.replace("\\", "").strip("|").split("|")) for line in lines}
    assert found >= TORCHS
    assert lines[-1].endswith("Self device time total: 5.000us")


def test_search_and_excluded_types_choose_groups_too(call):
    for words, names in ((("--search", "co"), {"ConvolutionForward", "Copy"}),
                         (("--exclude-type", "Copy"), {"ConvolutionForward", "Reshape"})):  # fmt: skip
        assert {row["name"] for row in rows(call, "--group-by", "type", *words)} == names


@pytest.mark.parametrize("group", [None, "name"])
def test_the_columns_of_the_hint_are_those_that_are_taken(make_run, group):
    """Of one's own training computation and bandwidth are those of another table, which the order asks for."""
    run = make_run({"op": [], "op_info": []})

    def is_taken(column):
        try:
            answer(run, Question(order_by=column, group_by=group))
        except UsageError:
            return False
        return True

    with pytest.raises(UsageError, match="unknown column") as refused:
        answer(run, Question(order_by="zzzzzz", group_by=group))
    listed = set(re.findall("`([a-z_]+)`", refused.value.hint))
    assert {"self_ns", "computation"} <= listed
    assert ("bandwidth" in listed) is (group is None)
    assert [column for column in listed if not is_taken(column)] == []
    other_names = {"flops", "memory"}  # for `computation` and `memory_bytes` of groups
    assert {column for column in SINGLE if is_taken(column)} - listed - other_names == set()
