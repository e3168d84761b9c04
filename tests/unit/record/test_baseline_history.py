"""The history beside a baseline: one line per write, keyed by machine and environment."""

import json

import pytest
from baseline_made import FINGERPRINT, made, only_folder, save

from pipeprof.errors import RunError
from pipeprof.record import baseline, history


def day(number, **other):
    return made(created_at=f"2026-11-{number:02d}T10:00:00+00:00", first=10e6 + number, **other)


def read(root):
    folder = only_folder(root)
    return baseline.read_history(str(root), folder.parent.name, folder.name)


def test_every_write_leaves_a_line_with_medians_of_primary_metrics(root):
    save(root, day(1), tag="v1.0")
    save(root, day(2, git={"revision": "b" * 40, "dirty": True}))
    one, two = read(root)
    assert (one.tag, one.revision, one.dirty, one.reps) == ("v1.0", "a" * 40, False, 3)
    assert (two.tag, two.revision, two.dirty) == (None, "b" * 40, True)
    assert two.medians == {"peak_memory": 5e8, "step_time_median": 10e6 + 2 + 1e5}
    lines = (only_folder(root) / "history.jsonl").read_text().splitlines()
    assert [next(iter(json.loads(line))) for line in lines] == ["schema_version"] * 2


def test_the_same_run_written_twice_counts_once_an_appended_one_too_and_order_is_that_of_measurement(root):
    for number in (3, 1, 3, 2):
        save(root, day(number))
    save(root, day(20, job="other"), append=True)
    assert [entry.created_at[8:10] for entry in read(root)] == ["01", "02", "03", "20"]
    assert [entry.medians["step_time_median"] for entry in read(root)][2:] == [10e6 + 3 + 1e5, 10e6 + 20 + 1e5]
    assert [entry.reps for entry in read(root)] == [3] * 4


def test_another_environment_makes_another_group(root):
    save(root, day(1))
    save(root, day(2, fingerprint=FINGERPRINT | {"mindspore": "2.11.0"}))
    save(root, day(3, fingerprint=FINGERPRINT | {"host": "another", "kernel": "6.9"}))
    groups = [mark.group for mark in history.series(read(root), "step_time_median")]
    assert groups[0] == groups[2] != groups[1]


def test_with_an_anchor_the_ratio_to_it_is_the_value_and_it_is_of_the_same_machine(root):
    anchor = made(first=5e6, git={"revision": "c" * 40, "dirty": False})
    with pytest.raises(RunError, match="different machines or versions"):
        save(root, day(1), anchor=made(fingerprint=FINGERPRINT | {"cpu_cores": 64}))
    assert not list(root.iterdir())
    save(root, day(1))
    save(root, day(2), anchor=anchor, drop=["peak_memory"])
    plain, anchored = history.series(read(root), "step_time_median")
    assert anchored.value == (10e6 + 2 + 1e5) / (5e6 + 1e5)
    assert plain.group != anchored.group == f"{plain.group} / {'c' * 40}"
    assert len(history.series(read(root), "peak_memory")) == 1
    assert history.metrics(read(root)) == ["peak_memory", "step_time_median"]


@pytest.mark.parametrize(
    ("line", "named"),
    [("{", "damaged"), ("<<<<<<< HEAD", "damaged"), ('{"schema_version": 9}', "newer pipeprof"), ("[]", "damaged")],
)
def test_a_line_that_cannot_be_read_is_named(root, line, named):
    save(root, day(1))
    path = only_folder(root) / "history.jsonl"
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(RunError, match=rf"history\.jsonl:2.*{named}"):
        read(root)
