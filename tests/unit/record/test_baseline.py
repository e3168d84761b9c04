"""Baselines in a folder: what is saved comes back, and what cannot be trusted is refused by name."""

import errno
import fcntl
import json
import os
import re
import shutil
import threading
from pathlib import Path

import msgspec
import pytest
from baseline_made import FINGERPRINT, made, only_folder

from pipeprof.errors import MeasureError, RunError, UsageError
from pipeprof.record import baseline, baseline_files, place
from pipeprof.record.baseline_files import (
    BASELINE_VERSION,
    MOST_BYTES,
    DamagedBaselineError,
    NewerBaselineError,
    NoBaselineError,
)
from pipeprof.record.measures import Repetition


def test_what_is_saved_comes_back(root):
    saved = baseline.save(made(), str(root), "demo")
    found = baseline.load(saved.where)
    given = made(workload="demo", kind="baseline")
    assert found == given
    assert re.fullmatch(r"demo/amd-epyc-7763-64-core-2c-24g-cpu-[0-9a-f]{8}", str(Path(saved.where).relative_to(root)))
    assert sorted(path.name for path in only_folder(root).iterdir()) == [
        "baseline.json", "facts.json", "history.jsonl", "measures.parquet", "summary.md",
    ]  # fmt: skip


def test_how_fast_the_machine_was_comes_back_beside_jobs_of_which_it_is_not_known(root):
    fast = {rep: Repetition(order=rep, job="j2", calibration_ns=200_000) for rep in range(3)}
    for job in (made(), made("j2", reps=3, first=11e6)):
        job.reps = fast if "j2" in job.jobs else job.reps
        saved = baseline.save(job, str(root), "demo", append=True)
    found = baseline.load(saved.where).reps.values()
    assert [(rep.job, rep.calibration_ns) for rep in found] == [("j1", None)] * 3 + [("j2", 200_000)] * 3


def test_a_baseline_says_which_runs_it_holds_and_their_digests(root):
    known = {"run_ids": ["20260101T000000-aaaaaa"], "digests": ["d1", "d2", "d3"], "command": ["python", "train.py"]}
    baseline.save(made(**known), str(root), "demo", drop=["op/*"])
    raw = json.loads((only_folder(root) / "baseline.json").read_text())
    assert {name: raw[name] for name in known} == known
    more = {
        "run_ids": ["20260102T000000-bbbbbb"],
        "digests": ["e1", "e2", "e3"],
        "command": ["python", "train.py", "-x"],
    }
    baseline.save(made("j2", first=20e6, **more), str(root), "demo", append=True)
    found = baseline.load(str(only_folder(root)))
    assert (found.run_ids, found.command) == (known["run_ids"] + more["run_ids"], more["command"])
    assert found.digests == known["digests"] + more["digests"]


def test_a_baseline_of_before_they_were_written_is_read(root):
    baseline.save(made(), str(root), "demo")
    path = only_folder(root) / "baseline.json"
    raw = json.loads(path.read_text())
    for name in ("run_ids", "digests", "command"):
        del raw[name]
    raw["sha256"] = baseline_files._own_digest(raw)
    path.write_text(json.dumps(raw))
    found = baseline.load(str(only_folder(root)))
    assert (found.run_ids, found.digests, found.command) == ([], [], [])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_value_that_is_no_number_is_damage_not_misuse(root, monkeypatch, value):
    monkeypatch.setattr(baseline_files, "_check", lambda _: None)
    monkeypatch.setattr(baseline_files, "summary_text", lambda *_, **__: "")
    values = {"step_time_median": {0: 1e7, 1: value, 2: 1e7}}
    baseline.save(made(values=values), str(root), "demo")
    with pytest.raises(DamagedBaselineError, match=r"measures\.parquet.*`step_time_median` of repetition 1") as caught:
        baseline.load(str(only_folder(root)))
    assert caught.value.exit_code == 3


