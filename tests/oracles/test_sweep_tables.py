"""Option tables in the form of load_and_run's manual, loaded as a sweep: ratios as printed beside them, known traps.

`captures/options.csv` is made up, for these traps; the published tables, where they lie beside the checkout, have them too.
"""

import csv
from math import ceil

import pytest
from captured import CAPTURES, outside

from pipeprof.experiment.sweep.table import table_content

# Of each file its table's rows for the traps: times in ms.
EXPECTED = {
    CAPTURES / "options.csv": {
        "baselines": (250.0, 248.0), "online": (18000.0 + 500.0, 9.0 + 550.0, 249.0 - 236.0), "chwn4": (23.5, 15.0),
        "fake": (8.5, 38.0, 305.5),
    },
    **{path: {
        "baselines": (247.3, 245.8), "online": (18038.3 + 449.8, 8.9 + 548.7, 248.2 - 235.8), "chwn4": (23.3, 14.9),
        "fake": (8.1, 36.0, 316.7),
    } for path in outside("megengine/load_and_run_tables.csv")},
}  # fmt: skip


@pytest.fixture(scope="module", params=EXPECTED, ids=lambda path: path.stem)
def source(request):
    return request.param


@pytest.fixture
def expected(source):
    return EXPECTED[source]


@pytest.fixture(scope="module")
def tables(source):
    return {table["name"]: table for table in table_content(source)["tables"]}


def row(tables, table, name, occurrence=0):
    return [row for row in tables[table]["rows"] if row["name"] == name][occurrence]


def test_every_ratio_is_the_one_printed_beside_it(source, tables):
    with source.open(encoding="utf-8", newline="") as file:
        printed = list(csv.DictReader(file))
    assert len(printed) == sum(len(table["rows"]) for table in tables.values()) > 20
    assert {line["table_id"] for line in printed} == tables.keys()
    for line in printed:
        found = tables[line["table_id"]]["rows"][int(line["row_in_table"]) - 1]
        assert found["name"] == line["variant"]
        speedup = 1 / found["stages"]["steady"].get("ratio", 1.0)
        assert f"{speedup:.3f}" == line["inference_speedup_vs_baseline"]


def test_record_level_1_is_within_noise(tables):
    found = row(tables, "record_arm64_f32", "record level 1")
    assert found["verdict"] == "within noise"
    assert found["break_even"]["kind"] == "not told apart"


def test_only_baselines_of_one_model_repeat_each_other(tables, expected):
    noise = {name: tables[name]["noise"] for name in ("weightpre_arm64_f32", "record_arm64_f32", "glayout_x86_f32")}
    assert noise["weightpre_arm64_f32"]["from"] == "spread of 3 baselines of ARM64 CPU, float32, resnet50"
    most, least = expected["baselines"]
    assert noise["weightpre_arm64_f32"]["steady"] == pytest.approx(most / least - 1)
    assert "not repeated here" in noise["record_arm64_f32"]["from"]  # its model is not stated
    assert "not repeated here" in noise["glayout_x86_f32"]["from"]  # the other table of x86 does not state its model


def test_nchw44_is_a_regression_for_int8_on_arm(tables):
    found = row(tables, "layout_arm64_int8", "nchw44")
    assert (found["verdict"], found["break_even"]["kind"]) == ("worse", "never")
    assert tables["layout_arm64_int8"]["best"]["name"] == "nchw44-dot"


def test_long_configurations_have_a_break_even(tables, expected):
    found = row(tables, "glayout_arm_f32", "global layout, online")["break_even"]
    set_up, of_baseline, gain = expected["online"]
    assert (found["kind"], found["steps"]) == ("after", ceil((set_up - of_baseline) / gain))


def test_the_two_chwn4_rows_stay_apart(tables, expected):
    first, second = (row(tables, "layout_nvidia_int8", "chwn4", at) for at in (0, 1))
    assert (first["key"], second["key"]) == ("layout_nvidia_int8/2", "layout_nvidia_int8/3")
    steady = [found["stages"]["steady"]["value"] for found in (first, second)]
    assert steady == [pytest.approx(1e6 * time) for time in expected["chwn4"]]


def test_both_warm_up_steps_are_there(tables, expected):
    fake = row(tables, "fakefirst_arm64_f32", "fake-first")["stages"]
    base = row(tables, "fakefirst_arm64_f32", "baseline")["stages"]
    assert (fake["warmup_first"]["value"], fake["warmup_second"]["value"]) == tuple(
        pytest.approx(1e6 * time) for time in expected["fake"][1:]
    )
    assert "warmup_second" not in base
    assert fake["setup"]["value"] == pytest.approx(1e6 * sum(expected["fake"]))
