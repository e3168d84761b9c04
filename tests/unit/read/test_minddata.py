"""Files of MindSpore's dataset profiling: what they really look like, traps and damage included.

Operators of a dataset graph are in two files, CPU and memory in a third (with the zero twins of 2.10 and without), and
timing blocks, with a clock of their own, in logs.
"""

import json
import random

import pytest
from minddata_files import (
    MS,
    PERIODS_MS,
    START_MS,
    WALL_S,
    block,
    cpu_json,
    graph,
    header,
    log,
    op,
    pipeline_json,
    raw_csv,
    stamps_ms,
    write_feed,
)  # fmt: skip

from pipeprof.errors import SourceError
from pipeprof.read.foreign import import_path
from pipeprof.read.minddata import read_folder
from pipeprof.read.minddata.files import align, read_blocks
from pipeprof.read.minddata.folder import read_cpu
from pipeprof.read.minddata.graph import read_pipeline, read_raw_csv, structure_key
from pipeprof.read.tables.share import Notes

NAME, CPU, TABLE = "pipeline_profiling_0.json", "minddata_cpu_utilization_0.json", "minddata_pipeline_raw_0.csv"
OFFSET = WALL_S * 1_000_000_000


@pytest.fixture
def noted(tmp_path):
    """What a reader makes of such a file, and what was noted about it."""

    def read(reader, name, text):
        notes, path = Notes(), tmp_path / name
        path.write_bytes(text.encode("utf-8", "replace"))
        return reader(path, notes), [message for _, message in notes.all()]

    return read


@pytest.fixture
def pipeline(noted):
    return lambda text: noted(read_pipeline, NAME, text)


@pytest.fixture
def machine(noted):
    return lambda text: noted(read_cpu, CPU, text)


@pytest.fixture
def blocks(noted):
    return lambda text: noted(read_blocks, "worker.log", text)


@pytest.fixture
def folder(tmp_path):
    """`folder(operators, times, fetches)`: what is read of a folder with these files."""

    def read(ops=None, times=None, fetches=None):
        for name, content in ((NAME, ops and {"op_info": ops}), (CPU, times)):
            if content is not None:
                tmp_path.joinpath(name).write_text(json.dumps(content), encoding="utf-8")
        if fetches is not None:
            tmp_path.joinpath("dataset_iterator_profiling_0.txt").write_bytes(fetches)
        return read_folder(tmp_path)

    return read


def cpu(stamps, *ops):
    """(number, user, system) of operators."""
    names = ("user_utilization", "sys_utilization")
    entries = [{"op_id": number, "metrics": dict(zip(names, used, strict=True))} for number, *used in ops]
    return {"time_stamp": stamps, "op_info": entries}


def test_operators_of_a_folder_come_by_id_with_depths_cores_and_ns(folder):
    unordered = [op(2, "GeneratorOp", [1]), op(0, "BatchOp", [3], [1]), op(1, "MapOp", [2], [2])]
    found = folder(unordered, cpu([5]))
    assert [(one.op_id, one.op_type, one.children, one.depths) for one in found.ops] == [
        (0, "BatchOp", [1], [3]), (1, "MapOp", [2], [2]), (2, "GeneratorOp", [], [1]),
    ]  # fmt: skip
    used = cpu([5, 15], (0, [50, 150], [10, 0]), (9, [1], [1]))
    found = folder([op(0, "EpochCtrlOp", None, [1]), op(1, "BatchOp", [3])], used)
    assert found.times == [5 * MS, 15 * MS]
    assert (found.ops[0].capacity, found.ops[0].depths) == (None, [])  # without metrics it runs inside its consumer
    assert found.ops[0].cpu == [(0.5, 0.1), (1.5, 0.0)]


