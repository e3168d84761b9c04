"""Imports of small profiles of every generation: what becomes of them, and what is said about them."""

import json

import pytest
from ascend_files import (
    BASE,
    EPOCH_US,
    step_trace_text,
    trace_events,
    us,
    write,
    write_cpu,
    write_graph,
    write_output,
    write_prof,
)
from minddata_files import cpu_json
from stored_rows import rows, warnings

from pipeprof.errors import SourceError
from pipeprof.read.ascend import trace_view as chrome
from pipeprof.read.ascend.reader import first_times
from pipeprof.read.foreign import import_path, recognise
from pipeprof.read.tables.share import Notes


@pytest.fixture
def load(tmp_path):
    """`load(folder)`: the run that it becomes."""
    return lambda folder, **options: import_path(folder, tmp_path / "run", **options)


@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_steps_are_the_tick_exact_phases_without_the_average_row(load, tmp_path, new, end):
    path = write(tmp_path / "step_trace_raw_3_detail_time.csv", step_trace_text(new=new, end=end))
    run = load(path)
    assert rows(run, "step", "rank step kind start_ns fp_ns bp_ns end_ns data_wait_ns") == [
        (3, 0, "warmup", 0, 0, 5000, 8000, 0),
        (3, 1, "train", 8000, 10000, 15000, 18000, 2000),
        (3, 2, "train", 18000, 20000, 25000, 28000, 2000),
    ]
    name, kind = ("AllReduce-op1", "all_reduce") if new else ("stream_5_parallel_0", None)
    assert rows(run, "collective", "step name kind track start_ns dur_ns") == [
        (0, name, kind, "stream 5", 5500, 1000), (2, name, kind, "stream 5", 25500, 1000),
    ]  # fmt: skip
    assert run.manifest.state == "complete"
    assert run.manifest.warnings == []


STEPS = step_trace_text()
EARLIER = STEPS.replace(STEPS.splitlines()[1], ",".join(STEPS.splitlines()[1].split(",")[:9]))
INFERENCE = (
    "step_num,start_point,end_point,total,fp_point,iteration_interval,fp\n1,100,200,100,110,10,90\n-,0,0,0,0,0,0"
)
MEMORY = f"Component,Timestamp(us),Total Reserved(MB)\nAPP,1.7E+15,1\nAPP,{us(90)}\t,2\n"
KERNELS = (
    "Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim\n"
    f"A,N/A,N/A,{us(0)}\t,1.5,0,0\nB,N/A,N/A,x,1,0,0\nC,N/A,N/A,{us(3)}\t,0.123456,1,0\nD,too,few\n"
)


@pytest.mark.parametrize(
    ("name", "text", "expected", "warned"),
    [
        # columns that came later may be missing in earlier rows; inference has no backward end; a cut off file is said
        ("a.csv", EARLIER, {"collective step": [(2,)], "step step": [(0,), (1,), (2,)]}, {}),
        ("a.csv", INFERENCE, {"step fp_ns bp_ns end_ns": [(100, None, 1000)]}, {}),
        ("a.csv", STEPS.partition("-,7")[0], {}, {"no_average": ["`a.csv` has no average row"]}),
        # a time that a spreadsheet has rounded is none
        ("memory_record.csv", MEMORY, {"memory t_ns reserved_bytes": [(0, 2 << 20)]}, {}),
        # kernels without a column of steps, and bad rows
        ("kernel_details.csv", KERNELS, {"op step start_ns dur_ns": [(None, 0, 1500), (None, 3000, 123)]},
         {"bad_value": ["row with another number of fields than the header, which has 7 (first: 3 fields)",
                        "1 entry was left out: row without a start"]}),
    ],
)  # fmt: skip
def test_a_file_alone_becomes_these_rows(load, tmp_path, name, text, expected, warned):
    run = load(write(tmp_path / name, text))
    assert {asked: rows(run, *asked.split(" ", 1)) for asked in expected} == expected
    for code, texts in warned.items():
        said = sorted(warnings(run, code))
        assert [text in message for text, message in zip(texts, said, strict=True)] == [True] * len(texts)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("total", 999, "found 999 and 200 + 500 + 300 = 1000"),
        ("start_point", BASE + 1001, "start is the previous step's end"),
        ("bp_point", BASE + 1100, "start <= fp <= bp <= end"),
    ],
)
def test_a_violated_self_check_names_file_row_and_numbers(load, tmp_path, column, value, said):
    lines = [line.split(",") for line in step_trace_text().splitlines()]
    lines[2][lines[0].index(column)] = str(value)
    run = load(write(tmp_path / "a.csv", "\n".join(",".join(line) for line in lines)))
    assert any(message.startswith("`a.csv`, row 3: ") and said in message for message in warnings(run, "self_check"))


