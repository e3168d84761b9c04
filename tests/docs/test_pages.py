"""Every command of the README and of docs/ runs, or is at least understood; every output shown is today's."""

import pytest
import yaml
from blocks import blocks, commands
from play import PAGES, ROOT, parse, play
from workspace import make

NOT_RUN = 18
"""Blocks that may be exempt from running: they install, need a network, a server or a repository of the reader's own."""


GENERATED = (
    "queries.md", "cli.md", "tables.md", "rules.md", "results.md", "accuracy.md", "gate-numbers.md", "decisions/index.md",
)  # fmt: skip
"""Pages that programs write: tools/make_docs.py, and those that measure."""

DOCS = ROOT / "docs"
MOST = {"How to": 60, "Explanation": 150}
"""Lines of a page in these parts of the site."""


def with_blocks(*languages):
    return [page for page in PAGES if any(block.language in languages for block in blocks(page))]


@pytest.mark.parametrize("page", with_blocks("sh", "console", "python"), ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_run_and_print_what_it_shows(page, tmp_path):
    played = play(page, make(tmp_path / "pages"))
    assert played.failures == []
    assert page.read_text(encoding="utf-8") == played.text, "run `make docs` and read the difference"


def test_commands_are_written_where_they_are_run():
    """A block of plain text is not run, so no command may hide in one."""
    hidden = [
        f"{page.relative_to(ROOT)}:{block.start + 1}"
        for page in PAGES
        if page.name != "cli.md"  # its plain blocks are usage lines
        for block in blocks(page)
        if block.language not in {"sh", "console"} and any(line.startswith(("pipeprof ", "$ ")) for line in block.lines)
    ]
    assert hidden == []


def test_few_blocks_are_exempt_from_running():
    exempt = [f"{page.name}: {block.reason}" for page in PAGES for block in blocks(page) if block.remark == "not run"]
    assert len(exempt) <= NOT_RUN, exempt


def test_a_wrong_option_in_a_page_is_noticed(tmp_path):
    page = ROOT / "docs" / "howto" / "profile.md"
    known = [command for block in blocks(page) for command in commands(block) if command.trains]
    assert known
    with pytest.raises(Exception, match="No such option"):
        parse([*known[0].calls[0][1:2], "--no-such-option", "--", "python", "train.py"])


def test_pages_are_short_enough_to_be_read():
    def lines(page):
        return len(page.read_text(encoding="utf-8").splitlines())

    navigation = yaml.safe_load((ROOT / "tools/mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2])
    parts = {title: inside for part in navigation for title, inside in part.items()}
    pages = [(title, page) for title in MOST for entry in parts[title] for page in entry.values()]
    assert len(pages) > 30
    assert [(page, MOST[title]) for title, page in pages if lines(DOCS / page) > MOST[title]] == []
    assert sum(lines(page) for page in DOCS.rglob("*.md") if page not in {DOCS / name for name in GENERATED}) <= 6000
