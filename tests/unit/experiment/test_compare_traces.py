"""A data loader that stalls is named when traces are compared, whatever category its event is filed under."""

import pytest
from kineto_files import imported, op, step, training, write_trace

from pipeprof.experiment.compare import compare_sides
from pipeprof.query.measure import measure
from pipeprof.record.measures import merged
from pipeprof.report.compare import sections as compare_sections


def measured(folder, name, events):
    return measure(imported(folder / name, write_trace(folder / f"{name}.json", events)))


@pytest.mark.parametrize("cat", ["cpu_op", "user_annotation"])
def test_the_growth_of_a_step_is_attributed_to_the_data_loader(tmp_path, cat):
    sides = []
    for side, wait_us in (("base", 50), ("new", 900)):
        events = [training(8, wait_us + rep % 3, 1000 + rep % 5, cat=cat) for rep in range(8)]
        sides.append(merged([measured(tmp_path, f"{side}{rep}", one) for rep, one in enumerate(events)], side))
        for rep, where in sides[-1].reps.items():
            where.job, where.order = "job", 2 * rep + (side == "new")
        sides[-1].interleaved = True
    found = compare_sides(*sides)
    assert found["verdict"] == "regressed"
    assert "because the wait for `DataLoader` grew" in found["headline"]
    (wait,) = [entry for entry in found["explanation"] if (entry["kind"], entry["name"]) == ("phase", "data_wait")]
    assert 0.9 <= wait["share"] <= 1.1


@pytest.mark.parametrize("cat", ["cpu_op", "user_annotation"])
def test_one_trace_a_side_measures_the_growth_in_the_data_wait(tmp_path, cat):
    base, new = (measured(tmp_path, f"of{wait_us}", training(8, wait_us, cat=cat)).values for wait_us in (50, 900))
    growth = new["step_time_median"][0] - base["step_time_median"][0]
    assert growth == 850_000
    assert new["phase/data_wait"][0] - base["phase/data_wait"][0] >= 0.9 * growth


def kernels(version, copies, steps=6):
    """Steps on a GPU. Two versions of a library call nearly all kernels otherwise, and take about as long."""
    kinds, size = ("unrolled", "vectorized"), f"{16 + version}x6_nt_align4"
    names = [f"void f::{kinds[n % 2]}_kernel<{n}, f::add{version}<float> >(int)" for n in range(20)]
    names += [f"void cutlass::Kernel<cutlass_{80 + version}_gemm_{64 * (1 + n)}x64_{size}>(int)" for n in range(20)]
    names += [f"triton_poi_fused_add_{10 * version + n}" for n in range(6)]
    events, at = [], 100
    for number in range(steps):
        begin = at
        for name, dur in [*((name, 40 + version) for name in names), *[("Memcpy DtoD (Device -> Device)", 4)] * copies]:
            cat = "gpu_memcpy" if name.startswith("Mem") else "kernel"
            events.append(op(name, at, dur, cat=cat, pid=0, tid=7, device=0, stream=7))
            at += dur + 1
        events.append(step(number, begin, at - begin))
    return events


def test_the_one_cause_stands_above_the_kernels_that_another_version_calls_otherwise(tmp_path):
    sides = [measured(tmp_path, f"v{version}", kernels(version, copies)) for version, copies in ((0, 3), (1, 774))]
    found = compare_sides(*sides)
    assert found["explanation"][0]["name"] == "Memcpy DtoD (Device -> Device)"
    text = compare_sections.text(found)
    lines = text.splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("operator"))
    assert lines[first].startswith("operator `Memcpy DtoD` (3 -> 774 ")
    assert "92 operators have other names" in text
    assert len(lines) <= 24