@pytest.mark.parametrize(
    ("sizes", "stamps", "said"),
    [
        ([1, 2], [5, 15, 25], []),  # lengths that differ by one are how it writes them
        ([1, 2, 3, 4], [5, 15, 25], []),
        ([1], [5, 15, 25], ["operator 0: 1 sizes, 3 times"]),
        ([1, 2, 3, 4, 5], [5, 15, 25], ["operator 0: 5 sizes, 3 times"]),
    ],
)
def test_lengths_that_differ_by_more_are_noted(folder, sizes, stamps, said):
    notes = folder([op(0, "BatchOp", sizes)], cpu(stamps)).said()
    assert [text in note for text, note in zip(said, notes, strict=True)] == [True] * len(said)


@pytest.mark.parametrize(
    ("name", "content"),
    [(NAME, b'{"op_info": [{"op_type": "MapOp"}]}'), (NAME, b"\xff\xfe"), (CPU, b'{"time_stamp": [1, 2')],
)
def test_a_damaged_file_of_a_folder_is_refused_by_name(tmp_path, name, content):
    tmp_path.joinpath(NAME).write_text(pipeline_json(), encoding="utf-8")
    tmp_path.joinpath(name).write_bytes(content)
    with pytest.raises(SourceError, match=name):
        read_folder(tmp_path)


def test_an_empty_folder_has_nothing(tmp_path):
    found = read_folder(tmp_path)
    assert (found.ops, found.times, found.records, found.said()) == ([], [], [], [])


FIVE = b"0 0 1 12 1000\n0 1 1 2 1000\n0 2 1 14 1000\n1 8 1 3 1000\n"


def test_a_fetch_is_gathered_from_its_four_lines(folder):
    (found,) = unix = folder(fetches=FIVE).records
    assert (found.batch, found.wait_ns, found.push_ns, found.batch_ns) == (1, 12 * MS, 2 * MS, 14 * MS)
    assert (found.t_ns, found.depth, found.capacity) == (1000 * MS, 3, 8)
    assert folder(fetches=FIVE.replace(b"\n", b"\r\n")).records == unix
    (found,) = folder(fetches=FIVE.replace(b" 1000\n", b"\n")).records  # without the fifth column
    assert (found.t_ns, found.depth, found.wait_ns) == (None, 3, 12 * MS)


@pytest.mark.parametrize(
    ("content", "batches"),
    [
        (b"0 0 2 5 20\n0 0 1 4 10\n0 0 10 6 30\n", [1, 2, 10]),
        *((FIVE + tail, [1]) for tail in (b"0 0 2", b"0 0 ", b"1", b"0 0 2 \n", b"0 0 2 1x 5\n")),  # ragged
    ],
)
def test_batches_come_by_number_and_a_ragged_last_line_is_left_out(folder, content, batches):
    assert [one.batch for one in folder(fetches=content).records] == batches


def test_operators_of_a_graph_come_by_id_with_their_queue(pipeline):
    found, notes = pipeline(pipeline_json())
    assert [(one.op_id, one.op_type, one.workers, one.children) for one in found.ops] == [
        (0, "BatchOp", 1, [1]), (1, "MapOp", 2, [2]), (2, "GeneratorOp", 1, []),
    ]  # fmt: skip
    assert (found.ops[2].capacity, found.ops[2].depths) == (8, [8, 7, 8, 8, 8, 7])
    assert (found.interval_ns, notes) == (10_000_000, [])
    found, _ = pipeline(pipeline_json([*graph(), op(3, "EpochCtrlOp", None, [0])]))  # the sink need not be operator 0
    assert (found.ops[3].children, found.ops[3].has_queue, found.ops[3].capacity) == ([0], False, None)


@pytest.mark.parametrize(
    ("sizes", "capacity", "kept", "text"),
    [
        ([1, -1, 2], 8, [1, None, 2], "1 entry was left out: operator 0: depth is not"),
        ([1, 9, 99], 8, [1, None, None], "2 entries were left out: operator 0: depth above the capacity of 8"),
        ([1, 2**63, 2], 8, [1, None, 2], "1 entry was left out: operator 0: depth is not"),
        ([1, float("nan"), float("inf")], 8, [1, None, None], "2 entries were left out: operator 0: depth is not"),
        ([1, "2", True, 0.5], 8, [1, None, None, None], "3 entries were left out: operator 0: depth is not"),
        ([1, 2], -8, [1, 2], "1 entry was left out: operator 0: impossible capacity"),
    ],
)
def test_impossible_depths_and_capacities_are_unknown_and_counted(pipeline, sizes, capacity, kept, text):
    found, (note,) = pipeline(pipeline_json([op(0, "BatchOp", sizes, capacity=capacity)]))
    (one,) = found.ops
    assert (one.depths, one.capacity, one.has_queue) == (kept, 8 if capacity == 8 else None, True)
    assert text in note
    assert NAME in note


