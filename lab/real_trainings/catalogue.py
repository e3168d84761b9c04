"""All real pipelines: what makes the data set, which loop trains on it, and which of them are held out.

Nothing here says what limits a training: that is measured (label.py).
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, replace
from typing import Literal, get_args

Loop = Literal["model", "jit", "pynative"]
LATER_SEED = 20261124  # of the draw that is recorded after a rule was changed for what the held-out third showed
NEXT_SEED = 20261125  # of the one after the rule that the draw before it asked for
LAST_SEED = 20261126  # of the one that judges the sentence which gives an interval where the rule cannot tell
FRESH_SEED = 20261127  # of the one after that showed that half an idle core is too little
HELD_OUT_SEED = 20261122  # drawn before anything was recorded: rules are fixed before these are looked at
TRIVIAL = frozenset(["TypeCast", "OneHot"])  # maps that convert a label: not replaced alone


@dataclass(frozen=True)
class Case:
    """One training. `make` is `module.function`, `input` what its network reads; `soft` labels are shares of classes.

    `script`: file in `libraries/`, with its arguments, of a training by other people's code; `make` begins with theirs.
    """

    name: str
    make: str
    loop: Loop
    input: tuple[str, int | tuple[int, int, int]] | None = None
    heavy: bool = False
    soft: bool = False
    workers: int | None = None
    script: str = ""

    @property
    def family(self) -> str:
        """The module, or the library, that makes its data set."""
        return self.make.partition(".")[0]


def picture(side: int, channels: int = 3, width: int | None = None) -> tuple[str, tuple[int, int, int]]:
    """Pictures of that size; square unless a width is given."""
    return "pictures", (channels, side, width or side)


SMALL, DIGIT, SPECTRUM, TOKENS = picture(32), picture(28, 1), picture(64, 1), ("tokens", 501)

CASES = (
    Case("cifar_lambdas", "pictures.cifar_lambdas", "model", SMALL),
    Case("cifar_lambdas_heavy", "pictures.cifar_lambdas", "pynative", SMALL, heavy=True),
    Case("cifar_native", "pictures.cifar_native", "jit", SMALL),
    Case("cifar_native_heavy", "pictures.cifar_native", "model", SMALL, heavy=True, workers=2),
    Case("cifar_after_batch", "pictures.cifar_after_batch", "pynative", SMALL),
    Case("cifar_enlarged", "pictures.cifar_enlarged", "jit", picture(96)),
    Case("cifar_cut_out", "pictures.cifar_cut_out", "pynative", SMALL),
    Case("cifar_cut_mix", "pictures.cifar_cut_mix", "pynative", SMALL, soft=True),
    Case("mnist_native", "pictures.mnist_native", "pynative", DIGIT),
    Case("mnist_noise_heavy", "pictures.mnist_noise", "jit", DIGIT, heavy=True),
    Case("mnist_repeated", "pictures.mnist_repeated", "model", DIGIT),
    Case("concatenated", "pictures.concatenated", "model", DIGIT),
    Case("jpeg_native", "pictures.jpeg_native", "model", picture(64)),
    Case("jpeg_native_heavy", "pictures.jpeg_native", "jit", picture(64), heavy=True, workers=2),
    Case("jpeg_python", "pictures.jpeg_python", "pynative", picture(64)),
    Case("jpeg_processes", "pictures.jpeg_processes", "model", picture(48)),
    Case("jpeg_mixup", "pictures.jpeg_mixup", "jit", picture(48), soft=True),
    Case("record_pictures", "records.record_pictures", "model", picture(64)),
    Case("record_vectors_heavy", "records.record_vectors", "jit", ("vectors", 256), heavy=True),
    Case("record_vectors", "records.record_vectors", "model", ("vectors", 256)),
    Case("record_shards", "records.record_shards", "pynative", ("vectors", 256)),
    Case("tensor_records", "records.tensor_records_native", "model", ("vectors", 256)),
    Case("tensor_records_python", "records.tensor_records_python", "jit", ("vectors", 256)),
    Case("csv_rows", "records.csv_rows", "pynative", ("vectors", 16)),
    Case("text_native", "records.text_native", "model", TOKENS),
    Case("text_python", "records.text_python", "jit", TOKENS),
    Case("text_pieces_heavy", "records.text_pieces", "pynative", TOKENS, heavy=True),
    Case("text_filtered", "records.text_filtered", "jit", TOKENS),
    Case("sounds_native", "arrays.sounds_native", "model", picture(128, 1, 65)),
    Case("sounds_filtered", "arrays.sounds_filtered", "jit", picture(128, 1, 65)),
    Case("sounds_python", "arrays.sounds_python", "pynative", SPECTRUM),
    Case("cached", "arrays.cached", "jit", SPECTRUM),
    Case("large_arrays", "arrays.large_arrays", "model", picture(128, 8)),
    Case("large_slices_heavy", "arrays.large_slices", "jit", picture(96), heavy=True),
    Case("generated", "arrays.generated", "pynative", ("vectors", 256)),
    Case("threads", "arrays.threads", "model", SMALL),
    Case("distant", "arrays.one_thread", "pynative", SMALL),
    Case("processes", "arrays.processes", "jit", SMALL),
    Case("simulated_heavy", "arrays.simulated", "model", SMALL, heavy=True),
    Case("zipped", "arrays.zipped", "pynative", SMALL),
)


PUBLIC = (
    Case("public_mindcv_folder", "mindcv.folder", "model", script="mindcv_training.py folder --epochs 6"),
    Case("public_mindcv_cifar10", "mindcv.cifar10", "model", script="mindcv_training.py cifar10 --epochs 10"),
    Case("public_mindcv_mixup", "mindcv.mixup", "model", script="mindcv_training.py mixup --epochs 10"),
    Case("public_mindyolo", "mindyolo.coco", "jit", script="mindyolo_training.py --epochs 30"),
    Case("public_mindone", "mindone.sentences", "pynative", script="mindone_training.py --epochs 4"),
    Case("public_lenet_fit", "mindspore.mnist", "model", script="lenet_training.py model --epochs 12"),
    Case("public_lenet_pynative", "mindspore.mnist", "pynative", script="lenet_training.py pynative --epochs 3"),
    Case("public_lenet_jit", "mindspore.mnist", "jit", script="lenet_training.py jit --epochs 3"),
)


def drawn(seed: int, prefix: str, seen: tuple[Case, ...], heavy: int, light: int) -> tuple[Case, ...]:
    """Data sets of `CASES` under loops and networks that are not among those seen, drawn at random."""
    known = {(case.make, case.loop, case.heavy) for case in seen}
    sets = {case.make: case for case in CASES}.values()
    every = [
        replace(case, name=drawn_name(prefix, case, loop, large), loop=loop, heavy=large, workers=None)
        for case in sets
        for loop in get_args(Loop)
        for large in (False, True)
        if (case.make, loop, large) not in known
    ]
    chance = random.Random(seed)  # noqa: S311 - a draw, no secret
    parts = ((True, heavy), (False, light))
    return tuple(
        case for large, count in parts for case in chance.sample([one for one in every if one.heavy is large], count)
    )


def drawn_name(prefix: str, case: Case, loop: Loop, large: bool) -> str:
    """The draw, the function that makes the data set, the loop."""
    return f"{prefix}_{case.make.partition('.')[2]}_{loop}{'_heavy' if large else ''}"


LATER = drawn(LATER_SEED, "later", CASES, heavy=6, light=4)
NEXT = drawn(NEXT_SEED, "next", (*CASES, *LATER), heavy=6, light=6)
LAST = drawn(LAST_SEED, "last", (*CASES, *LATER, *NEXT), heavy=10, light=10)
FRESH = drawn(FRESH_SEED, "fresh", (*CASES, *LATER, *NEXT, *LAST), heavy=5, light=7)
EVERY = (*CASES, *PUBLIC, *LATER, *NEXT, *LAST, *FRESH)
SEEN = frozenset(["processes", "sounds_filtered"])  # drawn as well, but labelled while the tools were tried


def held_out() -> frozenset[str]:
    """Names of the third that is recorded last; whether a name is among them does not depend on the others."""
    digests = {case.name: hashlib.sha256(f"{HELD_OUT_SEED} {case.name}".encode()).digest() for case in CASES}
    return frozenset(name for name, digest in digests.items() if digest[0] % 3 == 0) - SEEN


def find(name: str) -> Case:
    """The case of a name."""
    return next(case for case in EVERY if case.name == name)
