"""Runs made of hand-written rows, for every room's tests."""

import os
import re
import shutil
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from layout import faults

from pipeprof.record import store
from pipeprof.record.run import Manifest, Run
from pipeprof.record.schema import BY_NAME

pytest_plugins = ["boundary", "skips"]

# How long an example takes is the machine's affair: a test fails for what comes out. The examples are the same each
# time, so that a test which passed for a change passes for it again; `make fuzz` draws new ones.
settings.register_profile(
    "repeatable",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("PIPEPROF_NEW_EXAMPLES") != "1",
)
settings.load_profile("repeatable")


RUN_ID = "20260101T000000-abcdef"


@pytest.fixture
def own_cache(tmp_path_factory, monkeypatch):
    """What is imported or computed is kept for this test alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="session", autouse=True)
def _no_wait_for_the_disk():
    """Nothing that these processes write has to outlive a loss of power, and waiting for the disk takes longest of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _file: None)
        yield


def write_run(folder, tables, run_id=RUN_ID, **facts):
    """A run folder from {table: [{column: value}]}; `rep` and `rank` are 0 and other columns null when not given.

    `facts` are of the manifest.
    """
    run = Run(folder, Manifest(run_id=run_id, started_at="2026-01-01T00:00:00Z", pipeprof_version="0", **facts))
    folder.mkdir(parents=True)
    for name, rows in tables.items():
        columns = BY_NAME[name].column_names
        unknown = {key for row in rows for key in row} - {"rep", "rank", *columns}
        assert not unknown, f"not columns of {name}: {unknown}"
        places = sorted({(row.get("rep", 0), row.get("rank", 0)) for row in rows})
        for rep, rank in places:
            here = [row for row in rows if (row.get("rep", 0), row.get("rank", 0)) == (rep, rank)]
            store.write(run, name, rep, rank, [[row.get(column) for column in columns] for row in here])
    run.save()
    return run


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(7200))  # minutes on a quiet machine: only what hangs is a failure


@pytest.fixture(autouse=True)
def _plain_width(monkeypatch):
    """Text is as wide as without a terminal, however wide the one is that the tests run in."""
    monkeypatch.delenv("COLUMNS", raising=False)


def runs_in(folder):
    """`make(tables, **facts)` writes a new run with an id of its own into the folder, see `write_run`."""
    numbers = count()

    def make(tables, **facts):
        number = next(numbers)
        return write_run(folder / f"run{number}", tables, RUN_ID if number == 0 else f"{RUN_ID}{number}", **facts)

    return make


@pytest.fixture
def make_run(tmp_path):
    """`make_run(tables)` writes a new run folder."""
    return runs_in(tmp_path)


@pytest.fixture(scope="module")
def make_shared_run(tmp_path_factory):
    """The same for what all tests of a file only read."""
    return runs_in(tmp_path_factory.mktemp("shared"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Chromium, of the system."""
    sync_api = pytest.importorskip("playwright.sync_api")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        assert not os.environ.get("PIPEPROF_BROWSER_REQUIRED"), "no Chromium was found"
        pytest.skip("needs Chromium")
    with sync_api.sync_playwright() as play:
        started = play.chromium.launch(
            executable_path=program,
            args=["--no-sandbox"],
            env={**os.environ, "HOME": str(tmp_path_factory.mktemp("browser"))},  # it keeps settings there
        )
        yield started
        started.close()


DRAWN = "() => [...document.querySelectorAll('.chart')].every((one) => one.dataset.drawn)"


@pytest.fixture
def opened(browser, tmp_path, request, barriers):
    """`opened(html, width, scheme)` shows a page whose charts are drawn, and which is free of barriers by axe-core's rules,
    with nothing cut off or on top of something else.

    At the end it has neither complained nor asked for anything. With PIPEPROF_SCREENSHOTS=FOLDER a picture of it is kept.
    """
    pages, complaints, numbers = [], [], count()

    def load(text, width=1000, scheme="light"):
        path = tmp_path / f"page{next(numbers)}.html"
        path.write_text(text, encoding="utf-8")
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        pages.append(page)
        page.set_default_timeout(30_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda asked: asked.url == path.as_uri() or complaints.append(asked.url))
        page.goto(path.as_uri())
        page.wait_for_function(DRAWN)
        keep_pictures(page, f"{request.node.name}-{path.stem}")
        assert barriers(page) == []
        assert faults(page) == []
        return page

    yield load
    for page in pages:
        page.close()
    assert complaints == []


def keep_pictures(page, name):
    """Of the whole page, narrow and wide, light and dark, where somebody wants to look at it; then it is as it was."""
    folder = os.environ.get("PIPEPROF_SCREENSHOTS")
    if not folder:
        return
    Path(folder).mkdir(parents=True, exist_ok=True)
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name)
    before = page.viewport_size
    for width in (400, 1000, 1600):
        page.set_viewport_size({"width": width, "height": 900})
        page.reload()  # charts are as wide as the page was when they were drawn
        page.wait_for_function(DRAWN)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=Path(folder) / f"{plain}-{width}-{scheme}.png", full_page=True)
    page.emulate_media()
    page.set_viewport_size(before)
    page.reload()
    page.wait_for_function(DRAWN)


@pytest.fixture(scope="session")
def barriers():
    """`barriers(page)`: what keeps people who do not see, or use no mouse, from using it: a line for each place.

    By the rules of axe-core.
    """

    def of(page):
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(page).response["violations"]
        return [f"{one['id']}: {node['target']}: {node['failureSummary']}" for one in found for node in one["nodes"]]

    return of