def test_a_queue_without_samples_is_noted(pipeline):
    unsampled = op(0, "BatchOp", [])
    assert pipeline(pipeline_json([unsampled]))[1] == []  # the run ended before the first sample
    assert "operator 0 has a queue and no samples" in pipeline(pipeline_json([unsampled, op(1, "MapOp", [1])]))[1][0]


SHARED = [op(0, "ZipOp", None, [1, 2]), op(1, "MapOp", [1], [3]), op(2, "MapOp", [1], [3]), op(3, "GeneratorOp", [1])]


@pytest.mark.parametrize(
    ("ops", "said"),
    [
        ([op(0, "BatchOp", [1]), op(0, "MapOp", [1])], "op_id 0 more than once"),
        ([op(0, "BatchOp", [1], [7])], "operator 0 has the child 7"),
        ([op(0, "BatchOp", [1], [1]), op(1, "MapOp", [1], [0])], "is its own producer"),
        ([op(0, "BatchOp", [1], [0])], "is its own producer"),
        (SHARED, "operator 3 is the child of 1 and of 2"),
        ([{"op_id": -1, "op_type": "MapOp"}], "expected op_info"),
        ([{"op_id": 1}], "expected op_info"),
        ([7], "an operator is int"),
    ],
)
def test_what_is_no_tree_is_refused_by_name(pipeline, ops, said):
    with pytest.raises(SourceError, match=NAME) as refused:
        pipeline(pipeline_json(ops))
    assert said in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize("text", ["", " ", "[]", '{"op_info": {}}', '{"op_info": [{"op_id": 0', "[" * 100_000, "\x00"])
def test_what_cannot_be_parsed_is_refused_by_name(pipeline, text):
    with pytest.raises(SourceError, match=NAME):
        pipeline(text)


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_the_derived_table_gives_the_same_graph(noted, end):
    found, notes = noted(read_raw_csv, TABLE, raw_csv().replace("\r\n", end))
    assert [(one.op_id, one.children, one.capacity, one.depths) for one in found.ops] == [
        (0, [1], None, []), (1, [2, 3], 8, [1, 2, 3]), (2, [], 8, [8, 8, 8]), (3, [], 8, [4, 4, 4]),
    ]  # fmt: skip
    assert (found.interval_ns, notes, found.ops[0].has_queue) == (10_000_000, [], False)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text[: text.index("[4, 4")], "cells, expected 10"),
        (lambda text: text.replace("[4, 4, 4]", "[4, 4, 4"), "expected a list in brackets"),
        (lambda text: text.replace("op_type", "kind"), "no column op_type"),
        (lambda text: text.partition("\r\n")[0], "no operators"),
        (lambda text: text.replace("[2, 3]", "[2, 9]"), "child 9"),
    ],
)
def test_a_damaged_table_is_refused_by_name(noted, change, said):
    with pytest.raises(SourceError, match=TABLE) as refused:
        noted(read_raw_csv, TABLE, change(raw_csv()))
    assert said in refused.value.message


def test_the_key_is_of_types_and_structure_alone(pipeline):
    unsampled = [{**entry, "num_workers": 9, "metrics": None} for entry in graph()]
    longer = [*graph(), op(3, "EpochCtrlOp", None, [0])]
    one, other, third = (structure_key(pipeline(pipeline_json(ops))[0].ops) for ops in (graph(), unsampled, longer))
    assert one == other != third


