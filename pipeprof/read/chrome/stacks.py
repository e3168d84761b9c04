"""Source locations: a tree of frames, from the outermost caller inwards."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from pipeprof.read.chrome.events import text_of
from pipeprof.read.chrome.texts import MOST, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

_BETWEEN_FRAMES = re.compile(r";(?:\r?\n)?")
# Frames that the framework's own operator table leaves out (torch/autograd/profiler_util.py, _filter_stack_entry).
_HIDDEN = (
    ("autograd/__init__", "_make_grads"), ("autograd/__init__", "backward"), ("torch/tensor", "backward"),
    ("_internal/common_utils", "prof_callable"), ("_internal/common_utils", "prof_func_call"),
    ("_internal/common_utils", "prof_meth_call"),
)  # fmt: skip


class Stacks:
    """Frames numbered from 0: each with the number of its caller."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int | None, str]] = []
        self._numbers: dict[tuple[int | None, str], int] = {}
        self._texts: dict[bytes, int | None] = {}

    def number(self, raw: bytes) -> int | None:
        """The innermost frame of a `Call stack` (frames separated by `;`, innermost first); None for no frame."""
        if len(raw) <= 2:
            return None
        if raw not in self._texts:
            frames = [frame.strip() for frame in _BETWEEN_FRAMES.split(text_of(msgspec.Raw(raw)))]
            self._texts[raw] = self._add([frame for frame in frames if frame and not _hidden(frame)])
        return self._texts[raw]

    def inside(self, at: int | None, frame: str) -> int | None:
        """The number of a frame that another one called; the caller's where there are too many."""
        key = (at, frame)
        if key not in self._numbers:
            if len(self.rows) >= MOST:
                return at
            self._numbers[key] = len(self.rows)
            self.rows.append((len(self.rows), at, frame))
        return self._numbers[key]

    def _add(self, frames: Sequence[str]) -> int | None:
        at: int | None = None
        for frame in reversed(frames):
            at = self.inside(at, shortened(frame))
        return at


def _hidden(frame: str) -> bool:
    return any(file in frame and function in frame for file, function in _HIDDEN)
