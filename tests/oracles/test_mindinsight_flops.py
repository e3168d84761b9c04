"""FLOPs of ranks and stages against what MindInsight 2.3.1 proposes for the same files, and where it proposes nothing.

Each answer was given by its ParallelProposer for a folder with a `flops_summary_<rank>.json` of each rank and the name of
an `ascend_cluster_analyse_*` file; the files that its other rules need were empty.
"""

import json

import pytest
from captured import outside, own

from pipeprof.read.foreign import import_path
from pipeprof.verdict.rank_flops import flops_of_ranks

SPEEDS = [50, 50, 50, 50]
CASES = [
    ("pipeline", 2, 4, [107146.763, 107145.034, 107140.0, 107150.5], [5385.552, 5386.261, 5380.1, 5390.0], {}),
    ("pipeline", 2, 4, [100, 100, 160, 160], SPEEDS, {"stage": (2, 160.0, 23.08)}),
    ("pipeline", 2, 4, [100, 100, 150, 150], SPEEDS, {}),  # a fifth exactly
    ("pipeline", 2, 4, [100, 100, 150.2, 150.2], SPEEDS, {"stage": (2, 150.2, 20.06)}),
    (
        "pipeline", 4, 8, [90, 110, 100, 100, 200, 190, 30, 30], [50, 50, 20, 50, 10, 50, 50, 50],
        {"stage": (3, 195.0, 83.53), "rank": (4, 10, 75.76)},
    ),
    ("pipeline", 3, 3, [100.5, 50.25, 80.125], [5, 4, 5], {"stage": (1, 100.5, 30.59)}),
    ("pipeline", 2, 5, [1, 1, 1, 9, 9], [5, 5, 5, 5, 5], {"stage": (2, 5.0, 42.86)}),
    ("data", 1, 4, [100, 100, 300, 100], [50, 50, 39.9, 50], {}),
    ("data", 1, 4, [100, 100, 300, 100], [50, 50, 35, 50], {"rank": (2, 35, 24.32)}),
    ("model", 1, 2, [100, 900], [50, 12.5], {"rank": (1, 12.5, 60.0)}),
]  # fmt: skip


def said(mode, stages, size, flops, speeds):
    parallel = {"mode": mode, "stages": stages, "ranks": size}
    return {
        str(rank): {"flops": {"FLOPs": str(work), "FLOPS": str(speed)}, "parallel": parallel}
        for rank, (work, speed) in enumerate(zip(flops, speeds, strict=True))
    }


def named(found):
    """What is named, in MindInsight's units and digits."""
    shown = {}
    if stage := found["stage"]:
        shown["stage"] = (stage["stage"], round(stage["flops"] / 1e6, 4), round(100 * stage["excess"], 2))
    if rank := found["rank"]:
        shown["rank"] = (rank["rank"], round(rank["flops_per_s"] / 1e9, 4), round(100 * rank["shortfall"], 2))
    return shown


@pytest.mark.parametrize("case", CASES)
def test_the_same_stage_and_rank_are_named(case):
    *files, answer = case
    assert named(flops_of_ranks(said(*files))) == answer


def test_cube_and_vector_units_add_up():
    files = said("pipeline", 2, 4, [100, 100, 160, 160], SPEEDS)
    files["0"]["flops"] = {"cube_FLOPs": "60.5", "vec_FLOPs": "39.5", "cube_FLOPS": "20.0", "vec_FLOPS": "10.0"}
    assert named(flops_of_ranks(files)) == {"stage": (2, 160.0, 23.08), "rank": (0, 30.0, 33.33)}


def test_without_all_ranks_nothing_is_judged():
    files = said("pipeline", 2, 4, [100, 100, 160, 160], SPEEDS)
    del files["3"]
    found = flops_of_ranks(files)
    assert (found["judged"], named(found)) == (False, {})
    assert [(row["stage"], row["flops"]) for row in found["stages"]] == [(1, 1e8), (2, 1.6e8)]


PROFILES = [  # of two ranks of four, and MindInsight's answer for each rank
    (own("ascend") / "two_ranks", own("ascend") / "answers", "two_ranks_"),
    *((folder, oracle, "mi_cluster_propose_rank") for folder, oracle in zip(
        outside("ascend/mindinsight/tests/utils/resource/cluster_propose"), outside("ascend/oracle"), strict=True)),
]  # fmt: skip


@pytest.mark.parametrize(("folder", "answers", "name"), PROFILES, ids=lambda value: getattr(value, "name", value))
def test_a_profile_of_two_ranks_of_four(tmp_path, folder, answers, name):
    """MindInsight proposes nothing for it: the ranks 2 and 3 are missing."""
    run = import_path(folder, tmp_path / "run")
    found = flops_of_ranks(run.manifest.options["profiler"])
    assert (found["mode"], found["expected"], found["judged"], named(found)) == ("pipeline", 4, False, {})
    assert [(row["rank"], row["stage"], row["flops"]) for row in found["ranks"]] == [
        (rank, 1, json.loads((folder / f"flops_summary_{rank}.json").read_text())["FLOPs"] * 1e6) for rank in (0, 1)
    ]
    for rank in (0, 1):
        assert json.loads((answers / f"{name}{rank}.json").read_text(encoding="utf-8"))["parallel"] == {}
