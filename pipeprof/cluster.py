"""A function of ours over many parts: in this process, in several of this machine, or on a cluster that stands already.

The cluster is Dask's, called by the URL of its scheduler; decision 42 says why. It schedules, tries again what a lost
worker had, and gives work to workers that come late. What a task does is the same code as here: `each` takes a function
of a module and parts that can be pickled, and a task may be done twice, so it must give the same whenever it is done.
Files lie under the same paths on all nodes.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

from pipeprof import processes
from pipeprof.errors import RunError, UsageError
from pipeprof.version import __version__

Part = TypeVar("Part")
Answer = TypeVar("Answer")

CONNECT_S, WORKERS_S = 30, 60  # until the scheduler answers, and until there is a worker
WORTH = 8  # parts: fewer are done sooner than processes are started
_MEMORY = "is there enough memory for one of its tasks? give the workers more"
_CLIENT: ContextVar[Any] = ContextVar("client", default=None)


def is_connected() -> bool:
    """Whether `each` asks a cluster."""
    return _CLIENT.get() is not None


@contextlib.contextmanager
def connected(url: str | None) -> Iterator[None]:
    """Have `each` ask the cluster with this scheduler, such as tcp://host:8786; None is this machine.

    Raises UsageError without Dask, and when no scheduler or no worker answers.
    """
    if url is None:
        yield
        return
    client = _opened(url)
    token = _CLIENT.set(client)
    try:
        yield
    finally:
        _CLIENT.reset(token)
        client.close()


def each(
    function: Callable[[Part], Answer],
    parts: Sequence[Part],
    *,
    count: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Iterator[tuple[int, Answer]]:
    """The number of each part with its answer, as they are done.

    `count` is how many processes of this machine share them; None: as many as it has cores, when there are enough
    parts. `progress` hears what the function says with `processes.say`, on this machine. What the function raises is
    raised. Raises RunError when a process, or workers again and again, are lost.
    """
    if is_connected():
        yield from _on_cluster(_CLIENT.get(), function, parts)
        return
    if count is None:
        count = min(processes.MOST, processes.cores()) if len(parts) >= WORTH else 1
    if min(count, len(parts)) > 1 and sys.executable:
        yield from processes.each(function, parts, count, progress)
    else:
        yield from processes.here(function, parts, progress)


def _opened(url: str) -> Any:
    try:
        import distributed  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise UsageError("`--engine` needs Dask", "pip install 'pipeprof[fleet]', here and on all nodes") from error
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what it would say is raised here
    try:
        client = distributed.Client(url, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"no scheduler answers at `{url}`", "start one with `dask scheduler`, and give its URL: tcp://HOST:8786"
        ) from error
    try:
        client.wait_for_workers(1, timeout=WORKERS_S)
    except (TimeoutError, asyncio.TimeoutError) as error:  # two in Python 3.10
        client.close()
        raise UsageError(f"the cluster at `{url}` has no workers", f"start some with `dask worker {url}`") from error
    return client


def _on_cluster(
    client: Any, function: Callable[[Part], Answer], parts: Sequence[Part]
) -> Iterator[tuple[int, Answer]]:  # fmt: skip
    from distributed import CancelledError, KilledWorker, as_completed  # noqa: PLC0415 - as above

    # Not `pure`: the same parts may lie in files that have changed since.
    futures = client.map(functools.partial(_task, __version__, function), parts, pure=False)
    number = {future.key: at for at, future in enumerate(futures)}
    try:
        for future, answer in as_completed(futures, loop=client.loop, with_results=True):
            if future.status != "finished":  # the scheduler is gone, and there is no answer
                future.result(timeout=0)
            yield number[future.key], answer
    except KilledWorker as error:
        raise RunError("the cluster lost every worker that tried a task", _MEMORY) from error
    except MemoryError as error:
        raise RunError("a worker of the cluster ran out of memory", _MEMORY) from error
    except (CancelledError, OSError, asyncio.TimeoutError) as error:
        raise RunError("the scheduler of the cluster does not answer any more", "run the same command again") from error
    except ImportError as error:
        raise UsageError(
            f"a worker of the cluster cannot import what it needs: {error}", "install the same pipeprof on all nodes"
        ) from error
    finally:
        client.cancel(futures)


def _task(version: str, function: Callable[[Part], Answer], part: Part) -> Answer:
    """What a worker does. Another pipeprof may have other rules: its answers are not ours."""
    if version != __version__:
        raise UsageError(
            f"a worker of the cluster has pipeprof {__version__}, here it is {version}",
            "install the same pipeprof on all nodes",
        )
    try:
        return function(part)
    except OSError as error:  # else it would look like one of the way to the scheduler
        raise RunError(f"a task failed on a node: {error}", "can all nodes read and write the folders?") from error