def test_a_graph_folder_has_operators_links_and_costs(load, tmp_path):
    run = load(write_graph(tmp_path / "profiler", rank=1))
    assert rows(run, "op_total", "source name type count total_ns mean_ns") == [
        ("aicore_type", None, "MatMul", 6, 3_000_000, 500_000), ("aicore_type", None, "Cast", 4, 1_000_000, 250_000),
        ("aicore_detail", "Default/network/MatMul-op1", "MatMul", 6, 3_000_000, 500_000),
        ("aicpu", None, "GetNext", 1, 900_000, 900_000),
    ]  # fmt: skip
    assert rows(run, "op_info", "name type in_shapes phase")[0] == (
        "Default/network/MatMul-op1", "MatMul", "float16[2,3]", "forward",
    )  # fmt: skip
    assert rows(run, "op", "step dur_ns track")[0] == (1, 500, "stream 5")
    links = rows(run, "rank_link", "step name src_rank dst_rank transport bytes dur_ns")
    assert links == [(0, "AllReduce-op1", 0, 1, "SDMA", 4096, 2000)]
    assert rows(run, "step_split", "step computing_ns exposed_ns receive_ns") == [
        (step, 4_000_000, 2_000_000, 1_000_000) for step in (0, 1)
    ]
    assert run.manifest.options["points"]["rank 1"]["fp"] == "Default/A-op1"


@pytest.mark.parametrize("zipped", [False, True])
def test_an_output_folder_is_read_to_the_nanosecond_and_holds_together(load, tmp_path, zipped):
    run = load(write_output(tmp_path / "x_ascend_pt", rank=4, zipped=zipped))
    assert run.manifest.state == "complete"
    assert run.manifest.warnings == []
    zero = run.manifest.reps[0].zero_realtime_ns
    assert zero == EPOCH_US * 1000 + 250
    assert rows(run, "step", "rank step start_ns fp_ns end_ns fetch_wait_ns") == [(4, 0, 0, 10_000, 100_000, 10_000)]
    assert rows(run, "op", "step start_ns dur_ns wait_ns track") == [(0, 30_000, 40_000, 0, "stream 2")]
    assert rows(run, "collective", "step kind group_name start_ns dur_ns") == [(0, "all_reduce", "586", 60_000, 20_125)]
    assert rows(run, "step_split", "step source_step computing_ns exposed_ns free_ns") == [
        (0, 7, 40_000, 10_125, 9_875)
    ]
    assert rows(run, "memory", "name allocated_bytes reserved_bytes active_bytes") == [
        ("PTA", 3 << 19, 2 << 20, 3 << 19), ("APP", None, 7 << 19, None),
    ]  # fmt: skip
    assert rows(run, "allocation", "bytes produced_ns released_ns") == [(2048, 20_000, 50_000), (512, 21_000, None)]
    assert rows(run, "collective_cost", "step dur_ns transit_ns wait_ns") == [(0, 20_125, 10_000, 8_000)]
    assert rows(run, "rank_link", "src_rank dst_rank transport bytes") == [
        (None, None, "HCCS", 2_000_000), (0, 1, "HCCS", 2_000_000),
    ]  # fmt: skip
    totals = rows(run, "op_total", "source name count total_ns self_ns")
    assert ("operator_details", "aten::mm", 2, 6500, 3000) in totals


