"""A folder of runs as a small local site: the pages that the verbs write, made when they are asked for."""

from __future__ import annotations

from importlib.util import find_spec

from pipeprof.errors import UsageError

INSTALL = "pip install 'pipeprof[serve]'"
_NEEDED = ("starlette", "uvicorn")


def check_installed() -> None:
    """Raise UsageError when what the extra `serve` installs is missing; nothing is imported."""
    missing = [name for name in _NEEDED if not find_spec(name)]
    if missing:
        raise UsageError(f"`pipeprof serve` needs {' and '.join(missing)}", INSTALL)