def test_a_long_chain_is_a_tree_and_read_in_no_time_that_grows_with_its_square(pipeline):
    chain = [op(number, "MapOp", None, [number + 1] if number < 60_000 else []) for number in range(60_001)]
    assert len(pipeline(pipeline_json(chain))[0].ops) == 60_001
    chain[-1]["children"], chain[59_989]["children"] = [59_990], []
    with pytest.raises(SourceError, match=r"operator 5999[0-9] is its own producer"):
        pipeline(pipeline_json(chain))
    chain[-1]["op_id"] = 59_999
    with pytest.raises(SourceError, match="op_id 59999 more than once"):
        pipeline(pipeline_json(chain))
    with pytest.raises(SourceError, match="70,000 operators, expected at most 65,536"):
        pipeline(pipeline_json([op(number, "MapOp") for number in range(70_000)]))


def test_operators_process_and_memory_have_the_stamps_cores_and_bytes(machine):
    found, _ = machine(cpu_json(3))
    assert found.times == [(START_MS + 23 * number) * MS for number in range(3)]  # no multiples of the interval
    assert found.ops == dict.fromkeys((0, 1, 2), [(0.5, 0.1)] * 3)
    assert found.process == [(1.2, 0.3)] * 2
    assert (found.rss, found.used) == ([100 * 2**20 + 2**19] * 3, [700 * 2**20] * 3)


def test_of_zero_twins_every_second_idle_is_used_and_nothing_else(machine):
    found, notes = machine(cpu_json(4))
    assert found.host == [(None, None, None)] + [(None, None, 0.75)] * 3
    assert [f"every second one in `{CPU}` is 0" in note for note in notes] == [True]
    found, notes = machine(cpu_json(4, twins=False))
    assert (found.host, notes) == ([(0.2, 0.05, 0.75)] * 4, [])


def test_impossible_values_are_unknown_and_counted(machine):
    info = {"user_utilization": [50, -1, float("nan"), "x"], "sys_utilization": [1, 2, 3, 4]}
    found, notes = machine(cpu_json(4, process_info=info, twins=False))
    assert [user for user, _ in found.process] == [0.5, None, None, None]
    assert notes == [f"`{CPU}`: 3 entries were left out: impossible CPU of the process"]
    info = {"idle_utilization": [75, 175], "user_utilization": [1, 1], "sys_utilization": [1, 1]}
    found, notes = machine(cpu_json(2, device_info=info))
    assert [idle for _, _, idle in found.host] == [0.75, None]
    assert "1 entry was left out: impossible CPU of the host" in notes[0]


@pytest.mark.parametrize("bad", [-1, 2**62, None, float("inf"), "5"])
def test_an_impossible_stamp_is_unknown_and_keeps_its_place(machine, bad):
    found, notes = machine(cpu_json(3, time_stamp=[5, bad, 25]))
    assert found.times == [5 * MS, None, 25 * MS]
    assert any("1 entry was left out: impossible time stamp" in note for note in notes)


def test_stamps_that_go_backwards_are_said_and_an_empty_object_has_nothing(machine):
    assert "go backwards" in machine(cpu_json(3, time_stamp=[5, 25, 15]))[1][0]
    found, notes = machine(json.dumps({"time_stamp": None, "op_info": 7, "device_info": []}))
    assert (found.times, found.ops, found.host, notes) == ([], {}, [], [])


@pytest.mark.parametrize(
    ("value", "cores"), [(8, 8), (8.0, 8), (0, None), (-2, None), ("8", None), (None, None), (1 << 20, None)]
)
def test_the_cpus_of_the_machine_are_those_that_the_file_names(machine, value, cores):
    assert machine(cpu_json(3, cpu_processor_num=value))[0].machine_cores == cores


@pytest.mark.parametrize(("of_rank_1", "cores"), [(2, 2), (None, 2), (4, None)])
def test_a_run_has_the_cpus_that_all_its_ranks_agree_on(tmp_path, of_rank_1, cores):
    for rank in (0, 1):
        folder = write_feed(tmp_path / "raw", rank=rank)
    folder.joinpath("minddata_cpu_utilization_1.json").write_text(cpu_json(cpu_processor_num=of_rank_1))
    assert import_path(folder, tmp_path / "run").manifest.fingerprint.get("cpu_cores") == cores


