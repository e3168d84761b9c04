"""What `tune` would try first, on the recordings whose changes were measured; and how its bench counts."""

from dataclasses import replace

import pytest
import tune_bench
import tune_drawn
import tuned
from designed import find
from pipelines import Map, to_json, vision

pytestmark = pytest.mark.slow  # asks 64 recordings


def test_the_first_candidate_is_usually_the_change_that_was_measured_as_a_gain():
    found = tuned.on_recordings(tuned.recorded())
    assert found["gains"] >= 40
    assert found["gains_first"] >= 0.9 * found["gains"], found
    assert found["losses_first"] <= 2, found  # tried, and then not accepted
    assert found["candidates_usual"] <= 3
    assert found["candidates_most"] <= 8


def test_a_drawn_training_is_the_same_each_time_and_takes_less_time_than_its_budget():
    proven, gain, in_vain, seconds = tune_drawn.tuned(1, 0.02, 1200.0)
    assert proven
    assert gain > 0
    assert 0 <= in_vain < seconds <= 1200.0
    assert tune_drawn.tuned(1, 0.02, 1200.0) == (proven, gain, in_vain, seconds)


LINE = {
    "pipeline": "map_wait", "verdict": "proven", "accepted": 1, "tuned_over_original": 1.98, "best_over_original": 2.0, "autotune_over_original": 1.5,
    "tuned_over_best": 0.99, "grid_run": 24, "grid": 24, "tune_s": 90.0, "grid_s": 1000.0,
}  # fmt: skip


def test_pipelines_that_are_done_are_not_run_again(tmp_path, monkeypatch):
    made = []

    def tune(name, folder):
        made.append(name)
        (folder / name).mkdir()
        (folder / name / "tune.json").touch()

    monkeypatch.setattr(tune_bench, "tune", tune)
    monkeypatch.setattr(tune_bench, "against_grid", lambda name, *_: LINE | {"pipeline": name})
    first = tune_bench.measured(["map_wait"], tmp_path, 2, 10)
    both = tune_bench.measured(["map_wait", "map_np"], tmp_path, 2, 10)
    assert made == ["map_wait", "map_np"]
    assert both[0] == first[0]
    assert tune_bench.drawn(3) == tune_bench.drawn(9)[:3]


def test_a_tuning_without_an_answer_ends_the_bench_and_leaves_no_line(tmp_path, monkeypatch):
    monkeypatch.setattr(tune_bench, "tune", lambda _name, _folder: 5)
    with pytest.raises(SystemExit, match="exit code 5"):
        tune_bench.measured(["map_wait"], tmp_path, 2, 10)
    assert list(tmp_path.iterdir()) == []


def test_the_table_counts_what_is_asked_of_a_tuning():
    slow = LINE | {"tuned_over_original": 0.9, "tuned_over_best": 0.8, "accepted": 4, "tune_s": 200.0}
    text = tune_bench.table([LINE, slow, slow | {"verdict": "undecided"}], ["map_wait", "map_np"])
    assert "| map_wait | proven | 1 | 1.98, 2.00, 1.50 | 0.99 | 24 of 24 | 0.09 |" in text
    for line in (
        "of the best speed | 95% | 1 of 3 | no |", "under AutoTune | 95% | 1 of 3 | no |", "accepted steps | 100% | 1 of 3 | no |",
        "grid's time | 100% | 1 of 3 | no |", "original | 100% | 2 of 3 | no |",
    ):  # fmt: skip
        assert line in text
    assert "not finished: map_np" in text
    assert "a part of the grid" not in text


def test_one_in_twenty_may_be_slower_than_the_best_and_none_harmful():
    lines = [LINE] * 19 + [LINE | {"tuned_over_best": 0.8, "grid_run": 12}]
    text = tune_bench.table(lines)
    assert text.count("| yes |") == 5
    assert "a part of the grid only, so its best may be better: map_wait" in text
    assert tune_bench.table([]).count("| - |") == 5


def test_a_pipeline_is_known_by_its_name_designed_or_drawn():
    assert tuned.training("map_wait", 1.5).seconds == 1.5
    assert tuned.training("drawn_20261122_03").name == "drawn_20261122_03"


def test_the_grid_has_every_combination_once():
    two_maps = replace(find("map_wait"), maps=(*find("map_wait").maps, Map("blurred", vision(1))))
    source = 1 if two_maps.branches[0].source.form != "random" else 3
    python = 4 ** len(two_maps.branches[0].maps) * 4 ** (len(two_maps.maps) - 1)
    whole = tuned.grid(two_maps)
    assert len({to_json(replace(one, name="")) for one in whole}) == len(whole) == source * python * 2 * 2
    assert len({one.name for one in whole}) == len(whole)
    assert tuned.some_of(whole, 5) == tuned.some_of(whole, 5)
    assert len(tuned.some_of(whole, 5)) == 5