def test_the_same_measures_give_the_same_bytes_in_any_order(tmp_path):
    mixed = made()
    mixed.reps = dict(reversed(mixed.reps.items()))
    mixed.values = {name: dict(reversed(found.items())) for name, found in reversed(mixed.values.items())}
    mixed.facts = dict(reversed(mixed.facts.items()))
    contents = []
    for name, measures in (("a", made()), ("b", mixed)):
        baseline.save(measures, str(tmp_path / name), "demo")
        contents.append({path.name: path.read_bytes() for path in only_folder(tmp_path / name).iterdir()})
    assert contents[0] == contents[1]


def test_the_summary_can_be_reviewed_and_its_version_comes_first(root):
    baseline.save(made(), str(root), "demo")
    text = (only_folder(root) / "summary.md").read_text()
    assert "| step_time_median | 10.1 ms | 10.0 ms | 10.2 ms | 1.5 % | 3 |" in text
    assert "| peak_memory | 477 MiB |" in text
    assert "- revision: " + "a" * 40 in text
    assert "- cpu_model: AMD EPYC 7763" in text
    assert "one \\| note" in text
    assert next(iter(json.loads((only_folder(root) / "baseline.json").read_text()))) == "schema_version"


def test_a_machine_class_is_the_machine_not_its_versions_or_name(root):
    one = baseline.save(made(), str(root), "demo")
    upgraded = FINGERPRINT | {"mindspore": "2.11.0", "host": "bbbb", "memory_bytes": FINGERPRINT["memory_bytes"] + 4096}
    two = baseline.save(made(fingerprint=upgraded), str(root), "demo")
    assert one.where == two.where
    assert one.document.fingerprint_hash != two.document.fingerprint_hash
    assert two.notes == ["the old baseline was of another environment: mindspore differ"]
    other = baseline.save(made(fingerprint=FINGERPRINT | {"cpu_cores": 4}), str(root), "demo")
    assert other.where != one.where
    assert len(baseline.names(str(root), "demo")) == 2


def test_jobs_are_appended_one_after_the_other(root):
    baseline.save(made("j0"), str(root), "demo")
    for number in range(1, 8):
        other = made(f"j{number}", first=10e6 + number, fingerprint=FINGERPRINT | {"host": f"h{number}"})
        baseline.save(other, str(root), "demo", append=True)
    found = baseline.load(str(only_folder(root)))
    assert found.jobs == {f"j{number}" for number in range(8)}
    assert [found.reps[rep].job for rep in sorted(found.reps)] == [f"j{rep // 3}" for rep in range(24)]
    assert [found.reps[rep].order for rep in sorted(found.reps)] == list(range(24))
    assert found.values["step_time_median"][23] == 10e6 + 7 + 2e5


def test_times_as_order_stay_as_they_are_when_a_job_is_appended(root):
    first, second = made("a", reps=1, first=1e6), made("b", reps=1, first=2e6)
    first.reps[0].order, second.reps[0].order = 1_795_255_395_172_729_866, 1_795_255_995_172_729_866
    baseline.save(first, str(root), "demo")
    baseline.save(second, str(root), "demo", append=True)
    orders = [rep.order for rep in baseline.load(str(only_folder(root))).reps.values()]
    assert orders == [1_795_255_395_172_729_866, 1_795_255_995_172_729_866]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"fingerprint": FINGERPRINT | {"mindspore": "2.11.0"}}, "mindspore differ"),
        ({"facts": {"op MatMul": "MatMul 64x784, 784x100", "pipeline train": "map > batch"}}, "784x100"),
        ({}, "holds repetition 0 of `run` already"),
    ],
)
def test_what_is_not_the_same_workload_in_another_job_cannot_be_appended(root, change, named):
    baseline.save(made(), str(root), "demo")
    before = only_folder(root).joinpath("measures.parquet").read_bytes()
    with pytest.raises(RunError, match=named):
        baseline.save(made(**change), str(root), "demo", append=True)
    assert only_folder(root).joinpath("measures.parquet").read_bytes() == before


