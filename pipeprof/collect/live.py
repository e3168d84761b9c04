"""A second process that keeps what `pipeprof top` shows in a file while a training is recorded."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_LOWEST = 19  # priority: it looks when nobody else wants the CPU
_LAST_S = 60.0  # for the look at the end, and for the end of the process
_UNHEARD: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


@contextlib.contextmanager
def watched(run: Path, file: Path | None) -> Iterator[None]:
    """Keep the newest look at the run in the file until the end. Without a file nothing is started.

    It is no process of the training: it reads the run's folder, as `pipeprof top` does from any terminal, at most 2 %
    of the time, at the lowest priority, and a signal to the training does not reach it.
    """
    if file is None:
        yield
        return
    command = [sys.executable, "-m", "pipeprof", "top", str(run.absolute()), "-o", str(file.absolute()), "--force"]
    # `-m` looks into the working directory first, which must not be the user's, and then has to find this pipeprof.
    path = os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]))
    how: Any = _UNHEARD | {"cwd": run.absolute(), "env": os.environ | {"PYTHONPATH": path}}
    watcher = subprocess.Popen(command, start_new_session=True, **how)
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, watcher.pid, _LOWEST)
    try:
        yield
    finally:
        watcher.terminate()
        try:
            watcher.wait(_LAST_S)
        except subprocess.TimeoutExpired:
            watcher.kill()
            watcher.wait()
        with contextlib.suppress(OSError):
            file.with_name(f".{file.name}.{watcher.pid}").unlink()  # of a look that was cut off
    with contextlib.suppress(subprocess.TimeoutExpired, OSError):  # the file must not say for ever that it trains
        subprocess.run([*command, "--once"], timeout=_LAST_S, check=False, **how)
