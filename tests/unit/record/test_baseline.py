"""Baselines in a folder: what is saved comes back, and what cannot be trusted is refused by name."""

import errno
import fcntl
import json
import os
import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from baseline_made import FINGERPRINT, made, only_folder, save

from pipeprof.errors import MeasureError, RunError, UsageError
from pipeprof.record import baseline, baseline_files, place
from pipeprof.record.baseline_files import (
    BASELINE_VERSION,
    MOST_BYTES,
    DamagedBaselineError,
    NewerBaselineError,
    NoBaselineError,
)
from pipeprof.record.measures import Measures, Repetition

NOW = 1_800_000_000 * 10**9


def loaded(root):
    return baseline.load(str(only_folder(root)))


def raw_of(root):
    return json.loads((only_folder(root) / "baseline.json").read_text())


def test_what_is_saved_comes_back_and_can_be_reviewed(root):
    given = made()
    before = msgspec.json.encode(given)
    saved = save(root, given)
    assert msgspec.json.encode(given) == before
    assert baseline.load(saved.where) == made(workload="demo", kind="baseline")
    assert re.fullmatch(r"demo/amd-epyc-7763-64-core-2c-24g-cpu-[0-9a-f]{8}", str(Path(saved.where).relative_to(root)))
    assert sorted(path.name for path in only_folder(root).iterdir()) == [
        "baseline.json", "facts.json", "history.jsonl", "measures.parquet", "summary.md",
    ]  # fmt: skip
    text = (only_folder(root) / "summary.md").read_text()
    assert "| step_time_median | 10.1 ms | 10.0 ms | 10.2 ms | 1.5 % | 3 |" in text
    for said in ("| peak_memory | 477 MiB |", "- revision: " + "a" * 40, "- cpu_model: AMD EPYC 7763", "one \\| note"):
        assert said in text
    assert next(iter(raw_of(root))) == "schema_version"
    save(root, given, drop=["op/*"])
    assert msgspec.json.encode(given) == before


def test_a_baseline_says_which_runs_it_holds_and_their_digests_and_one_of_before_is_read(root):
    known = {"run_ids": ["20260101T000000-aaaaaa"], "digests": ["d1", "d2", "d3"], "command": ["python", "train.py"]}
    save(root, made(**known), drop=["op/*"])
    assert {name: raw_of(root)[name] for name in known} == known
    more = {"run_ids": ["20260102T000000-bbbbbb"], "digests": ["e1", "e2", "e3"], "command": ["python", "-x"]}
    save(root, made("j2", first=20e6, **more), append=True)
    found = loaded(root)
    assert (found.run_ids, found.command) == (known["run_ids"] + more["run_ids"], more["command"])
    assert found.digests == known["digests"] + more["digests"]
    raw = {name: value for name, value in raw_of(root).items() if name not in known}
    (only_folder(root) / "baseline.json").write_text(json.dumps(raw | {"sha256": baseline_files._own_digest(raw)}))
    found = loaded(root)
    assert (found.run_ids, found.digests, found.command) == ([], [], [])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_value_that_is_no_number_is_damage_not_misuse(root, monkeypatch, value):
    monkeypatch.setattr(baseline_files, "_check", lambda _: None)
    monkeypatch.setattr(baseline_files, "summary_text", lambda *_, **__: "")
    values = {"step_time_median": {0: 1e7, 1: value, 2: 1e7}}
    save(root, made(values=values))
    with pytest.raises(DamagedBaselineError, match=r"measures\.parquet.*`step_time_median` of repetition 1") as caught:
        loaded(root)
    assert caught.value.exit_code == 3


def test_the_same_measures_give_the_same_bytes_in_any_order(tmp_path):
    mixed = made()
    mixed.reps = dict(reversed(mixed.reps.items()))
    mixed.values = {name: dict(reversed(found.items())) for name, found in reversed(mixed.values.items())}
    mixed.facts = dict(reversed(mixed.facts.items()))
    contents = []
    for name, measures in (("a", made()), ("b", mixed)):
        save(tmp_path / name, measures)
        contents.append({path.name: path.read_bytes() for path in only_folder(tmp_path / name).iterdir()})
    assert contents[0] == contents[1]


