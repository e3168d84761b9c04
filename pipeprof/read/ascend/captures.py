"""Which files belong to which rank: by their names, by what lies beside them, by their folders."""

from __future__ import annotations

from collections import defaultdict
from itertools import count
from typing import TYPE_CHECKING

from pipeprof.errors import SourceError
from pipeprof.read.ascend.communication import stated_rank
from pipeprof.read.ascend.identify import ABOUT_ALL, MANY, NUMBERED, OUTPUT, folder_rank, root_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipeprof.read.ascend.identify import Found
    from pipeprof.record.run import Manifest

    Files = dict[str, list[Path]]


def by_rank(found: Sequence[Found], manifest: Manifest) -> dict[int, Files]:
    """Files of every rank by kind, in order of rank. Kinds in `MANY` may have several.

    Raises SourceError when two captures are of one rank: an import is one training.
    """
    ranks: dict[int, Files] = defaultdict(lambda: defaultdict(list))
    mine = [item for item in found if item.kind not in ABOUT_ALL]
    roots = _ranks_of_roots(mine, manifest)
    for item in mine:
        rank = item.rank if item.rank is not None and _own_rank(item, roots) else roots[item.root]
        if rank is None:
            manifest.warn("left_out", f"`{item.path}` was left out: its folder has several ranks")
            continue
        _place(ranks[rank], rank, item, manifest)
    return {rank: dict(ranks[rank]) for rank in sorted(ranks)}


def _own_rank(item: Found, roots: dict[Path, int | None]) -> bool:
    """Whether the number in a file's name counts: device numbers do only where nothing states the rank."""
    return item.kind in NUMBERED or roots.get(item.root) is None or item.rank == roots[item.root]


def _place(mine: Files, rank: int, item: Found, manifest: Manifest) -> None:
    others = mine.setdefault(item.kind, [])
    if not others or item.kind in MANY:
        others.append(item.path)
        if item.kind == "kernel_details":
            named = [path for path in others if path.name.startswith("kernel_details")]
            mine[item.kind] = named or others
        return
    if root_of(others[0]) == item.root:
        chosen, other = sorted((others[0], item.path), key=_preference)
        others[0] = chosen
        manifest.warn("left_out", f"`{other}` was left out: `{chosen}` of the same capture is of the same kind")
        return
    raise SourceError(
        f"two files of a kind for rank {rank}: `{others[0]}` and `{item.path}`, expected one training",
        "import one of their folders",
    )


def _preference(path: Path) -> tuple[bool, int, str]:
    """Order of files of one kind in one capture: the output for people, then what that was made of."""
    return OUTPUT not in path.parts, len(path.parts), path.as_posix()


def _ranks_of_roots(found: Sequence[Found], manifest: Manifest) -> dict[Path, int | None]:
    """Rank of every capture's folder; None for one that has files of several ranks."""
    roots: dict[Path, list[Found]] = defaultdict(list)
    for item in found:
        roots[item.root].append(item)
    known: dict[Path, int | None] = {}
    for root, items in roots.items():
        known[root] = _stated(items, manifest)
    used = {rank for rank in known.values() if rank is not None}
    unknown = []
    for root, items in roots.items():
        if known[root] is not None:
            continue
        numbers = {item.rank for item in items if item.rank is not None}
        rank = next(iter(numbers)) if len(numbers) == 1 else folder_rank(root) if not numbers else None
        if rank is None and not numbers:
            unknown.append(root)
        known[root] = rank
        used |= numbers if rank is None else {rank}
    free = (number for number in count() if number not in used)
    for root in sorted(unknown):
        rank = next(free)
        known[root] = rank
        used.add(rank)
        if len(roots) > 1:
            manifest.warn("rank", f"nothing says of which rank the files in `{root}` are: taken for rank {rank}")
    return known


def _stated(items: Sequence[Found], manifest: Manifest) -> int | None:
    """Rank that a profiler_info file states, inside or in its name."""
    for item in items:
        if item.kind == "profiler_info":
            try:
                inside = stated_rank(item.path)
            except SourceError as error:
                manifest.warn("damaged_file", f"left out: {error.message}")
                inside = None
            if inside is not None and inside >= 0:
                return inside
            if item.rank is not None:
                return item.rank
    return None
