r"""Names are bytes: what is not UTF-8 in arguments, paths and variables is stored and shown with escapes (`\xff`).

Python hands such bytes on as half surrogate pairs, which no file format of ours takes, nor any library in C++.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

_HANDLES: dict[str, int] = {}  # few: folders of runs, or one above them
_LONGEST = 200  # characters of a name in an error


def printable(text: str) -> str:
    r"""The text; bytes that are not UTF-8 as `\xff`, other halves of surrogate pairs as `\ud800`."""
    if text.isascii():
        return text
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode("utf-8")


def printable_all(value: Any) -> Any:
    """A value of JSON with every text in it `printable`, keys too."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, (list, tuple)):
        return [printable_all(item) for item in value]
    if isinstance(value, dict):
        return {printable_all(key): printable_all(item) for key, item in value.items()}
    return value


def shortened(text: str) -> str:
    """A name as an error shows it: the middle of a very long one is left out."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}...{text[-_LONGEST // 2 :]}"


def is_utf8(path: str | os.PathLike[str]) -> bool:
    """Whether a path is text."""
    try:
        os.fspath(path).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def reachable(path: Path) -> Path:
    """The same place under a name that is UTF-8, for libraries in C++, which take no other.

    The path itself where it is. Else the last folder whose name is not stays open in this process, and the path leads
    through it: `/proc/self/fd/7/step`. Where that cannot be done, the path as it is.
    """
    if is_utf8(path):
        return path
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links
    folder = next(parent for parent in (absolute, *absolute.parents) if not is_utf8(parent.name))
    try:
        return Path(f"/proc/self/fd/{_opened(os.fspath(folder))}", absolute.relative_to(folder))
    except OSError:
        return path


def _opened(folder: str) -> int:
    """A handle on a folder that stays open; a new one when another folder has its name by now."""
    handle = _HANDLES.get(folder)
    if handle is None or not os.path.samestat(os.fstat(handle), os.stat(folder)):  # noqa: PTH116 - a plain name
        if handle is not None:
            os.close(handle)
            del _HANDLES[folder]
        handle = _HANDLES[folder] = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    return handle