def test_a_machine_class_is_the_machine_not_its_versions_or_name(root):
    one = save(root)
    upgraded = FINGERPRINT | {"mindspore": "2.11.0", "host": "bbbb", "memory_bytes": FINGERPRINT["memory_bytes"] + 4096}
    two = save(root, made(fingerprint=upgraded))
    assert one.where == two.where
    assert one.document.fingerprint_hash != two.document.fingerprint_hash
    assert two.notes == ["the old baseline was of another environment: mindspore differ"]
    assert save(root, made(fingerprint=FINGERPRINT | {"cpu_cores": 4})).where != one.where
    assert len(baseline.names(str(root), "demo")) == 2


def test_jobs_are_appended_one_after_the_other_with_their_times_as_order_and_how_fast_the_machine_was(root):
    save(root, made("j0"))
    for number in range(1, 8):
        save(
            root, made(f"j{number}", first=10e6 + number, fingerprint=FINGERPRINT | {"host": f"h{number}"}), append=True
        )
    late, time = made("late", first=20e6), 1_795_255_395_172_729_866
    late.reps = {rep: Repetition(order=time + rep, job="late", calibration_ns=200_000) for rep in range(3)}
    save(root, late, append=True)
    found = loaded(root)
    assert found.jobs == {*(f"j{number}" for number in range(8)), "late"}
    reps = [found.reps[rep] for rep in sorted(found.reps)]
    assert [rep.job for rep in reps] == [f"j{rep // 3}" for rep in range(24)] + ["late"] * 3
    assert [rep.order for rep in reps] == [*range(24), *range(time, time + 3)]
    assert [rep.calibration_ns for rep in reps] == [None] * 24 + [200_000] * 3
    assert found.values["step_time_median"][23] == 10e6 + 7 + 2e5


@pytest.mark.parametrize(("change", "named"), [
    ({"fingerprint": FINGERPRINT | {"mindspore": "2.11.0"}}, "mindspore differ"),
    ({"facts": {"op MatMul": "MatMul 64x784, 784x100", "pipeline train": "map > batch"}}, "784x100"),
    ({}, "holds repetition 0 of `run` already"),
])  # fmt: skip
def test_what_is_not_the_same_workload_in_another_job_cannot_be_appended(root, change, named):
    save(root)
    before = only_folder(root).joinpath("measures.parquet").read_bytes()
    with pytest.raises(RunError, match=named):
        save(root, made(**change), append=True)
    assert only_folder(root).joinpath("measures.parquet").read_bytes() == before


