"""More workers for MindSpore's own readers, and which of them hand rows out in another order then."""

import pytest
from mindspore_sources import source_classes

from pipeprof.verdict.candidate import Recorded
from pipeprof.verdict.capacity import Loop, Stage
from pipeprof.verdict.tuning import BY_FILE, candidates, worth_trying

BATCH = Stage(0, "BatchOp", node=0, rate=900.0)


def tried(op_type, rate, kind="wait", consumer=500.0, others=()):
    reader = Stage(1, op_type, node=1, rate=rate, kind=kind, capacity=16)
    loop = Loop((BATCH, reader, *others), consumer=consumer, rate=90.0, free_cores=6.0, process_cores=0.5, cpu_count=8)
    found = worth_trying(candidates(loop, {}, "time", Recorded(readers=frozenset({1}))), ())
    return [one for one in found if one.changes and one.changes[0].op_id == 1]


@pytest.mark.parametrize(
    ("op_type", "permutes"), [("MindRecordOp", False), ("ImageFolderOp", False), ("TFReaderOp", True)]
)
def test_a_slow_reader_gets_more_workers(op_type, permutes):
    found = tried(op_type, 100.0)
    assert {one.permutes for one in found} == {permutes}
    best = found[0]
    assert best.changes[0].workers >= 5  # of 100 batches/s each, for a loop that takes 500
    assert best.prediction.ratio == pytest.approx(5.0, rel=0.05)


def test_below_a_zip_none_is_tried_in_another_order():
    """Its rows would stand beside other rows of the other reader."""
    joined = Stage(3, "ZipOp", node=3, rate=5000.0)
    assert {one.permutes for one in tried("TFReaderOp", 100.0, others=(joined,))} == set()
    assert {one.permutes for one in tried("MindRecordOp", 100.0, others=(joined,))} == {False}


def test_one_that_was_not_timed_is_tried_without_a_prediction():
    assert [one.is_unknown for one in tried("ImageFolderOp", None)] == [True] * len(tried("ImageFolderOp", None))
    assert tried("ImageFolderOp", None)


def test_it_comes_before_what_changes_no_operator():
    reader = Stage(1, "TFReaderOp", node=1)
    loop = Loop((BATCH, reader), consumer=500.0, rate=90.0, free_cores=0.0, process_cores=1.9, cpu_count=2, cores=2.0)
    found = [one.key for one in candidates(loop, {}, "time", Recorded(readers=frozenset({1}))) if one.is_unknown]
    assert found == ["1:workers=2", "runtime_threads=1", "threads=1"]


def test_one_that_keeps_up_is_not():
    assert tried("MindRecordOp", 5000.0, consumer=90.0) == []


def test_readers_by_file_are_those_of_mindspore_that_no_sampler_asks():
    """Every class of MindSpore's is of one sort; those that take a sampler are asked for row numbers."""
    import mindspore.dataset as ds

    from pipeprof.collect.probe.describe import READERS

    found = {}
    for name, made in source_classes().items():
        op = f"{name.removesuffix('Dataset')}Op"
        found[READERS.get(op, op)] = issubclass(made, ds.engine.datasets.MappableDataset)
    assert {op for op, mappable in found.items() if not mappable} <= BY_FILE
    assert not {op for op, mappable in found.items() if mappable} & BY_FILE
