"""A block as a decorator, of functions, generators and coroutines alike."""

from __future__ import annotations

import functools
import inspect
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeVar

from pipeprof.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

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
