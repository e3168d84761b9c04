"""CPU and memory from MindSpore's CPU file, with the zero twins of 2.10 and without."""

import json

import pytest
from minddata_files import MS, START_MS, cpu_json, write_feed

from pipeprof.read.foreign import import_path
from pipeprof.read.minddata.folder import read_cpu
from pipeprof.read.tables.share import Notes


@pytest.fixture
def read(tmp_path):
    def run(text):
        notes = Notes()
        path = tmp_path / "minddata_cpu_utilization_0.json"
        path.write_text(text, encoding="utf-8")
        return read_cpu(path, notes), [message for _, message in notes.all()]

    return run


def test_times_are_the_stamps_not_multiples_of_the_interval(read):
    assert read(cpu_json(3))[0].times == [(START_MS + 23 * number) * MS for number in range(3)]


def test_operators_and_process_are_in_cores(read):
    found, _ = read(cpu_json(3))
    assert found.ops == dict.fromkeys((0, 1, 2), [(0.5, 0.1)] * 3)
    assert found.process == [(1.2, 0.3)] * 2


def test_of_zero_twins_every_second_idle_is_used_and_nothing_else(read):
    found, notes = read(cpu_json(4))
    assert found.host == [(None, None, None)] + [(None, None, 0.75)] * 3
    assert notes == ["host CPU from half of the samples: every second one in `minddata_cpu_utilization_0.json` is 0"]


def test_without_twins_the_host_has_all_three(read):
    found, notes = read(cpu_json(4, twins=False))
    assert (found.host, notes) == ([(0.2, 0.05, 0.75)] * 4, [])


def test_memory_is_in_bytes(read):
    found, _ = read(cpu_json(2))
    assert (found.rss, found.used) == ([100 * 2**20 + 2**19] * 2, [700 * 2**20] * 2)


def test_impossible_values_are_unknown_and_counted(read):
    info = {"user_utilization": [50, -1, float("nan"), "x"], "sys_utilization": [1, 2, 3, 4]}
    found, notes = read(cpu_json(4, process_info=info, twins=False))
    assert [user for user, _ in found.process] == [0.5, None, None, None]
    assert notes == ["`minddata_cpu_utilization_0.json`: 3 entries were left out: impossible CPU of the process"]


def test_a_host_share_above_1_is_unknown(read):
    info = {"idle_utilization": [75, 175], "user_utilization": [1, 1], "sys_utilization": [1, 1]}
    found, notes = read(cpu_json(2, device_info=info))
    assert [idle for _, _, idle in found.host] == [0.75, None]
    assert "1 entry was left out: impossible CPU of the host" in notes[0]


@pytest.mark.parametrize("bad", [-1, 2**62, None, float("inf"), "5"])
def test_an_impossible_stamp_is_unknown_and_keeps_its_place(read, bad):
    found, notes = read(cpu_json(3, time_stamp=[5, bad, 25]))
    assert found.times == [5 * MS, None, 25 * MS]
    assert any("1 entry was left out: impossible time stamp" in note for note in notes)


def test_stamps_that_go_backwards_are_said(read):
    assert "go backwards" in read(cpu_json(3, time_stamp=[5, 25, 15]))[1][0]


def test_an_empty_object_has_nothing(read):
    found, notes = read(json.dumps({"time_stamp": None, "op_info": 7, "device_info": []}))
    assert (found.times, found.ops, found.host, notes) == ([], {}, [], [])


@pytest.mark.parametrize(
    ("value", "cores"), [(8, 8), (8.0, 8), (0, None), (-2, None), ("8", None), (None, None), (1 << 20, None)]
)
def test_the_cpus_of_the_machine_are_those_that_the_file_names(read, value, cores):
    content = json.loads(cpu_json(3)) | {"cpu_processor_num": value}
    assert read(json.dumps(content))[0].machine_cores == cores


@pytest.mark.parametrize(("of_rank_1", "cores"), [(2, 2), (None, 2), (4, None)])
def test_a_run_has_the_cpus_that_all_its_ranks_agree_on(tmp_path, of_rank_1, cores):
    write_feed(tmp_path / "raw")
    folder = write_feed(tmp_path / "raw", rank=1)
    folder.joinpath("minddata_cpu_utilization_1.json").write_text(cpu_json(cpu_processor_num=of_rank_1))
    run = import_path(folder, tmp_path / "run")
    assert run.manifest.fingerprint.get("cpu_cores") == cores
