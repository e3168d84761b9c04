"""What one argument of the script sets is tried together."""

from dataclasses import replace

from pipeprof.verdict.candidate import Recorded
from pipeprof.verdict.capacity import Loop, Stage
from pipeprof.verdict.tuning import candidates


def stage(op_id, rate):
    return Stage(
        op_id=op_id, op_type="MapOp", workers=1, work_ns=1e9 / rate, rate=rate, kind="wait", rows=1.0, row_ns=1e9 / rate,
        node=op_id, is_python=True,
    )  # fmt: skip


def test_operators_of_one_argument_get_the_same_value():
    loop = Loop(stages=(stage(1, 20.0), stage(2, 900.0)), consumer=100.0, rate=20.0, free_cores=3.0, cpu_count=4)
    alone = candidates(loop, {})
    both = frozenset({1, 2})
    together = candidates(loop, {}, recorded=Recorded(together={(1, "workers"): both, (2, "workers"): both}))
    assert alone[0].key == "1:workers=4"
    assert together[0].key == "1:workers=4+2:workers=4"
    assert [(one.op_id, one.workers) for one in together[0].changes] == [(1, 4), (2, 4)]
    assert together[0].prediction == alone[0].prediction
    keys = [one.key for one in together]
    assert len(keys) == len(set(keys))
    assert "1:processes=True" in keys
    assert not any(key.startswith("1:workers") and "+2:" not in key for key in keys)


def test_operators_of_one_argument_that_are_changed_together_get_the_larger_value():
    loop = Loop(stages=(stage(1, 20.0), stage(2, 22.0)), consumer=60.0, rate=20.0, free_cores=3.0, cpu_count=4)
    stages = (loop.stages[0], replace(loop.stages[1], workers=2))
    loop = replace(loop, stages=stages)
    assert any(one.key == "1:workers=3+2:workers=4" for one in candidates(loop, {})), "or this test says nothing"
    both = frozenset({1, 2})
    together = candidates(loop, {}, recorded=Recorded(together={(1, "workers"): both, (2, "workers"): both}))
    numbers = [{change.workers for change in one.changes} for one in together if "workers" in one.key]
    assert {4} in numbers
    assert all(len(each) == 1 for each in numbers)


def test_a_reader_by_file_that_the_argument_sets_too_may_hand_out_another_order():
    reader = replace(stage(2, 900.0), op_type="TFReaderOp", is_python=False)
    loop = Loop(stages=(stage(1, 20.0), reader), consumer=100.0, rate=20.0, free_cores=3.0, cpu_count=4)
    both = frozenset({1, 2})
    found = candidates(loop, {}, recorded=Recorded(together={(1, "workers"): both}))
    assert {one.permutes for one in found if "2:workers" in one.key} == {True}
    assert not any(one.permutes for one in found if "2:workers" not in one.key)