def test_sums_that_differ_between_files_are_said(load, tmp_path):
    folder = write_output(tmp_path / "x")
    path = folder / "ASCEND_PROFILER_OUTPUT" / "op_statistic.csv"
    path.write_text(path.read_text().replace("MatMul,AI_CORE,1,40.0", "MatMul,AI_CORE,2,40.0"))
    events = trace_events()
    next(event for event in events if event["name"] == "Free")["dur"] = 1
    write(folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json", json.dumps(events))
    found = warnings(load(folder), "self_check")
    assert any("found 2 in 40000 ns, kernel_details has 1 in 40000 ns" in message for message in found)
    assert any("row Free: its sum in Overlap Analysis = step_trace_time, found 1000 ns and 9875 ns" in m for m in found)


def summary(name, rows):
    head = "Device_id,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us)\n"
    return head + "".join(f"0,{name},MatMul,AI_CORE,{us(at)}\t,{dur},0\n" for at, dur in rows)


def test_a_summary_of_operators_in_pieces_is_held_against_the_statistic_as_a_whole(load, tmp_path):
    here = tmp_path / "x" / "mindstudio_profiler_output"
    write(here / "op_summary_slice_0_1.csv", summary("A", [(0, 2), (5, 3)]))
    write(here / "op_summary_slice_1_1.csv", summary("B", [(10, 4)]))
    statistic = "Device_id,OP Type,Core Type,Count,Total Time(us)\n0,MatMul,AI_CORE,{},{}\n"
    write(here / "op_statistic_1.csv", statistic.format(3, 9))
    assert load(tmp_path / "x").manifest.warnings == []
    write(here / "op_statistic_1.csv", statistic.format(1, 4))
    said = warnings(load(tmp_path / "x", force=True), "self_check")
    assert "found 1 in 4000 ns, kernel_details has 3 in 9000 ns" in said[0]


def test_a_summary_of_several_devices_says_so_and_those_in_the_folders_of_devices_are_of_their_ranks(load, tmp_path):
    text = summary("A", [(0, 2), (5, 3)])
    write(tmp_path / "one" / "op_summary_1.csv", text + text.splitlines()[1].replace("0,A", "1,A", 1) + "\n")
    assert "of 2 devices" in warnings(load(tmp_path / "one"), "devices")[0]
    for device in (0, 1):
        folder = write_prof(tmp_path / "x", device) / "PROF_000001_1_A" / f"device_{device}"
        write(folder / "summary" / f"op_summary_{device}_2_1.csv", summary(f"of {device}", [(device, 2)]))
    run = load(tmp_path / "x", force=True)
    assert rows(run, "op_info", "rank name") == [(0, "of 0"), (1, "of 1")]
    assert warnings(run, "left_out") == warnings(run, "devices") == []


ZERO = EPOCH_US * 1000
DISORDER = "1 entry was left out: iteration whose model start, FP, BP and end are not in order"


@pytest.mark.parametrize(
    ("make", "edit", "zero", "expected"),
    [
        # a link that moved nothing is left out
        (write_graph, ("hccl_raw_0.csv", '""SDMA"": [', '""RDMA"": [0, 0, 0], ""SDMA"": ['), None,
         {"rank_link transport bytes": [("SDMA", 4096)]}),
        # without kernel_details operators come from the trace
        (write_output, ("kernel_details.csv op_statistic.csv", None, None), ZERO + 250,
         {"op step start_ns dur_ns track": [(0, 30_000, 40_000, "Stream 2")],
          "collective step start_ns dur_ns group_name": [(0, 60_000, 20_125, "Group 0 Communication")]}),
        # a folder of msprof gives steps with the input gap, and the iterations beside them; a stream has two names
        *((write_prof, ("task_time_0_2_1.json", "Stream Id", name), ZERO - 5_000_000 + 10_000_000,
           {"step step start_ns fp_ns bp_ns end_ns":
                [(0, 0, 10_500, 600_500, 1_000_000), (1, 1_000_000, 1_510_500, 2_100_500, 2_500_000)],
            "span name start_ns dur_ns": [("Iteration 1", 0, 1_000_000), ("Iteration 2", 1_500_000, 1_000_000)],
            "op step start_ns dur_ns track": [(0, 20_500, 20_250, "stream 2")], "warned": []})
          for name in ("Stream Id", "Physic Stream Id")),
        # an iteration that is not in order leaves the others
        (write_prof, ("step_trace_*", '"FP Start": 10010.5', '"FP Start": 99999.5'), None,
         {"step start_ns fp_ns end_ns": [(1_500_000, 1_510_500, 2_500_000)],
          "warned": [f"`step_trace_0_2_{number}.json`: {DISORDER}" for number in (1, 2)]}),
        # CPU executions give steps and phases by their graph
        (write_cpu, None, None,
         {"step rank step start_ns fp_ns bp_ns end_ns":
              [(2, 0, 0, 0, 500, 650), (2, 1, 650, 1000, 1500, 1650), (2, 2, 1650, 2000, 2500, 2650)],
          "op_info type phase in_shapes": [
              ("MatMul", "forward", "[2, 3]"), ("MatMulGrad", "backward", "[2, 3]"),
              ("ApplyMomentum", "optimizer", "[2, 3]")]}),
    ],
)  # fmt: skip
def test_a_folder_becomes_these_rows(load, tmp_path, make, edit, zero, expected):
    make(tmp_path / "x", **({"rank": 2} if make is write_cpu else {}))
    names, old, new = edit or ("", None, None)
    for path in [path for name in names.split() for path in (tmp_path / "x").rglob(name)]:
        if new is None:
            path.unlink()
        else:
            path.write_text(path.read_text().replace(old, new))
    run = load(tmp_path / "x")
    assert run.manifest.state == "complete"
    warned = [warning.message for warning in run.manifest.warnings]
    assert {asked: warned if asked == "warned" else rows(run, *asked.split(" ", 1)) for asked in expected} == expected
    assert zero in (None, run.manifest.reps[0].zero_realtime_ns)


@pytest.mark.parametrize("related", [True, False])
def test_newer_files_of_msprof_are_on_the_wall_clock_already(load, tmp_path, related):
    raw = tmp_path / "x" / "PROF_000001_1_A"
    if related:
        text = f'{{"collectionTimeBegin": "{EPOCH_US}", "clockMonotonicRaw": "5000000"}}'
        write(raw / "device_0" / "start_info.0", text)
    called = {"name": "AscendCL@x", "pid": 2, "tid": 1, "ts": us(5), "dur": 1, "ph": "X", "args": {}}
    named = {"name": "process_name", "pid": 2, "tid": 0, "args": {"name": "CANN"}, "ph": "M"}
    write(raw / "mindstudio_profiler_output" / "msprof_20240101.json", json.dumps([named, called]))
    write(raw / "mindstudio_profiler_output" / "op_summary_1.csv", summary("A", [(0, 2)]))
    run = load(tmp_path / "x")
    assert rows(run, "span", "start_ns") == [(5000,)]
    assert (run.manifest.reps[0].zero_realtime_ns, run.manifest.warnings) == (EPOCH_US * 1000 + 250, [])


def test_of_several_models_of_msprof_that_with_most_steps_counts_and_this_is_said(load, tmp_path):
    here = write_prof(tmp_path / "x") / "PROF_000001_1_A" / "device_0" / "timeline"
    one = here.joinpath("step_trace_0_2_1.json").read_text().replace("10010.5", "10090.5").replace('ID": 2', 'ID": 3')
    write(here / "step_trace_0_11_1.json", json.dumps(json.loads(one)[:5]))
    run = load(tmp_path / "x")
    assert rows(run, "step", "start_ns fp_ns end_ns")[0] == (0, 10_500, 1_000_000)
    assert rows(run, "collective", "step name") == [(0, "Reduce_1_0"), (1, "Reduce_2_0")]
    assert "model 2, which has the most; left out: those of 11" in warnings(run, "models")[0]


def test_a_tree_of_ranks_is_one_run_and_ranks_share_the_clock(load, tmp_path):
    for rank in (0, 5):
        write_output(tmp_path / "job" / f"host{rank}_ascend_pt", rank=rank)
    run = load(tmp_path / "job")
    assert [rank.rank for rank in run.manifest.reps[0].ranks] == [0, 5]
    assert rows(run, "op", "rank start_ns") == [(0, 30_000), (5, 30_000)]


def test_dataset_files_beside_a_step_trace_come_into_the_same_run(load, tmp_path):
    folder = write_graph(tmp_path / "profiler")
    write(folder / "device_queue_profiling_0.txt", "0 0 1 1 10\n0 1 1 0 10\n0 2 1 1 10\n1 64 1 3 10\n")
    write(folder / "minddata_aicpu_0.txt", "".join(f"GetNext_dequeue_wait {t}000 {t}001 2\n" for t in range(9, 12)))
    write(folder / "minddata_cpu_utilization_0.json", cpu_json(cpu_processor_num=48))
    run = load(folder)
    assert (run.manifest.source, run.manifest.fingerprint["cpu_cores"]) == ("import:ascend+minddata", 48)
    assert len(rows(run, "step", "step")) == 3
    assert rows(run, "fetch", "side step depth") == [("host_queue", None, 3), *[("data_queue", None, 2)] * 3]
    assert run.manifest.tables["fetch"] == 4
    assert import_path(folder, tmp_path / "one", kind="minddata").manifest.source == "import:minddata"
    assert "fetch" not in import_path(folder, tmp_path / "two", kind="ascend").manifest.tables


def test_a_damaged_file_leaves_the_others_and_what_stood_in_front_of_the_damage(load, tmp_path):
    folder = write_output(tmp_path / "x")
    path = folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json"
    path.write_text(path.read_text()[:-40])
    run = load(folder)
    assert run.manifest.state == "partial"
    assert "trace_view.json`: the file ends inside the list of events at byte" in run.manifest.reason
    assert len(rows(run, "op", "step")) == 1
    assert ("aten::mm",) in rows(run, "span", "name")


@pytest.mark.parametrize("chunk", [64, 300, 1 << 20])
def test_events_are_the_same_whatever_the_pieces(tmp_path, chunk):
    events = trace_events() * 20
    path = write(tmp_path / "trace_view.json", json.dumps(events, indent=1 if chunk == 300 else None))
    found = [event for part in chrome.events(path, chrome.Event, Notes(), chunk) for event in part]
    assert [event.name for event in found] == [event["name"] for event in events]
    args = [bytes(event.args) and json.loads(bytes(event.args)) for event in found]
    assert args == [event.get("args", b"") for event in events]


def test_files_are_known_by_their_content_not_by_their_names(tmp_path):
    path = write(tmp_path / "anything.dat", step_trace_text())
    assert recognise(path) == "ascend"
    assert recognise(write(tmp_path / "plain.csv", "a,b\n1,2\n")) is None
    assert recognise(write(tmp_path / "list.json", "[1, 2]")) is None
    with pytest.raises(SourceError, match="is empty"):
        import_path(write(tmp_path / "trace.json", ""), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_data_wait_is_the_sum_of_the_waits_wherever_they_lie_in_the_step(tmp_path):
    calls = [("ProfilerStep#7", 0, 100), ("ProfilerStep#8", 100, 50), ("ProfilerStep#9", 150, 100)]
    calls += [("enumerate(DataLoader)#It.__next__", at, dur) for at, dur in ((0, 5), (0, 5), (90, 8), (200, 60))]
    events = [{"ph": "X", "name": name, "cat": "cpu_op", "pid": 1, "tid": 7, "ts": us(at), "dur": dur}
              for name, at, dur in calls]  # fmt: skip
    path = write(tmp_path / "trace_view.json", json.dumps(events))
    for kind in ("ascend", "kineto"):
        run = import_path(path, tmp_path / kind, kind=kind)
        assert rows(run, "step", "start_ns data_wait_ns fetch_wait_ns fp_ns") == [
            (0, 13_000, 13_000, 13_000), (100_000, 0, 0, 100_000), (150_000, 50_000, 50_000, 200_000),
        ]  # fmt: skip
        assert rows(run, "fetch", "start_ns wait_ns") == [(0, 5000), (90_000, 8000), (200_000, 60_000)]


@pytest.mark.parametrize("other_clock", [False, True])
def test_kernels_that_name_no_step_belong_to_the_one_they_start_in_unless_the_clocks_differ(
    load, tmp_path, other_clock
):
    path = write_output(tmp_path / "x") / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
    path.write_text("".join(line.partition(",")[2] + "\n" for line in path.read_text().splitlines()))
    if other_clock:
        write(path.with_name("step_trace_raw_0_detail_time.csv"), step_trace_text())
    run = load(tmp_path / "x")
    step = None if other_clock else 0
    assert rows(run, "op", "step dur_ns") == [(step, 40_000)]
    traced = [(0, 1000), (2, 1000)] if other_clock else []
    assert rows(run, "collective", "step dur_ns") == [*traced, (step, 20_125)]
    assert ["another clock" in text for text in warnings(run, "steps")] == [True] * other_clock


def test_the_first_time_of_a_trace_is_a_whole_number_wherever_it_stands(tmp_path):
    path = tmp_path / "trace_view.json"
    text = json.dumps([{"ph": "X", "name": "aten::mm", "pid": 1, "tid": 7, "ts": us(at), "dur": 1} for at in range(5)])
    named = [{"ph": "M", "name": "thread_name", "pid": 1, "tid": at, "args": {"name": "x" * 90}} for at in range(500)]
    lead = json.dumps(named)[:-1] + ", "
    begin = {"epoch": EPOCH_US * 1000 + 250}
    for cut in range(0, 90, 3):  # where the first 64 KiB end
        write(path, "[" + " " * ((1 << 16) - cut - 1) + text[1:])
        assert first_times([{"trace_view": [path]}]) == begin
    write(path, lead + text[1:])
    assert first_times([{"trace_view": [path]}]) == begin
    assert import_path(path, tmp_path / "run", kind="ascend").manifest.reps[0].dur_ns == 5000


def test_memory_of_cann_is_in_kb_and_left_out_beside_the_output_that_is_made_of_it(load, tmp_path):
    here = tmp_path / "x" / "PROF_000001_1_A" / "mindstudio_profiler_output"
    head = "Device_id,Component,Timestamp(us),Total Reserved({}),Device\n"
    write(here / "npu_module_mem_1.csv", head.format("KB") + f"0,RUNTIME,{us(0)}\t,2048,NPU:0\n")
    assert rows(load(tmp_path / "x"), "memory", "name device reserved_bytes") == [("RUNTIME", "NPU:0", 2 << 20)]
    output = tmp_path / "x" / "ASCEND_PROFILER_OUTPUT"
    write(output / "npu_module_mem.csv", head.format("MB") + f"0,RUNTIME,{us(0)}\t,2,NPU:0\n")
    write(output / "memory_record.csv", f"Component,Timestamp(us),Total Reserved(MB)\nGE,{us(0)}\t,1\n")
    found = rows(load(tmp_path / "x", force=True), "memory", "name reserved_bytes")
    assert sorted(found) == [("GE", 1 << 20), ("RUNTIME", 2 << 20)]


@pytest.mark.parametrize("more", [-1, 0, 1, 1 << 20])
def test_names_and_steps_at_the_end_of_a_trace_are_found_whatever_its_length(load, tmp_path, more):
    text = json.dumps(trace_events())
    text = text.replace("[", "[" + " " * ((1 << 20) + more - len(text)), 1)
    write(tmp_path / "x" / "trace_view.json", text)
    run = load(tmp_path / "x", kind="ascend")
    assert rows(run, "step", "data_wait_ns") == [(10_000,)]
    assert rows(run, "op", "dur_ns track") == [(40_000, "Stream 2")]
