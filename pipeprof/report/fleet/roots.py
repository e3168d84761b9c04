"""Where runs are looked for: a folder of this machine, or a prefix in object storage."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pipeprof.errors import RunError
from pipeprof.record.object_runs import runs_below
from pipeprof.record.objects import below, escaped, without_secrets
from pipeprof.record.run import MANIFEST
from pipeprof.record.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pipeprof.record.object_runs import Stored

DEEPEST = 6  # folders below the one that is given


class Folder:
    """A folder and the runs in it and in the folders in it, by their path in it; it itself is `.`.

    `front` is what stands before the name of a run, `own` what it is called itself. `key` is another for each folder.
    """

    def __init__(self, root: Path) -> None:
        self.path, self.given = root.absolute(), root
        self.own, self.front = printable(str(root)), printable(str(root / "x"))[:-1]
        self.key = os.fsencode(os.path.abspath(root))  # noqa: PTH100 - links stay as they are

    def looks(self, unlisted: Callable[[str], None]) -> dict[str, str]:
        """What the manifest of each run looks like from outside. Raises RunError when the folder cannot be listed.

        `unlisted` is told of those in it that cannot.
        """
        return dict(_seen(self.given, unlisted))

    def share(self, names: Sequence[str]) -> tuple[Path, Path, Sequence[str]]:
        """What another process needs to read some of the runs."""
        return self.path, self.given, names


class Prefix:
    """As Folder, of a prefix in object storage, which one listing shows."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.own, self.front = (printable(without_secrets(below(url, name))) for name in ("", "x"))
        self.front = self.front[:-1]
        self.key = url.encode(errors="surrogatepass")
        self._runs: Mapping[str, Stored] = {}

    def looks(self, _unlisted: Callable[[str], None]) -> dict[str, str]:
        """What each run looks like in the listing. Raises RunError as `runs_below`."""
        self._runs = {escaped(one.name) or ".": one for one in runs_below(self.url)}
        return {name: one.seen for name, one in self._runs.items()}

    def share(self, names: Sequence[str]) -> tuple[str, list[tuple[str, Stored]]]:
        """See Folder."""
        return self.url, [(name, self._runs[name]) for name in names]


def root_of(given: Path | str) -> Folder | Prefix:
    """The place that a path or URL names."""
    return Prefix(given) if isinstance(given, str) and "://" in given else Folder(Path(given))


def _seen(root: Path, unlisted: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    """The runs below a folder by their path in it, each with what its manifest looks like from outside.

    Links to folders are not followed.
    """
    waiting = [(root, "", 0)]
    while waiting:
        folder, name, depth = waiting.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name, reverse=True)
        except OSError as error:
            if depth == 0:
                raise RunError(
                    f"cannot list the runs in `{folder}`: {error.strerror}", "give a folder that holds runs"
                ) from error
            unlisted(printable(f"{folder}: {error.strerror}"))
            continue
        manifest = next((entry for entry in entries if entry.name == MANIFEST), None)
        if manifest is not None:
            yield name or ".", _looks(manifest)
        elif depth < DEEPEST:
            folders = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
            waiting += [
                (folder / entry.name, f"{name}/{entry.name}" if name else entry.name, depth + 1)
                for entry in folders
                if not entry.name.startswith(".")
            ]


def _looks(manifest: os.DirEntry[str]) -> str:
    try:
        about = manifest.stat(follow_symlinks=False)
    except OSError:
        return ""
    return f"{about.st_size} {about.st_mtime_ns} {about.st_ctime_ns} {about.st_ino}"
