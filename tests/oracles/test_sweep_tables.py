"""The 16 published option tables of load_and_run, loaded as a sweep: ratios as printed beside them, known traps."""

import csv
from pathlib import Path

import pytest

from pipeprof.experiment.sweep.table import table_content

SHARED = Path(__file__).parents[3] / "shared" / "data" / "megengine" / "load_and_run_tables.csv"
pytestmark = pytest.mark.skipif(not SHARED.is_file(), reason="the published option tables are not here")


@pytest.fixture(scope="module")
def tables():
    return {table["name"]: table for table in table_content(SHARED)["tables"]}


def row(tables, table, name, occurrence=0):
    return [row for row in tables[table]["rows"] if row["name"] == name][occurrence]


def test_every_ratio_is_the_one_printed_beside_it(tables):
    with SHARED.open(encoding="utf-8", newline="") as file:
        printed = list(csv.DictReader(file))
    assert len(printed) == 51
    assert len(tables) == 16
    for line in printed:
        found = tables[line["table_id"]]["rows"][int(line["row_in_table"]) - 1]
        assert found["name"] == line["variant"]
        speedup = 1 / found["stages"]["steady"].get("ratio", 1.0)
        assert f"{speedup:.3f}" == line["inference_speedup_vs_baseline"]


def test_record_level_1_is_within_noise(tables):
    found = row(tables, "record_arm64_f32", "record level 1")
    assert found["verdict"] == "within noise"
    assert found["break_even"]["kind"] == "not told apart"


def test_only_baselines_of_one_model_repeat_each_other(tables):
    noise = {name: tables[name]["noise"] for name in ("weightpre_arm64_f32", "record_arm64_f32", "glayout_x86_f32")}
    assert noise["weightpre_arm64_f32"]["from"] == "spread of 3 baselines of ARM64 CPU, float32, resnet50"
    assert noise["weightpre_arm64_f32"]["steady"] == pytest.approx(247.3 / 245.8 - 1)
    assert "not repeated here" in noise["record_arm64_f32"]["from"]  # its model is not stated
    assert "not repeated here" in noise["glayout_x86_f32"]["from"]  # the other table of x86 does not state its model


def test_nchw44_is_a_regression_for_int8_on_arm(tables):
    found = row(tables, "layout_arm64_int8", "nchw44")
    assert (found["verdict"], found["break_even"]["kind"]) == ("worse", "never")
    assert tables["layout_arm64_int8"]["best"]["name"] == "nchw44-dot"


def test_long_configurations_have_a_break_even(tables):
    found = row(tables, "glayout_arm_f32", "global layout, online")["break_even"]
    assert (found["kind"], found["steps"]) == ("after", 1447)  # (18038.3 + 449.8 - 8.9 - 548.7) / (248.2 - 235.8)


def test_the_two_chwn4_rows_stay_apart(tables):
    first, second = (row(tables, "layout_nvidia_int8", "chwn4", at) for at in (0, 1))
    assert (first["key"], second["key"]) == ("layout_nvidia_int8/2", "layout_nvidia_int8/3")
    assert [one["stages"]["steady"]["value"] for one in (first, second)] == [23.3e6, 14.9e6]


def test_both_warm_up_steps_are_there(tables):
    fake = row(tables, "fakefirst_arm64_f32", "fake-first")["stages"]
    base = row(tables, "fakefirst_arm64_f32", "baseline")["stages"]
    assert (fake["warmup_first"]["value"], fake["warmup_second"]["value"]) == (36e6, 316.7e6)
    assert "warmup_second" not in base
    assert fake["setup"]["value"] == pytest.approx(360.8e6)
