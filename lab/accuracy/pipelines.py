"""The grammar of the labelled pipelines: what a pipeline is made of, and nothing that runs.

source -> maps -> [filter] -> [shuffle] of one or two branches -> [zip | concat] -> maps -> [repeat] -> batch -> loop.
All times are milliseconds: per row for sources and maps, per batch for batch, per step for the consumer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import msgspec

How = Literal["none", "sleep", "py", "np", "vision", "decode"]
Form = Literal["generator", "random", "slices", "text", "folder", "mindrecord"]
PYTHON_SOURCES = ("generator", "random")


@dataclass(frozen=True)
class Work:
    """What one call does.

    sleep waits; py computes in Python and holds the interpreter; np sorts an array without it; vision blurs and
    shrinks a picture in C++; decode is ImageFolder's JPEG decoder. Besides, every `every`-th call waits `stall_ms`,
    and the `first` calls wait `first_ms` each.
    """

    how: How = "none"
    ms: float = 0.0
    stall_ms: float = 0.0
    every: int = 0
    first_ms: float = 0.0
    first: int = 0


NOTHING = Work()


@dataclass(frozen=True)
class Source:
    """Where rows come from; `name` is the name of its Python class or function."""

    name: str = "source"
    form: Form = "random"
    work: Work = NOTHING
    workers: int = 1
    processes: bool = False


@dataclass(frozen=True)
class Map:
    """One map; `name` is the name of its Python class."""

    name: str
    work: Work = NOTHING
    workers: int = 1
    processes: bool = False


@dataclass(frozen=True)
class Branch:
    """A source and what follows it before the join. One of `keep` rows passes its filter.

    `share` is its part of all rows, for concat.
    """

    source: Source = field(default_factory=Source)
    maps: tuple[Map, ...] = ()
    keep: int = 1
    shuffle: int = 0
    share: float = 1.0


@dataclass(frozen=True)
class Batch:
    """Rows per batch, and the per_batch_map when there is work in it."""

    size: int = 8
    work: Work = NOTHING
    workers: int = 1
    name: str = "collate"


@dataclass(frozen=True)
class Consumer:
    """The training loop: sleeps, computes with numpy, or trains a small network of `width` channels.

    `ms` of a network is what a step is expected to take; the workload measures it.
    """

    form: Literal["sleep", "np", "pynative", "model"] = "sleep"
    ms: float = 6.0
    width: int = 4


@dataclass(frozen=True)
class Pipeline:
    """One labelled pipeline. `fresh`: a new iterator for every epoch."""

    name: str
    branches: tuple[Branch, ...]
    join: Literal["zip", "concat"] | None = None
    maps: tuple[Map, ...] = ()
    repeat: int = 1
    batch: Batch = field(default_factory=Batch)
    consumer: Consumer = field(default_factory=Consumer)
    prefetch: int = 16
    epochs: int = 1
    fresh: bool = False
    style: Literal["tuple", "dict"] = "tuple"
    seconds: float = 4.0

    @property
    def all_maps(self) -> list[Map]:
        """Every map, those of the branches first."""
        return [*(one for branch in self.branches for one in branch.maps), *self.maps]


def to_json(pipeline: Pipeline) -> str:
    """One line of JSON that `from_json` reads."""
    return msgspec.json.encode(pipeline).decode()


def from_json(text: str) -> Pipeline:
    """The pipeline of one line of JSON."""
    return msgspec.json.decode(text, type=Pipeline)


def wait(ms: float) -> Work:
    """A call that waits."""
    return Work("sleep", ms)


def py(ms: float) -> Work:
    """A call that computes in Python."""
    return Work("py", ms)


def sort(ms: float) -> Work:
    """A call that sorts in numpy."""
    return Work("np", ms)


def vision(ms: float) -> Work:
    """A blur in C++."""
    return Work("vision", ms)


def burst(stall_ms: float, every: int, ms: float = 0.0) -> Work:
    """A call that mostly waits `ms`, and `stall_ms` once in `every` calls."""
    return Work("sleep" if ms else "none", ms, stall_ms=stall_ms, every=every)
