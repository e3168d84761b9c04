"""Candidates for MindSpore's own readers of files: more workers. Pure.

A reader that asks a sampler for row numbers (MindRecord, folders of pictures, CIFAR) hands rows on in their order with
any number of workers. One that reads files from their beginning (TFRecord, CSV, text) takes turns between the files
that its workers read: with another number of workers the same rows come in another order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipeprof.verdict.candidate import Candidate, key_of
from pipeprof.verdict.capacity import SOURCE, Change, Loop, Stage
from pipeprof.verdict.options import MOST_WORKERS
from pipeprof.verdict.predict import Prediction, predict
from pipeprof.verdict.workers import enough_workers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

BY_FILE = frozenset(
    [
        "AGNewsOp", "AmazonReviewOp", "CLUEOp", "CSVOp", "ClueOp", "CoNLL2000Op", "CsvOp", "DBpediaOp", "EnWik9Op",
        "IWSLTOp", "Multi30kOp", "PennTreebankOp", "RandomDataOp", "SQuADOp", "SST2Op", "SogouNewsOp", "TFReaderOp",
        "TextFileOp", "UDPOSOp", "USPSOp", "WikiTextOp", "YahooAnswersOp", "YelpReviewOp",
    ]
)  # fmt: skip


def more_readers(loop: Loop, readers: Collection[int]) -> Iterator[Candidate]:
    """More workers for the readers among the stages: as many as are enough where that is known, twice as many, all."""
    for stage in loop.stages:
        if stage.op_id not in readers or stage.op_type == SOURCE:
            continue
        scaled = _as_map(loop, stage)
        most = min(loop.cpu_count, MOST_WORKERS)
        wanted = {enough_workers(scaled, stage.op_id) or 0, stage.workers + 1, 2 * stage.workers, most}
        for number in sorted(one for one in wanted if stage.workers < one <= most):
            change = Change(stage.op_id, workers=number)
            prediction = Prediction(None) if stage.rate is None else predict(scaled, change)
            yield Candidate(key_of(change), (change,), prediction=prediction, permutes=stage.op_type in BY_FILE)


def _as_map(loop: Loop, stage: Stage) -> Loop:
    """The loop with the reader as an operator whose rows come in proportion to its workers."""
    return replace(loop, stages=tuple(replace(one, op_type="MapOp") if one is stage else one for one in loop.stages))
