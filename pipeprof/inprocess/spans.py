"""`record_function`: names a part of the program in the run that is being recorded."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar

from pipeprof.inprocess import owner
from pipeprof.inprocess.decorate import around

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from typing_extensions import Self


F = TypeVar("F", bound="Callable[..., Any]")


class record_function:  # noqa: N801 - the name that users of other profilers know
    """A `with` block, or a decorator, that becomes a row of the table `span` (category `user`).

    It is written when the block ends, whatever ends it, and only while a profile (or `pipeprof collect`) records;
    otherwise entering and leaving it is all it does.
    """

    def __init__(self, name: str) -> None:
        self._name = str(name)
        self._begin: int | None = None
        self._stack: list[str] = []

    def __enter__(self) -> Self:
        if owner.active() is not None:
            self._begin = time.monotonic_ns()
            self._stack = owner.stack(1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._begin is not None:
            owner.span(self._name, self._begin, time.monotonic_ns(), "user", self._stack)
            self._begin = None

    def __call__(self, function: F) -> F:
        """Decorate a function: every call is a row; of a generator or coroutine, from its first step to its end."""
        return around(function, lambda: type(self)(self._name))
