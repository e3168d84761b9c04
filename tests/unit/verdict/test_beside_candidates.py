"""Candidates that nothing predicts: large rows of worker processes, MindSpore's threads, one NUMA node."""

from dataclasses import replace

import pytest

from pipeprof.verdict.candidate import LARGE_ROW, Recorded, beside
from pipeprof.verdict.capacity import Loop, Stage
from pipeprof.verdict.tuning import candidates

MAP = Stage(1, "MapOp", rate=100.0, uses_processes=True, is_python=True)
IDLE = Loop((MAP,), consumer=500.0, rate=100.0, free_cores=6.0, process_cores=3.0, cpu_count=8)
NODES = (("0,1,2,3", 4), ("4,5,6,7", 4))


def keys(loop, **known):
    return [one.key for one in beside(loop, Recorded(**known))]


@pytest.mark.parametrize(
    ("stage", "size", "expected"),
    [
        (MAP, 3_000_000, ["1:max_rowsize=5"]),  # 1.5 times 2.9 MiB
        (MAP, LARGE_ROW - 1, []),
        (replace(MAP, uses_processes=False), 3_000_000, []),
        (replace(MAP, op_type="BatchOp"), 3_000_000, []),  # a script's is multiplied by the size of the batch
    ],
)
def test_memory_is_kept_for_large_rows_of_processes(stage, size, expected):
    assert keys(replace(IDLE, stages=(stage,)), row_bytes={1: size}) == expected


@pytest.mark.parametrize(("free", "expected"), [(0.1, ["runtime_threads=4"]), (6.0, [])])
def test_fewer_threads_of_mindspore_where_no_core_is_idle(free, expected):
    assert keys(replace(IDLE, free_cores=free)) == expected


@pytest.mark.parametrize(
    ("nodes", "cores", "expected"),
    [(NODES, 3.0, ["cpus=0,1,2,3"]), (NODES, 5.0, []), (NODES, None, []), (NODES[:1], 3.0, [])],
)
def test_one_numa_node_where_the_training_fits_into_it(nodes, cores, expected):
    assert keys(replace(IDLE, process_cores=cores), nodes=nodes) == expected


def test_a_numa_node_is_for_all_ranks_of_the_command():
    assert keys(replace(IDLE, process_cores=1.0, sharing=4.0), nodes=NODES) == ["cpus=0,1,2,3"]
    assert keys(replace(IDLE, process_cores=1.0, sharing=8.0), nodes=NODES) == []


def test_of_unknown_effect_what_usually_brings_most_is_tried_first():
    loop = replace(IDLE, stages=(replace(MAP, rate=None), Stage(2, "TFReaderOp")), free_cores=0.1)
    found = candidates(loop, {}, "time", Recorded(row_bytes={1: 3_000_000}, nodes=NODES, readers=frozenset({2})))
    assert all(one.is_unknown for one in found)
    first = [next(at for at, one in enumerate(found) if kind in one.key) for kind in ("2:workers", "max_row", "cpus")]
    assert first == sorted(first)
    assert found[first[0]].permutes


def test_they_are_tried_behind_what_is_predicted_and_not_where_the_loop_limits():
    known = Recorded(row_bytes={1: 3_000_000}, nodes=NODES)
    found = [one.key for one in candidates(IDLE, {}, "time", known)]
    assert found.index("1:workers=2") < found.index("cpus=0,1,2,3")
    limited = replace(IDLE, stages=(replace(MAP, rate=900.0),), rate=490.0)
    assert not [one for one in candidates(limited, {}, "time", known) if one.cpus or one.changes[0].max_rowsize]
