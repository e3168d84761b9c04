"""A data loader that stalls is named when traces are compared, whatever category its event is filed under."""

import pytest
from kineto_files import imported, training, write_trace

from pipeprof.experiment.compare import compare_sides
from pipeprof.query.measure import measure
from pipeprof.record.measures import merged


@pytest.mark.parametrize("cat", ["cpu_op", "user_annotation"])
def test_the_growth_of_a_step_is_attributed_to_the_data_loader(tmp_path, cat):
    sides = []
    for side, wait_us in (("base", 50), ("new", 900)):
        parts = []
        for rep in range(8):
            trace = write_trace(tmp_path / f"{side}{rep}.json", training(8, wait_us + rep % 3, 1000 + rep % 5, cat=cat))
            parts.append(measure(imported(tmp_path / f"{side}{rep}", trace)))
        sides.append(merged(parts, side))
        for rep, where in sides[-1].reps.items():
            where.job, where.order = "job", 2 * rep + (side == "new")
        sides[-1].interleaved = True
    found = compare_sides(*sides)
    assert found["verdict"] == "regressed"
    assert "data wait" in found["headline"]
    (wait,) = [entry for entry in found["explanation"] if (entry["kind"], entry["name"]) == ("phase", "data_wait")]
    assert 0.9 <= wait["share"] <= 1.1


@pytest.mark.parametrize("cat", ["cpu_op", "user_annotation"])
def test_one_trace_a_side_measures_the_growth_in_the_data_wait(tmp_path, cat):
    base, new = (
        measure(imported(tmp_path / name, write_trace(tmp_path / f"{name}.json", training(8, wait_us, cat=cat)))).values
        for name, wait_us in (("base", 50), ("new", 900))
    )
    growth = new["step_time_median"][0] - base["step_time_median"][0]
    assert growth == 850_000
    assert new["phase/data_wait"][0] - base["phase/data_wait"][0] >= 0.9 * growth