def test_a_block_has_its_time_process_and_operators(blocks):
    (found,), notes = blocks(block(1_060))
    assert (found.wall_ns, found.pid, notes) == (OFFSET + 1_060 * MS, 77, [])
    assert [(one.op_id, one.op_type, one.rows) for one in found.ops] == [
        (2, "GeneratorOp", 3), (1, "MapOp", 3), (0, "BatchOp", 1),
    ]  # fmt: skip
    generator, mapped, batch = found.ops
    assert (generator.avg_ns, generator.max_ns, generator.min_ns) == (1_140_000, 1_260_000, 1_090_000)
    assert (mapped.io_ns, batch.max_ns, batch.min_ns, batch.io_ns) == (70_000, None, None, None)


NOISY = "Traceback?\n" + "".join(f"step {n}: loss 0.1\n{line}\n" for n, line in enumerate(log(3).splitlines()))


@pytest.mark.parametrize(
    "text",
    [
        NOISY,
        log(3).replace("\n", "\r\n"),
        # lines that a terminal has joined
        *(log(3).replace(joined, joined.replace("\n", "")).replace("[V10900]", "\n[V10900]")
          for joined in ("\n-- ", "] \n", "\n")),
    ],
)  # fmt: skip
def test_other_output_and_other_line_ends_change_nothing(blocks, text):
    assert blocks(text) == blocks(log(3)) == (blocks(log(3))[0], [])


def test_times_of_a_sink_are_taken_wherever_they_stand(blocks):
    (found,), _ = blocks(block(1_060, extra="throughput_time: 12.50ms, push_device_time: 3.25ms\n"))
    assert found.extras == {"throughput_time": 12_500_000, "push_device_time": 3_250_000}


TWICE = "-- MapOp(ID:1) : worker_time (avg:1ms, max: /, min: /, count:1)\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (block(1_060).partition("\n")[2], "without a time stamp"),
        (header(1_060) + "\n[PROF Dataset]\nnothing\n", "without operators"),
        (block(1_060) + TWICE, "with an operator twice"),
        (block(1_060).replace("09-21", "13-41"), "without a time stamp"),
    ],
)
def test_a_block_that_is_not_whole_is_left_out_and_counted(blocks, text, said):
    found, notes = blocks(text)
    assert found == []
    assert f"1 entry was left out: timing block {said}" in notes[0]


def test_a_log_that_ends_in_a_block_keeps_what_was_printed(blocks):
    found, _ = blocks(block(1_060).partition("-- BatchOp")[0] + "-- Bat")
    assert [len(one.ops) for one in found] == [2]


def jittered(count, seed=3):
    chance, times = random.Random(seed), [1_000 * MS]  # noqa: S311 - a test's jitter
    for _ in range(count - 1):
        times.append(times[-1] + (40 + chance.randrange(12)) * MS)
    return times


def aligned(times, logged=slice(None), known=slice(None)):
    found = align([OFFSET + time + 250_000 for time in times][logged], times[known])
    return found.offset_ns - OFFSET, found.doubtful


@pytest.mark.parametrize("logged", [(0, 60), (7, 60), (0, 50), (5, 55)])
def test_the_clocks_are_aligned_whatever_end_of_the_log_is_missing(logged):
    assert aligned(jittered(60), slice(*logged)) == (250_000, False)


def test_a_longer_log_than_the_record_is_aligned_too_and_a_single_block_is_doubtful():
    assert aligned(jittered(60), known=slice(20, None))[0] == 250_000
    assert aligned(jittered(60), slice(59, 60))[1]


def test_a_clockwork_pipeline_takes_the_first_blocks_for_missing_and_says_so():
    assert aligned([n * 40 * MS for n in range(60)], slice(4, None)) == (250_000, True)


def test_the_hand_made_log_fits_its_record(blocks):
    found, _ = blocks(log(8, skip=2))
    assert len(set(PERIODS_MS)) == len(PERIODS_MS)
    assert align([one.wall_ns for one in found], [ms * MS for ms in stamps_ms(8)]).offset_ns == OFFSET
