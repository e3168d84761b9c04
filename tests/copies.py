"""Copies of what lies in the source tree, which their tests may change even where nobody may change the source."""

import shutil
from pathlib import Path


def copy_tree(source, target):
    """Copy a folder to a new one, which is returned."""
    shutil.copytree(source, target)
    for path in (Path(target), *Path(target).rglob("*")):
        path.chmod(path.stat().st_mode | (0o700 if path.is_dir() else 0o600))
    return target


def copy_file(source, target):
    """Copy a file to a path or into a folder."""
    path = Path(shutil.copy(source, target))
    path.chmod(path.stat().st_mode | 0o600)
    return path


def files_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def flipped(data, at):
    """The same bytes, of which one has another bit."""
    changed = bytearray(data)
    changed[at] ^= 1
    return bytes(changed)


def flip(path, at):
    path.write_bytes(flipped(path.read_bytes(), at))
