"""Finds the gate's settings: a file that was named, or the nearest pipeprof.toml or pyproject.toml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from pipeprof.errors import UsageError
from pipeprof.record.bad_json import BAD_JSON
from pipeprof.verdict.gate.policy import Policy, read_policy

OWN, PROJECT = "pipeprof.toml", "pyproject.toml"
SECTION = "gate"


def load_policy(path: Path | None) -> Policy:
    """The settings in `path`; without one, of the working directory or its nearest parent, up to the git root.

    In each folder `pipeprof.toml` (table `[gate]`, or the keys themselves) goes before the table `[tool.pipeprof.gate]`
    of `pyproject.toml`. The defaults when there is none. Raises UsageError that names the file, and the key where there
    is one, for a named file without settings, for wrong TOML, and for unknown keys and wrong values.
    """
    if path is not None:
        table = _table(path)
        if table is None:
            raise UsageError(f"no table `[tool.pipeprof.gate]` in `{path}`", "see docs/gate.md for its keys")
        return read_policy(table, f"`{path}`")
    for folder in _folders(Path.cwd()):
        for name in (OWN, PROJECT):
            found = folder / name
            table = _table(found) if found.is_file() else None
            if table is not None:
                return read_policy(table, f"`{found}`")
    return Policy()


def _folders(start: Path) -> list[Path]:
    """The folder and its parents up to the one that holds `.git`; only the folder itself outside a repository."""
    folders = [start, *start.parents]
    root = next((at for at, folder in enumerate(folders) if (folder / ".git").exists()), 0)
    return folders[: root + 1]


def _table(path: Path) -> dict[str, Any] | None:
    """The gate's table of a file; None when the file is a pyproject.toml without one."""
    content = _parsed(path)
    if path.name != PROJECT and "tool" not in content:
        return _section(content, path, "") if SECTION in content else content
    own = _as_table(content.get("tool", {}), path, "tool").get("pipeprof")
    if own is None:
        return None
    return _section(_as_table(own, path, "tool.pipeprof"), path, "tool.pipeprof.")


def _section(table: dict[str, Any], path: Path, prefix: str) -> dict[str, Any]:
    for key in table:
        if key != SECTION:
            raise UsageError(f"unknown key `{prefix}{key}` in `{path}`", f"the gate's table is `[{prefix}{SECTION}]`")
    return _as_table(table.get(SECTION, {}), path, prefix + SECTION)


def _as_table(value: object, path: Path, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"`{name}` in `{path}` is no table", "see docs/gate.md for its keys")
    return value


def _parsed(path: Path) -> dict[str, Any]:
    try:
        content = msgspec.toml.decode(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read the policy `{path}`: {error.strerror}", "give a TOML file") from error
    except BAD_JSON as error:
        raise UsageError(f"`{path}` is no TOML: {error}", "see docs/gate.md for an example") from error
    return _as_table(content, path, "the content")