@pytest.mark.parametrize("name", ["measures.parquet", "facts.json", "summary.md", "baseline.json"])
@pytest.mark.parametrize("fault", ["cut", "edited", "removed", "emptied"])
def test_a_damaged_file_is_named(root, name, fault):
    save(root)
    folder = only_folder(root)
    path = folder / name
    data = path.read_bytes()
    if fault == "removed":
        path.unlink()
    else:
        half = data[: len(data) // 2]
        edited = data.replace(b"3", b"4") if b"3" in data else data[:-9] + b"9" + data[-8:]
        path.write_bytes({"cut": half, "edited": edited, "emptied": b""}[fault])
    if name == "facts.json":
        with pytest.raises(DamagedBaselineError, match=r"facts\.json"):
            save(root, made("j2", first=1e6), append=True)
    with pytest.raises(DamagedBaselineError, match=name.replace(".", r"\.")) as caught:
        baseline.load_named(str(root), "demo", folder.name)
    assert caught.value.exit_code == 3
    assert caught.value.hint
    again = save(root)  # writing it anew repairs it
    assert "damaged" in again.notes[0]
    assert baseline.load(again.where).reps.keys() == made().reps.keys()


def test_line_ends_that_git_changed_are_no_damage_but_another_name_is(root, tmp_path):
    save(root)
    for name in ("facts.json", "summary.md", "baseline.json"):
        path = only_folder(root) / name
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert loaded(root).facts == made().facts
    machine = only_folder(root).name
    shutil.copytree(root / "demo", root / "other")
    with pytest.raises(DamagedBaselineError, match="it holds the baseline `demo/"):
        baseline.load_named(str(root), "other", machine)
    shutil.copytree(root / "demo" / machine, tmp_path / "copy")
    assert baseline.load(str(tmp_path / "copy")).workload == "demo"


def test_a_newer_version_is_refused_and_never_replaced(root):
    save(root)
    path = only_folder(root) / "baseline.json"
    newer = {**json.loads(path.read_text()), "schema_version": BASELINE_VERSION + 1}
    path.write_text(json.dumps(newer))
    for call in (lambda: baseline.load(str(path.parent)), lambda: save(root)):
        with pytest.raises(NewerBaselineError, match=f"schema_version {BASELINE_VERSION + 1}") as caught:
            call()
    assert json.loads(path.read_text()) == newer
    assert "pipeprof baseline drop" in caught.value.hint
    baseline.remove(str(root), "demo")
    assert not save(root).replaced


@pytest.mark.parametrize(
    "name", ["../x", "a/b", "a\\b", "", ".", "..", ".x", "con", "NUL.txt", "com1", "x.", "a b", "é", "x" * 81, "a:b"]
)
def test_names_that_are_no_folder_name_everywhere_are_refused(root, name):
    calls = [lambda: save(root, workload=name), lambda: baseline.remove(str(root), name)]
    for call in calls if name else calls[:1]:
        with pytest.raises(UsageError, match="cannot be the name of a workload"):
            call()
    assert not root.exists() or not list(root.iterdir())


@pytest.mark.parametrize(("measures", "named"), [
    (made(fingerprint={}), "says nothing about its machine"),
    (made(values={"step_time_median": {0: float("nan"), 1: 1.0, 2: 1.0}}), "repetition 0 is nan"),
    (made(values={"step_time_median": {0: 1.0, 1: 1.0}}), "repetition 2 of `run` has no values"),
    (made(reps=0, values={}), "holds no repetitions"),
])  # fmt: skip
def test_measures_that_cannot_be_a_baseline_are_refused(root, measures, named):
    with pytest.raises(MeasureError, match=named):
        save(root, measures)
    assert not root.exists() or not list(root.iterdir())


def test_what_the_user_chose_wrongly_is_named(root, tmp_path):
    (tmp_path / "file").write_text("")
    save(root)
    with pytest.raises(UsageError, match="`Demo` and the workload `demo`"):
        save(root, workload="Demo")
    with pytest.raises(UsageError, match="--drop step_time_medain matches no metric") as caught:
        save(root, drop=["step_time_medain"])
    assert "step_time_median" in caught.value.hint
    with pytest.raises(UsageError, match="cannot write baselines in"):
        save(tmp_path / "file")
    assert [path.name for path in root.iterdir()] == ["demo"]


def test_a_large_part_is_refused_by_name_and_can_be_left_out_and_many_facts_are_packed(root):
    many = made(reps=40)
    grown = {at: {rep: 1.1**rep * (at + 7) ** 0.5 for rep in range(40)} for at in range(600)}
    many.values |= {f"op/Default/layer-{at}": values for at, values in grown.items()}
    many.facts |= {f"op Default/network/backbone/layer{at}/Conv2D-op{at}": f"Conv2D {at}x64" for at in range(3000)}
    with pytest.raises(MeasureError, match=r"`measures\.parquet` of the baseline would be .* metrics are `op/\*`, 40"):
        save(root, many)
    saved = save(root, many, drop=["op/*"])
    assert saved.document.dropped == ["op/*"]
    assert "- left out: op/\\*" in (only_folder(root) / "summary.md").read_text()
    assert "facts.json.zst" in saved.document.files
    assert all(part.bytes < MOST_BYTES for part in saved.document.files.values())
    found = loaded(root)
    assert (list(found.values), found.facts) == (["count/MatMul", "peak_memory", "step_time_median"], many.facts)


def test_what_is_dropped_of_every_job_is_no_difference_between_them_and_a_job_counts_once(root):
    drop = ["op *", "op/*", "peak_memory"]
    for job in ("j0", "j1"):
        save(root, made(job, first=11e6), drop=drop, append=True)
    assert (loaded(root).jobs, list(loaded(root).facts)) == ({"j0", "j1"}, ["pipeline train"])
    with pytest.raises(RunError, match="holds repetition 0 of `run` already"):
        save(root, made("j1", first=11e6), append=True, drop=drop)


def test_a_primary_metric_does_not_vanish_unseen(root):
    save(root)
    less = made()
    del less.values["peak_memory"]
    with pytest.raises(RunError, match="`peak_memory` was never measured") as caught:
        save(root, less)
    assert "--drop peak_memory" in caught.value.hint
    save(root, less, drop=["peak_memory"])
    assert "peak_memory" not in loaded(root).values


@pytest.mark.parametrize("at", range(1, 8))
def test_a_full_disk_leaves_the_old_baseline_whole(root, monkeypatch, at):
    save(root)
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
            save(root, made(first=20e6))
    assert "unchanged" in caught.value.hint
    assert loaded(root).values == made().values
    assert [path.name for path in (root / "demo").iterdir()] == [only_folder(root).name]


@pytest.mark.parametrize("moment", ["before", "between"])
def test_what_a_killed_writer_leaves_is_read_whole_and_tidied(root, moment):
    where = save(root).where
    folder = only_folder(root)
    left = shutil.copytree(folder, folder.with_name(f".{folder.name}.1.tmp"))
    (left / "facts.json").unlink()
    if moment == "between":
        folder.rename(folder.with_name(f".{folder.name}.old"))
    assert baseline.names(str(root)) == [("demo", folder.name)]
    assert baseline.load(where).values == made().values
    save(root, made("j2", first=12e6), append=True)
    assert len(baseline.load(where).reps) == 6
    assert [path.name for path in (root / "demo").iterdir()] == [folder.name]
    assert len(baseline.read_history(str(root), "demo", folder.name)) == 2


def test_a_reader_whose_every_look_meets_a_writer_finds_a_baseline(root, monkeypatch):
    """One writer has moved the old one away at the first look and is done at the second; the next one is there at the third."""
    final = Path(save(root).where)
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
    where, done = save(root, made("start", first=1e6)).where, threading.Event()

    def read():
        while not done.is_set():
            assert len(baseline.load(where).reps) % 3 == 0

    with ThreadPoolExecutor(9) as pool:
        reader = pool.submit(read)
        jobs = [made(f"j{number}", first=2e6 + number) for number in range(8)]
        try:
            list(pool.map(lambda measures: save(root, measures, append=True), jobs))
        finally:
            done.set()
        reader.result()
    assert len(baseline.load(where).jobs) == 9
    assert len(baseline.read_history(str(root), "demo", Path(where).name)) == 9


def test_no_baseline_says_how_to_write_one_and_removing_it_makes_nothing(root):
    with pytest.raises(NoBaselineError, match="no baseline in") as caught:
        baseline.load(str(root / "demo" / "x"))
    assert caught.value.hint.startswith("write one")
    assert baseline.of_machine(str(root), "demo", made()) is None
    with pytest.raises(NoBaselineError):
        baseline.remove(str(root), "demo")
    assert not root.exists()


def test_a_removed_baseline_is_gone_with_its_history_and_nobody_writes_meanwhile(root, monkeypatch):
    machine = Path(save(root).where).name
    assert baseline.of_machine(str(root), "demo", made()) is not None
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
    assert baseline.remove(str(root), "demo") == [("demo", machine)]
    assert held == [machine]
    assert baseline.names(str(root)) == []
    assert not (root / "demo").exists()


def side(*ages):
    """Two repetitions of a job for each age in days, oldest digests first."""
    reps = {}
    for at, age in enumerate(ages):
        for twin in (0, 1):
            reps[2 * at + twin] = Repetition(order=NOW - round(age * baseline.DAY_NS) + twin, job=f"job{age}")
    return Measures(
        label="x", reps=reps, values={"step_time_median": {rep: float(rep) for rep in reps}, "rare": {0: 1.0}},
        digests=[str(rep) for rep in reps],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("jobs", "days", "left"),
    [(None, None, [70, 40, 5, 0]), (2, None, [5, 0]), (None, 60, [40, 5, 0]), (3, 10, [5, 0]), (1, 1, [0])],
)
def test_the_latest_jobs_are_kept_with_their_values_and_digests(jobs, days, left):
    found, expired = baseline.without_old(side(70, 40, 5, 0), jobs, days)
    assert found.jobs == {f"job{age}" for age in left}
    assert expired == 4 - len(left)
    assert len(found.reps) == len(found.digests) == len(found.values["step_time_median"]) == 2 * len(left)
    assert found.digests == [str(rep) for rep in sorted(found.reps)]
    assert ("rare" in found.values) == (70 in left)


def test_days_say_nothing_where_no_time_is_known_and_nothing_is_left_of_nothing():
    places = Measures(label="x", reps={rep: Repetition(order=rep, job=f"j{rep}") for rep in range(3)})
    assert baseline.without_old(places, None, 1) == (places, 0)
    assert baseline.without_old(Measures(label="x"), 1, 1) == (Measures(label="x"), 0)
