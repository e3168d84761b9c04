"""A process that reads ranks for another one: shares come as lines on stdin, progress and outcomes go to stdout.

It ends when stdin does, so it does not outlive the process that started it.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from pathlib import Path

import msgspec

from pipeprof.errors import PipeprofError
from pipeprof.read.tables.share import Outcome, Share, folder_alone, read_share


class Answer(msgspec.Struct, omit_defaults=True):
    """One line of the answer: progress, an outcome, or an error (its class, message, hint)."""

    progress: str | None = None
    outcome: Outcome | None = None
    error: tuple[str, str, str] | None = None


def main() -> None:
    """Read what is asked for into the run's folder, the first argument."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks ends this one
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what else is printed must not get between the answers
    run = folder_alone(Path(sys.argv[1]))
    asked: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(asked,), daemon=True).start()

    def say(answer: Answer) -> None:
        answers.write(msgspec.json.encode(answer) + b"\n")

    while True:
        share = msgspec.json.decode(asked.get(), type=Share)
        try:
            say(Answer(outcome=read_share(share, run, lambda text: say(Answer(progress=text)))))
        except PipeprofError as error:
            say(Answer(error=(type(error).__name__, error.message, error.hint)))


def _listen(asked: queue.SimpleQueue[bytes]) -> None:
    for line in sys.stdin.buffer:
        asked.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
