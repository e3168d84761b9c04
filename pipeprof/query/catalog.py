"""Finds the .sql files: in the source tree when there is one, else the copy inside the installed package."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pipeprof
from pipeprof.errors import QueryError, did_you_mean
from pipeprof.query.header import Query, parse

VIEWS = "views"

_FROZEN = "_queries"


def queries_root() -> Path:
    """The folder that holds the .sql files.

    The source tree's `queries/` wins over a frozen copy: an editable install may have both, and only the first is
    edited. Raises QueryError when there is neither.
    """
    return _root_beside(str(pipeprof.__file__))


@cache
def _root_beside(file: str) -> Path:
    package = Path(file).resolve().parent
    source = package.parent / "queries"
    frozen = package / _FROZEN
    if (package.parent / "pyproject.toml").is_file() and source.joinpath(VIEWS).is_dir():
        return source
    if frozen.joinpath(VIEWS).is_dir():
        return frozen
    raise QueryError(
        f"found no queries in `{source}` or `{frozen}`",
        "install pipeprof again: `pip install --force-reinstall pipeprof`",
    )


def find(name: str) -> Query:
    """The query called "family/file", such as "step/phase_summary".

    Raises QueryError, with near names, when there is none.
    """
    return _find(queries_root(), name)


def all_queries() -> tuple[Query, ...]:
    """Every query that is not a view, sorted by name."""
    root = queries_root()
    names = sorted(_name(root, path) for path in root.rglob("*.sql"))
    return tuple(_find(root, name) for name in names if not name.startswith(f"{VIEWS}/"))


def views() -> tuple[Query, ...]:
    """The shared views, each after the views it reads. Raises QueryError when they read each other in a circle."""
    root = queries_root()
    waiting = {path.stem: _find(root, _name(root, path)) for path in sorted(root.joinpath(VIEWS).glob("*.sql"))}
    ordered: list[Query] = []
    while waiting:
        ready = [name for name, view in waiting.items() if not waiting.keys() & set(view.reads)]
        if not ready:
            raise QueryError(f"views read each other in a circle: {', '.join(waiting)}")
        ordered += [waiting.pop(name) for name in ready]
    return tuple(ordered)


def view(name: str) -> Query | None:
    """The view of this name, None where there is none."""
    root = queries_root()
    return _find(root, f"{VIEWS}/{name}") if name in _view_names(root) else None


@cache
def _view_names(root: Path) -> frozenset[str]:
    return frozenset(path.stem for path in root.joinpath(VIEWS).glob("*.sql"))


def view_name(view: Query) -> str:
    """The name under which SQL reads a view: that of its file."""
    return view.path.stem


def _name(root: Path, path: Path) -> str:
    return path.relative_to(root).with_suffix("").as_posix()


@cache
def _find(root: Path, name: str) -> Query:
    path = root / f"{name}.sql"
    if not all(part.isidentifier() for part in name.split("/")) or not path.is_file():
        names = sorted(_name(root, path) for path in root.rglob("*.sql"))
        asked = [other for other in names if not other.startswith(f"{VIEWS}/")]
        raise QueryError(f"no such query: `{name}`", did_you_mean(name, asked, "docs/queries.md lists all queries"))
    return parse(path, name)
