"""The site's answers, as text: what each address shows. Only the folder's own runs can be named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

from pipeprof.errors import RunError, UsageError
from pipeprof.escape import as_argument, shell_word
from pipeprof.experiment.compare import compare_places
from pipeprof.experiment.history import history_of
from pipeprof.record.checksums import refuse_changed
from pipeprof.record.listing import Listed, runs_in
from pipeprof.record.lock import is_running
from pipeprof.record.run import MANIFEST, Run
from pipeprof.record.text import printable
from pipeprof.report import history as history_rows
from pipeprof.report import html, runs
from pipeprof.report.build import build
from pipeprof.report.compare import sections as compare_sections
from pipeprof.report.compare.limits import with_limits
from pipeprof.report.document import text
from pipeprof.report.fleet import sections as fleet_sections
from pipeprof.report.fleet.content import content_of
from pipeprof.report.fleet.gather import gather, once_each
from pipeprof.serve import live, pages

MOST_ROWS = 10  # of a list on the page about all runs
MOST_KEPT = 16  # pages of runs that are not made anew when they are asked for again


class Site:
    """The pages of a folder of runs. Nothing is written; what is recorded while it serves is seen."""

    def __init__(self, folder: Path) -> None:
        """Raises RunError when there is no such folder."""
        self.folder = folder
        self._cache: dict[tuple[Any, ...], str] = {}
        self._watched: dict[str, live.Live] = {}  # each knows when it looked and judged last: both cost CPU
        self._one = Lock()  # a page takes a core and much memory: one at a time
        runs_in(folder)

    def home(self) -> str:
        """The list of runs."""
        with self._one:
            listed = runs_in(self.folder, linked=False)
            rows, looks = self._named(listed), self._looks(listed)
        return pages.listing(self.folder, rows, looks, self._mark(listed, looks))

    def now(self) -> str:
        """What is recorded now, as the home page shows it."""
        with self._one:
            listed = runs_in(self.folder, linked=False)
            looks = self._looks(listed)
            rows = self._named([one for one in listed if self._name(one) in looks])
        return "\n".join(live.place("/live", self._mark(listed, looks), pages.recorded(rows, looks)))

    def _named(self, listed: Sequence[Listed]) -> list[dict[str, Any]]:
        rows = zip(runs.rows_of(listed), listed, strict=True)
        return [row | {"path": self._name(one), "name": self._name(one)} for row, one in rows]

    def _looks(self, listed: Sequence[Listed]) -> dict[str, live.Shown]:
        """A look at each run that is recorded, by name."""
        looks = {self._name(one): self._look(one.run) for one in listed if one.run and _is_recorded(one.run)}
        return {name: look for name, look in looks.items() if look.is_recorded}

    def _look(self, run: Run) -> live.Shown:
        return self._watched.setdefault(run.manifest.run_id, live.Live(run)).look()

    def _mark(self, listed: Sequence[Listed], looks: Mapping[str, live.Shown]) -> str:
        """Another text when a run was added, removed or ended."""
        about = [(self._name(one), one.run and one.run.manifest.state, self._name(one) in looks) for one in listed]
        return sha256(repr(about).encode()).hexdigest()[:16]

    def run(self, name: str) -> str:
        """The report on a run; of one that is still recorded, what is known by now."""
        one = self._listed(name)
        if one.run is None:
            raise RunError(one.problem)
        if one.run.manifest.state == "running":
            if is_running(one.run):
                with self._one:
                    return pages.now(name, self._look(one.run))
            raise RunError(runs.CUT_OFF, f"pipeprof report {shell_word(as_argument(str(one.path)))}")
        refuse_changed(one.run)
        run = one.run
        return self._page("run", (one,), lambda: html.of_run(run, build(run)))

    def now_of(self, name: str) -> str:
        """What is known by now of a run, as its page shows it while it is recorded."""
        run = self._listed(name).run
        if run is None or not _is_recorded(run):
            return "\n".join(live.place("", "", ()))
        with self._one:
            shown = self._look(run)
        return "\n".join(live.place("", shown.look.state, live.whole(shown)))

    def compare(self, names: Sequence[str]) -> str:
        """Two runs, the older as the base."""
        if len(set(names)) != 2:
            raise UsageError(f"expected two runs to compare, found {len(set(names))}", "tick two runs of the list")
        newer, older = sorted(map(self._listed, set(names)), key=lambda one: one.began, reverse=True)
        for one in (older, newer):
            if one.run is not None and not one.run.is_settled():  # what compares them would recover it
                raise RunError(runs.CUT_OFF, f"pipeprof report {shell_word(as_argument(str(one.path)))}")
        places = str(older.path), str(newer.path)
        return self._page("compare", (older, newer), lambda: _comparison(*places))

    def history(self) -> str:
        """All runs of the folder as series."""
        made = runs_in(self.folder, linked=False)
        return self._page("history", made, self._history_page)

    def _history_page(self) -> str:
        return text(history_rows.document(history_of(str(self.folder), "", _nobody, recover=False)), "html")

    def fleet(self) -> str:
        """What all runs below the folder lose, and because of what."""
        with self._one:
            unlisted: list[str] = []
            rows, twice = once_each(gather((self.folder,), _nobody, unlisted=unlisted.append))
            content = content_of(rows, [printable(str(self.folder))], MOST_ROWS, twice, unlisted)
        return pages.with_way_home(text(fleet_sections.document(content), "html"))

    def _listed(self, name: str) -> Listed:
        for one in runs_in(self.folder, linked=False):
            if self._name(one) == name:
                return one
        raise RunError(f"there is no run `{name}` in `{self.folder}`", "choose one of the list")

    def _name(self, one: Listed) -> str:
        return printable(one.path.name or one.path.resolve().name)

    def _page(self, kind: str, about: Sequence[Listed], make: Callable[[], str]) -> str:
        """The page, made anew when a run of it changed."""
        key = kind, *((str(one.path), one.run and one.run.manifest.run_id, _changed(one.path)) for one in about)
        with self._one:
            if key not in self._cache:
                self._cache[key] = pages.with_way_home(make())
            while len(self._cache) > MOST_KEPT:
                del self._cache[next(iter(self._cache))]
            return self._cache[key]


def _is_recorded(run: Run) -> bool:
    return run.manifest.state == "running" and is_running(run)


def _comparison(older: str, newer: str) -> str:
    return compare_sections.text(with_limits(compare_places(older, newer), newer), "html")


def _changed(folder: Path) -> tuple[int, int]:
    """Another value when the manifest was written anew."""
    about = folder.joinpath(MANIFEST).stat()
    return about.st_mtime_ns, about.st_size


def _nobody(_text: str) -> None:
    """Progress that nobody reads."""