@pytest.mark.parametrize("name", ["measures.parquet", "facts.json", "summary.md", "baseline.json"])
@pytest.mark.parametrize("fault", ["cut", "edited", "removed", "emptied"])
def test_a_damaged_file_is_named(root, name, fault):
    baseline.save(made(), str(root), "demo")
    folder = only_folder(root)
    path = folder / name
    data = path.read_bytes()
    if fault == "removed":
        path.unlink()
    else:
        half = data[: len(data) // 2]
        edited = data.replace(b"3", b"4") if b"3" in data else data[:-9] + b"9" + data[-8:]
        path.write_bytes({"cut": half, "edited": edited, "emptied": b""}[fault])
    workload, machine = folder.parent.name, folder.name
    with pytest.raises(DamagedBaselineError, match=name.replace(".", r"\.")) as caught:
        baseline.load_named(str(root), workload, machine)
    assert caught.value.exit_code == 3
    assert caught.value.hint
    again = baseline.save(made(), str(root), "demo")  # writing it anew repairs it
    assert "damaged" in again.notes[0]
    assert baseline.load(again.where).reps.keys() == made().reps.keys()


def test_nothing_is_appended_to_a_damaged_baseline(root):
    baseline.save(made(), str(root), "demo")
    (only_folder(root) / "facts.json").write_text("{}")
    with pytest.raises(DamagedBaselineError, match=r"facts\.json"):
        baseline.save(made("j2", first=1e6), str(root), "demo", append=True)


def test_line_ends_that_git_changed_are_no_damage(root):
    baseline.save(made(), str(root), "demo")
    for name in ("facts.json", "summary.md", "baseline.json"):
        path = only_folder(root) / name
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert baseline.load(str(only_folder(root))).facts == made().facts


def test_a_newer_version_is_refused_and_never_replaced(root):
    baseline.save(made(), str(root), "demo")
    path = only_folder(root) / "baseline.json"
    newer = {**json.loads(path.read_text()), "schema_version": BASELINE_VERSION + 1}
    path.write_text(json.dumps(newer))
    for call in (lambda: baseline.load(str(path.parent)), lambda: baseline.save(made(), str(root), "demo")):
        with pytest.raises(NewerBaselineError, match=f"schema_version {BASELINE_VERSION + 1}") as caught:
            call()
    assert json.loads(path.read_text()) == newer
    assert "pipeprof baseline drop" in caught.value.hint
    baseline.remove(str(root), "demo")
    assert not baseline.save(made(), str(root), "demo").replaced


def test_a_baseline_under_another_name_is_damaged_but_a_copy_can_be_loaded(root, tmp_path):
    baseline.save(made(), str(root), "demo")
    machine = only_folder(root).name
    shutil.copytree(root / "demo", root / "other")
    with pytest.raises(DamagedBaselineError, match="it holds the baseline `demo/"):
        baseline.load_named(str(root), "other", machine)
    shutil.copytree(root / "demo" / machine, tmp_path / "copy")
    assert baseline.load(str(tmp_path / "copy")).workload == "demo"


@pytest.mark.parametrize(
    "name", ["../x", "a/b", "a\\b", "", ".", "..", ".x", "con", "NUL.txt", "com1", "x.", "a b", "é", "x" * 81, "a:b"]
)
def test_names_that_are_no_folder_name_everywhere_are_refused(root, name):
    for call in (baseline.save, baseline.remove) if name else (baseline.save,):
        words = (made(), str(root), name) if call is baseline.save else (str(root), name)
        with pytest.raises(UsageError, match="cannot be the name of a workload"):
            call(*words)
    assert not root.exists() or not list(root.iterdir())


def test_two_names_that_differ_in_case_only_are_refused(root):
    baseline.save(made(), str(root), "demo")
    with pytest.raises(UsageError, match="`Demo` and the workload `demo`"):
        baseline.save(made(), str(root), "Demo")
    assert [path.name for path in root.iterdir()] == ["demo"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"fingerprint": {}}, "says nothing about its machine"),
        ({"values": {"step_time_median": {0: float("nan"), 1: 1.0, 2: 1.0}}}, "repetition 0 is nan"),
        ({"values": {"step_time_median": {0: 1.0, 1: 1.0}}}, "repetition 2 of `run` has no values"),
    ],
)
def test_measures_that_cannot_be_a_baseline_are_refused(root, change, named):
    with pytest.raises(MeasureError, match=named):
        baseline.save(made(**change), str(root), "demo")
    assert not root.exists() or not list(root.iterdir())


