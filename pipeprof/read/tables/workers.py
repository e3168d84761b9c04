"""Several ranks at once, each in a process of its own. What is written does not depend on how many there are."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

from pipeprof import cluster
from pipeprof.errors import RunError, SourceError, UsageError
from pipeprof.read.tables.share import Outcome, folder_alone, read_share
from pipeprof.read.tables.worker import Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipeprof.read.tables.share import Share
    from pipeprof.record.run import Run

    Answers = queue.SimpleQueue[tuple["_Worker", Answer | None]]

VARIABLE = "PIPEPROF_IMPORT_JOBS"
MOST = 8  # processes, each of which needs some 200 MiB
WORTH_BYTES = 32 << 20  # less is read sooner than processes are started
_ERRORS = {kind.__name__: kind for kind in (RunError, SourceError, UsageError)}


def read_shares(shares: Sequence[Share], run: Run, progress: Callable[[str], None]) -> list[Outcome]:
    """Outcomes in the order of the shares.

    Raises RunError when the run cannot be written, SourceError when a process is ended from outside, UsageError for a
    number of processes that is none. No process is left behind.
    """
    if cluster.is_connected():
        return _on_cluster(shares, run, progress)
    count = min(_wanted(), len(shares))
    if count < 2 or sum(share.size for share in shares) < WORTH_BYTES or not sys.executable:
        return [read_share(share, run, progress) for share in shares]
    answers: Answers = queue.SimpleQueue()
    workers: list[_Worker] = []
    try:
        workers += [_Worker(run.path, answers) for _ in range(count)]
        return _collect(shares, workers, answers, progress)
    finally:
        for worker in workers:
            worker.stop()


def _on_cluster(shares: Sequence[Share], run: Run, progress: Callable[[str], None]) -> list[Outcome]:
    """As `read_shares`, on the nodes of a cluster, which write into the run's folder as they see it."""
    waiting = sorted(shares, key=lambda share: (-share.size, share.rank))
    done: dict[int, Outcome] = {}
    folder = run.path.resolve()
    for _, outcome in cluster.each(_read_elsewhere, [(folder, share) for share in waiting]):
        done[outcome.rank] = outcome
        progress(f"{len(done)} of {len(shares)} ranks done")
    for unfinished in folder.rglob(".*.tmp"):  # of a worker that was lost; the rank was read again
        unfinished.unlink()
    return [done[share.rank] for share in shares]


def _read_elsewhere(part: tuple[Path, Share]) -> Outcome:
    folder, share = part
    if not folder.is_dir():
        raise RunError(
            f"a node of the cluster does not see `{folder}`", "import from and into a folder that all nodes share"
        )
    return read_share(share, folder_alone(folder), lambda _text: None)


def _wanted() -> int:
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return min(MOST, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    if not text.isdecimal() or not 1 <= int(text) <= 256:
        raise UsageError(f"`{VARIABLE}` is `{text[:40]}`, expected a number from 1 to 256", f"unset {VARIABLE}")
    return int(text)


def _collect(
    shares: Sequence[Share], workers: Sequence[_Worker], answers: Answers, progress: Callable[[str], None]
) -> list[Outcome]:  # fmt: skip
    waiting = sorted(shares, key=lambda share: (share.size, -share.rank))  # the biggest is taken first, from the end
    for worker in workers:
        worker.ask(waiting.pop())
    done: dict[int, Outcome] = {}
    while len(done) < len(shares):
        worker, answer = answers.get()
        if answer is None:
            raise worker.died()
        if answer.error is not None:
            kind, message, hint = answer.error
            raise _ERRORS.get(kind, SourceError)(message, hint)
        if answer.progress is not None:
            progress(f"{answer.progress} ({len(done)} of {len(shares)} ranks done)")
        if answer.outcome is not None:
            done[answer.outcome.rank] = answer.outcome
            if waiting:
                worker.ask(waiting.pop())
    return [done[share.rank] for share in shares]


class _Worker:
    """One process, and a thread that listens to it."""

    def __init__(self, folder: Path, answers: Answers) -> None:
        root = str(Path(__file__).parents[3])
        path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pipeprof.read.tables.worker", str(folder.resolve())],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
        self._rank = -1
        self._thread = threading.Thread(target=self._listen, args=(self._process.stdout, answers), daemon=True)
        self._thread.start()

    def ask(self, share: Share) -> None:
        """Have a rank read."""
        self._rank = share.rank
        try:
            if self._process.stdin is not None:
                self._process.stdin.write(msgspec.json.encode(share) + b"\n")
                self._process.stdin.flush()
        except OSError as error:
            raise self.died() from error

    def died(self) -> SourceError:
        """The error for a process that ended while it was needed."""
        status = self._process.wait()
        return SourceError(
            f"the process that read rank {self._rank} was ended (status {status})",
            f"is there enough memory? {VARIABLE}=1 reads one rank at a time",
        )

    def stop(self) -> None:
        """End the process, whatever it does, and wait until it is gone."""
        self._process.kill()
        self._process.wait()
        self._thread.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:  # what could not be sent to a process that died
                    continue

    def _listen(self, pipe: IO[bytes], answers: Answers) -> None:
        for line in pipe:
            try:
                answer = msgspec.json.decode(line, type=Answer)
            except msgspec.DecodeError:
                break
            answers.put((self, answer))
        answers.put((self, None))
