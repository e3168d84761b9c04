"""Timing blocks in logs, and their clock."""

import random

import pytest
from minddata_files import MS, PERIODS_MS, WALL_S, block, header, log, stamps_ms

from pipeprof.read.minddata.files import align, read_blocks
from pipeprof.read.tables.share import Notes

OFFSET = WALL_S * 1_000_000_000


@pytest.fixture
def read(tmp_path):
    def run(text):
        notes = Notes()
        path = tmp_path / "worker.log"
        path.write_bytes(text.encode("utf-8", "replace"))
        return read_blocks(path, notes), [message for _, message in notes.all()]

    return run


def test_a_block_has_its_time_process_and_operators(read):
    (found,), notes = read(block(1_060))
    assert (found.wall_ns, found.pid, notes) == (OFFSET + 1_060 * MS, 77, [])
    assert [(one.op_id, one.op_type, one.rows) for one in found.ops] == [
        (2, "GeneratorOp", 3), (1, "MapOp", 3), (0, "BatchOp", 1),
    ]  # fmt: skip
    generator, mapped, batch = found.ops
    assert (generator.avg_ns, generator.max_ns, generator.min_ns) == (1_140_000, 1_260_000, 1_090_000)
    assert (mapped.io_ns, batch.max_ns, batch.min_ns, batch.io_ns) == (70_000, None, None, None)


def test_other_output_between_and_inside_changes_nothing(read):
    noisy = "".join(f"step {n}: loss 0.1\n{line}\n" for n, line in enumerate(log(3).splitlines()))
    clean, _ = read(log(3))
    assert read("Traceback?\n" + noisy)[0] == clean


def test_windows_line_ends_change_nothing(read):
    assert read(log(3).replace("\n", "\r\n"))[0] == read(log(3))[0]


@pytest.mark.parametrize("joined", ["\n-- ", "] \n", "\n"])
def test_lines_that_a_terminal_has_joined_are_told_apart(read, joined):
    whole, _ = read(log(3))
    found, notes = read(log(3).replace(joined, joined.replace("\n", "")).replace("[V10900]", "\n[V10900]"))
    assert (found, notes) == (whole, [])


def test_times_of_a_sink_are_taken_wherever_they_stand(read):
    (found,), _ = read(block(1_060, extra="throughput_time: 12.50ms, push_device_time: 3.25ms\n"))
    assert found.extras == {"throughput_time": 12_500_000, "push_device_time": 3_250_000}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (block(1_060).partition("\n")[2], "1 entry was left out: timing block without a time stamp"),
        (header(1_060) + "\n[PROF Dataset]\nnothing\n", "1 entry was left out: timing block without operators"),
        (
            block(1_060) + "-- MapOp(ID:1) : worker_time (avg:1ms, max: /, min: /, count:1)\n",
            "1 entry was left out: timing block with an operator twice",
        ),
        (block(1_060).replace("09-21", "13-41"), "1 entry was left out: timing block without a time stamp"),
    ],
)
def test_a_block_that_is_not_whole_is_left_out_and_counted(read, text, said):
    found, notes = read(text)
    assert found == []
    assert said in notes[0]


def test_a_log_that_ends_in_a_block_keeps_what_was_printed(read):
    found, _ = read(block(1_060).partition("-- BatchOp")[0] + "-- Bat")
    assert [len(one.ops) for one in found] == [2]


def jittered(count, seed=3):
    chance, times = random.Random(seed), [1_000 * MS]  # noqa: S311 - a test's jitter
    for _ in range(count - 1):
        times.append(times[-1] + (40 + chance.randrange(12)) * MS)
    return times


def walls(times):
    return [OFFSET + time + 250_000 for time in times]


@pytest.mark.parametrize(("first", "last"), [(0, 60), (7, 60), (0, 50), (5, 55), (59, 60)])
def test_the_clocks_are_aligned_whatever_end_of_the_log_is_missing(first, last):
    times = jittered(60)
    found = align(walls(times)[first:last], times)
    if last - first > 1:
        assert (found.offset_ns, found.doubtful) == (OFFSET + 250_000, False)
    else:
        assert found.doubtful


def test_a_longer_log_than_the_record_is_aligned_too():
    times = jittered(60)
    assert align(walls(times), times[20:]).offset_ns == OFFSET + 250_000


def test_a_clockwork_pipeline_takes_the_first_blocks_for_missing_and_says_so():
    times = [n * 40 * MS for n in range(60)]
    found = align(walls(times)[4:], times)
    assert (found.offset_ns, found.doubtful) == (OFFSET + 250_000, True)


def test_the_hand_made_log_fits_its_record(read):
    blocks, _ = read(log(8, skip=2))
    assert len(set(PERIODS_MS)) == len(PERIODS_MS)
    assert align([one.wall_ns for one in blocks], [ms * MS for ms in stamps_ms(8)]).offset_ns == OFFSET