def test_no_repetitions_are_no_baseline(root):
    with pytest.raises(MeasureError, match="holds no repetitions"):
        baseline.save(made(reps=0, values={}), str(root), "demo")


def test_a_large_part_is_refused_by_name_and_can_be_left_out(root):
    many = made(reps=40)
    many.values |= {
        f"op/Default/layer-{at}": {rep: 1.1**rep * (at + 7) ** 0.5 for rep in range(40)} for at in range(600)
    }
    with pytest.raises(MeasureError, match=r"`measures\.parquet` of the baseline would be .* metrics are `op/\*`, 40"):
        baseline.save(many, str(root), "demo")
    saved = baseline.save(many, str(root), "demo", drop=["op/*"])
    assert saved.document.dropped == ["op/*"]
    assert "- left out: op/\\*" in (only_folder(root) / "summary.md").read_text()
    assert list(baseline.load(saved.where).values) == ["count/MatMul", "peak_memory", "step_time_median"]


def test_what_is_dropped_of_every_job_is_no_difference_between_them_and_a_job_counts_once(root):
    drop = ["op *", "op/*", "peak_memory"]
    baseline.save(made("j0"), str(root), "demo", drop=drop)
    saved = baseline.save(made("j1", first=11e6), str(root), "demo", append=True, drop=drop)
    found = baseline.load(saved.where)
    assert (found.jobs, list(found.facts)) == ({"j0", "j1"}, ["pipeline train"])
    with pytest.raises(RunError, match="holds repetition 0 of `run` already"):
        baseline.save(made("j1", first=11e6), str(root), "demo", append=True, drop=drop)


def test_many_facts_are_packed_and_come_back(root):
    facts = {
        f"op Default/network/backbone/layer{at}-SequentialCell/Conv2D-op{at}": f"Conv2D {at}x64" for at in range(3000)
    }
    saved = baseline.save(made(facts=facts), str(root), "demo")
    assert "facts.json.zst" in saved.document.files
    assert all(part.bytes < MOST_BYTES for part in saved.document.files.values())
    assert baseline.load(saved.where).facts == facts


def test_a_primary_metric_does_not_vanish_unseen(root):
    baseline.save(made(), str(root), "demo")
    less = made()
    del less.values["peak_memory"]
    with pytest.raises(RunError, match="`peak_memory` was never measured") as caught:
        baseline.save(less, str(root), "demo")
    assert "--drop peak_memory" in caught.value.hint
    assert "peak_memory" not in baseline.load(baseline.save(less, str(root), "demo", drop=["peak_memory"]).where).values


def test_a_drop_that_matches_nothing_names_what_is_near(root):
    with pytest.raises(UsageError, match="--drop step_time_medain matches no metric") as caught:
        baseline.save(made(), str(root), "demo", drop=["step_time_medain"])
    assert "step_time_median" in caught.value.hint


def test_a_root_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write baselines in"):
        baseline.save(made(), str(tmp_path / "file"), "demo")


@pytest.mark.parametrize("at", range(1, 8))
def test_a_full_disk_leaves_the_old_baseline_whole(root, monkeypatch, at):
    saved = baseline.save(made(), str(root), "demo")
    calls = iter(range(1, 100))

    def full(call):
        def maybe(*words):
            if next(calls) == at:
                raise OSError(errno.ENOSPC, "No space left on device")
            return call(*words)

        return maybe

    with monkeypatch.context() as patch:
        patch.setattr(place, "_write", full(place._write))
        patch.setattr(type(root), "rename", full(type(root).rename))
        with pytest.raises(RunError, match="No space left on device") as caught:
            baseline.save(made(first=20e6), str(root), "demo")
    assert "unchanged" in caught.value.hint
    assert baseline.load(saved.where).values == made().values
    assert [path.name for path in (root / "demo").iterdir()] == [only_folder(root).name]


