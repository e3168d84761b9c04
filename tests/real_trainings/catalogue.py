"""All real pipelines: what makes the data set, which loop trains on it, and which of them are held out.

Nothing here says what limits a training: that is measured (label.py).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

Loop = Literal["model", "jit", "pynative"]
HELD_OUT_SEED = 20261122  # drawn before anything was recorded: rules are fixed before these are looked at
TRIVIAL = frozenset(["TypeCast", "OneHot"])  # maps that convert a label: not replaced alone


@dataclass(frozen=True)
class Case:
    """One training. `make` is `module.function`, `input` what its network reads; `soft` labels are shares of classes."""

    name: str
    make: str
    loop: Loop
    input: tuple[str, int]
    heavy: bool = False
    soft: bool = False
    workers: int | None = None

    @property
    def family(self) -> str:
        """The module that makes its data set."""
        return self.make.partition(".")[0]


RGB, GREY, SOUND, TOKENS = ("pictures", 3), ("pictures", 1), ("pictures", 1), ("tokens", 501)

CASES = (
    Case("cifar_lambdas", "pictures.cifar_lambdas", "model", RGB),
    Case("cifar_lambdas_heavy", "pictures.cifar_lambdas", "pynative", RGB, heavy=True),
    Case("cifar_native", "pictures.cifar_native", "jit", RGB),
    Case("cifar_native_heavy", "pictures.cifar_native", "model", RGB, heavy=True, workers=2),
    Case("cifar_after_batch", "pictures.cifar_after_batch", "pynative", RGB),
    Case("cifar_enlarged", "pictures.cifar_enlarged", "jit", RGB),
    Case("cifar_cut_out", "pictures.cifar_cut_out", "pynative", RGB),
    Case("cifar_cut_mix", "pictures.cifar_cut_mix", "pynative", RGB, soft=True),
    Case("mnist_native", "pictures.mnist_native", "pynative", GREY),
    Case("mnist_noise_heavy", "pictures.mnist_noise", "jit", GREY, heavy=True),
    Case("mnist_repeated", "pictures.mnist_repeated", "model", GREY),
    Case("concatenated", "pictures.concatenated", "model", GREY),
    Case("jpeg_native", "pictures.jpeg_native", "model", RGB),
    Case("jpeg_native_heavy", "pictures.jpeg_native", "jit", RGB, heavy=True, workers=2),
    Case("jpeg_python", "pictures.jpeg_python", "pynative", RGB),
    Case("jpeg_processes", "pictures.jpeg_processes", "model", RGB),
    Case("jpeg_mixup", "pictures.jpeg_mixup", "jit", RGB, soft=True),
    Case("record_pictures", "records.record_pictures", "model", RGB),
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
    Case("sounds_native", "arrays.sounds_native", "model", SOUND),
    Case("sounds_filtered", "arrays.sounds_filtered", "jit", SOUND),
    Case("sounds_python", "arrays.sounds_python", "pynative", SOUND),
    Case("cached", "arrays.cached", "jit", SOUND),
    Case("large_arrays", "arrays.large_arrays", "model", ("pictures", 8)),
    Case("large_slices_heavy", "arrays.large_slices", "jit", RGB, heavy=True),
    Case("generated", "arrays.generated", "pynative", ("vectors", 256)),
    Case("threads", "arrays.threads", "model", RGB),
    Case("distant", "arrays.one_thread", "pynative", RGB),
    Case("processes", "arrays.processes", "jit", RGB),
    Case("simulated_heavy", "arrays.simulated", "model", RGB, heavy=True),
    Case("zipped", "arrays.zipped", "pynative", RGB),
)


def held_out() -> frozenset[str]:
    """Names of the third that is recorded last; whether a name is among them does not depend on the others."""
    digests = {case.name: hashlib.sha256(f"{HELD_OUT_SEED} {case.name}".encode()).digest() for case in CASES}
    return frozenset(name for name, digest in digests.items() if digest[0] % 3 == 0)


def find(name: str) -> Case:
    """The case of a name."""
    return next(case for case in CASES if case.name == name)
