"""A block as a decorator, of functions, generators and coroutines alike; `record_function`, which names a part."""

from __future__ import annotations

import functools
import inspect
import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeVar

from pipeprof.errors import UsageError
from pipeprof.inprocess import place

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from types import TracebackType

    from typing_extensions import Self

F = TypeVar("F", bound="Callable[..., Any]")


def around(function: F, block: Callable[[], AbstractContextManager[Any]]) -> F:
    """The function with every call inside a new block.

    That of a generator or coroutine lasts from its first step to its end.
    Raises UsageError for what cannot be called.
    """
    if not callable(function):
        raise UsageError(f"only a function or class can be decorated, found {type(function).__name__}")
    made = next((make for is_kind, make in _KINDS if is_kind(function)), _plain)(function, block)
    return functools.wraps(function)(made)  # type: ignore[return-value]


def _plain(function: Callable[..., Any], block: Callable[[], AbstractContextManager[Any]]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with block():
            return function(*args, **kwargs)

    return call


def _generator(function: Callable[..., Any], block: Callable[[], AbstractContextManager[Any]]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with block():
            return (yield from function(*args, **kwargs))

    return call


def _coroutine(function: Callable[..., Any], block: Callable[[], AbstractContextManager[Any]]) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        with block():
            return await function(*args, **kwargs)

    return call


def _async_generator(
    function: Callable[..., Any], block: Callable[[], AbstractContextManager[Any]]
) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        with block():
            async with aclosing(function(*args, **kwargs)) as items:
                async for item in items:
                    yield item

    return call


_KINDS = (
    (inspect.isasyncgenfunction, _async_generator),
    (inspect.iscoroutinefunction, _coroutine),
    (inspect.isgeneratorfunction, _generator),
)


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
        if place.active() is not None:
            self._begin = time.monotonic_ns()
            self._stack = place.stack(1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._begin is not None:
            place.span(self._name, self._begin, time.monotonic_ns(), "user", self._stack)
            self._begin = None

    def __call__(self, function: F) -> F:
        """Decorate a function: every call is a row; of a generator or coroutine, from its first step to its end."""
        return around(function, lambda: type(self)(self._name))
