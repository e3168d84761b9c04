"""The pages of a dozen kinds of run in Chromium, at three widths, light and dark: `opened` says what is wrong."""

from pathlib import Path

import megengine_files
import npu_job
import page_cost
import pytest
from archive import unpack
from click.testing import CliRunner
from copies import copy_tree
from documents import FINAL, PATCH, SEEN, trial, tuned
from layout import unreached
from painting import first_paint_s

from pipeprof.cli import cli
from pipeprof.report import document, tune_text
from tests.unit.report.conftest import steps

pytestmark = pytest.mark.slow  # starts a browser

TESTS = Path(__file__).resolve().parents[2]
LAUNCHES = TESTS / "real" / "gpu" / "launches_small.pt.trace.json.gz"
MOST_BYTES = 2 << 20  # of a page
MOST_PAINT_S = 0.3  # CPU, until something of it is seen


def said(*words):
    done = CliRunner().invoke(cli, [str(word) for word in words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.output


def page_of(run):
    return said("report", run, "--format", "html")


def imported(source, folder):
    said("import", source, "-o", folder)
    return page_of(folder)


def stored(name):
    return lambda folder, _make_run: page_of(copy_tree(TESTS / "real" / "captures" / name, folder / "run"))


def tutorial(name, folder):
    unpack(TESTS / "docs" / "captures" / f"{name}.tar.xz", folder / name)
    return folder / name


def long_of(count, ranks):
    return lambda folder, _make_run: page_of(page_cost.make_run(folder / "run", count, ranks).path)


def made(state="complete", **tables):
    return lambda _folder, make_run: page_of(make_run(tables, state=state).path)


def npu(folder, _make_run):
    npu_job.write(folder / "job")
    return imported(folder / "job", folder / "run")


def megengine(folder, _make_run):
    return imported(megengine_files.write(folder / "profile.json", megengine_files.profile()), folder / "run")


def compare(folder, _make_run):
    return said("compare", tutorial("slow", folder), tutorial("fast", folder), "--format", "html")


def tune(_folder, _make_run):
    trials = [trial(verdict) for verdict in ("accepted", "no_gain", "slower")]
    content = tuned("proven", FINAL, trials, patch=PATCH, seen=SEEN)
    return document.text(tune_text.document(content, ["patch.diff", "settings.json"], "pipeprof-tune"), "html")


PAGES = {
    "input-bound": lambda folder, _make_run: page_of(tutorial("slow", folder)),
    "host-bound": stored("2.10-pynative"),
    "64 ranks": long_of(300, 64),
    "100,000 steps": long_of(100_000, 1),
    "partial": made("partial", step=steps()),
    "one step": made(step=steps(count=1)),
    "no pipeline": made(step=steps()),
    "torch": lambda folder, _make_run: imported(LAUNCHES, folder / "run"),
    "Ascend": npu,
    "MegEngine": megengine,
    "compare": compare,
    "tune": tune,
}


@pytest.mark.parametrize("kind", PAGES)
def test_a_page_is_whole_at_every_width_light_and_dark(kind, browser, opened, barriers, tmp_path, make_run):
    text = PAGES[kind](tmp_path, make_run)
    assert len(text.encode()) <= MOST_BYTES
    path = tmp_path / "painted.html"
    path.write_text(text, encoding="utf-8")
    assert min(first_paint_s(browser, path) for _ in range(2)) <= MOST_PAINT_S
    for width in (400, 1000, 1600):
        page = opened(text, width)
        assert page.locator("h1").count() == 1
        page.emulate_media(color_scheme="dark")
        assert barriers(page) == []
        assert width != 1000 or unreached(page) == []