@pytest.mark.parametrize("moment", ["before", "between"])
def test_what_a_killed_writer_leaves_is_read_whole_and_tidied(root, moment):
    saved = baseline.save(made(), str(root), "demo")
    folder = only_folder(root)
    shutil.copytree(folder, folder.with_name(f".{folder.name}.1.tmp"))
    (folder.with_name(f".{folder.name}.1.tmp") / "facts.json").unlink()
    if moment == "between":
        folder.rename(folder.with_name(f".{folder.name}.old"))
    assert baseline.names(str(root)) == [("demo", folder.name)]
    assert baseline.load(saved.where).values == made().values
    baseline.save(made("j2", first=12e6), str(root), "demo", append=True)
    assert len(baseline.load(saved.where).reps) == 6
    assert [path.name for path in (root / "demo").iterdir()] == [folder.name]
    assert len(baseline.read_history(str(root), "demo", folder.name)) == 2


def test_a_reader_whose_every_look_meets_a_writer_finds_a_baseline(root, monkeypatch):
    """One writer has moved the old one away at the first look and is done at the second; the next one is there at the third."""
    final = Path(baseline.save(made(), str(root), "demo").where)
    fresh, old = final.with_name(".fresh"), final.with_name(f".{final.name}.old")

    def begin():
        final.rename(old)

    def complete():
        shutil.copytree(old, fresh)
        fresh.rename(final)
        shutil.rmtree(old)

    writers, read_bytes = iter([begin, complete, begin]), Path.read_bytes

    def look(path):
        next(writers, lambda: None)()
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", look)
    assert baseline.load(str(final)).values == made().values


def test_concurrent_writers_lose_no_job_and_readers_see_whole_ones(root):
    where = baseline.save(made("start", first=1e6), str(root), "demo").where
    problems, done = [], threading.Event()

    def write(number):
        try:
            baseline.save(made(f"j{number}", first=2e6 + number), str(root), "demo", append=True)
        except Exception as error:  # noqa: BLE001 - shown by the assertion
            problems.append(error)

    def read():
        while not done.is_set():
            try:
                assert len(baseline.load(where).reps) % 3 == 0
            except Exception as error:  # noqa: BLE001
                problems.append(error)
                return

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in [reader, *writers]:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    reader.join()
    assert problems == []
    assert len(baseline.load(where).jobs) == 9
    assert len(baseline.read_history(str(root), "demo", Path(where).name)) == 9


def test_no_baseline_says_how_to_write_one(root):
    with pytest.raises(NoBaselineError, match="no baseline in") as caught:
        baseline.load(str(root / "demo" / "x"))
    assert caught.value.hint.startswith("write one")
    assert baseline.of_machine(str(root), "demo", made()) is None
    with pytest.raises(NoBaselineError):
        baseline.remove(str(root), "demo")


def test_a_removed_baseline_is_gone_with_its_history(root):
    saved = baseline.save(made(), str(root), "demo")
    assert baseline.of_machine(str(root), "demo", made()) is not None
    assert baseline.remove(str(root), "demo") == [("demo", Path(saved.where).name)]
    assert baseline.names(str(root)) == []
    assert not (root / "demo").exists()


def test_a_baseline_is_removed_only_while_nobody_writes_its_workload(root, monkeypatch):
    baseline.save(made(), str(root), "demo")
    real = place.LocalPlace.remove
    held = []

    def remove(self, workload, machine):
        handle = os.open(root / workload, os.O_RDONLY)
        try:
            with pytest.raises(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held.append(machine)
        finally:
            os.close(handle)
        real(self, workload, machine)

    monkeypatch.setattr(place.LocalPlace, "remove", remove)
    assert baseline.remove(str(root), "demo") == [("demo", held[0])]
    assert not (root / "demo").exists()


def test_removing_nothing_makes_nothing(root):
    with pytest.raises(NoBaselineError):
        baseline.remove(str(root), "demo")
    assert not root.exists()


def test_saving_does_not_change_what_is_given(root):
    given = made()
    before = msgspec.json.encode(given)
    baseline.save(given, str(root), "demo", drop=["op/*"])
    assert msgspec.json.encode(given) == before
