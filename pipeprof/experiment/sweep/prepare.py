"""What a variant needs before it is measured: a cache, a converted model. Made once, into a folder of its own."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from pipeprof.experiment.sweep.bench import PREPARING
from pipeprof.record.links import remove

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipeprof.experiment.sweep.bench import Order, SweepBench
    from pipeprof.experiment.sweep.plan import Variant
    from pipeprof.experiment.sweep.session import SweepSession

ARTEFACTS = "{artefacts}"  # stands for the variant's folder in its words and variables


def folder_of(sweep: Path, variant: str) -> Path:
    """Where a variant's artefacts lie; names of variants may hold anything, so it is named by their hash."""
    return sweep / "artefacts" / hashlib.sha256(variant.encode()).hexdigest()[:12]


def placed(words: Sequence[str], folder: Path) -> list[str]:
    """Words with the folder in place of `{artefacts}`."""
    return [word.replace(ARTEFACTS, str(folder)) for word in words]


def prepare(arm: Variant, order: Order, folder: Path, session: SweepSession, bench: SweepBench) -> None:
    """Run a variant's preparing commands; the session then knows how many seconds they took.

    `order` is the repetition that waits for them. Raises WorkloadError when one fails: nothing is noted then, and the
    next call begins anew, in an empty folder.
    """
    remove(folder)
    folder.mkdir(parents=True, exist_ok=True)
    began = bench.now()
    for number, command in enumerate(arm.options.prepare):
        path = order.path.with_name(f"{order.path.name}{PREPARING}{number}")
        bench.prepare(replace(order, command=placed(command, folder), path=path, dataset=None, context=None))
    session.prepared[arm.name] = bench.now() - began
