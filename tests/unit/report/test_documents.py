"""A document says the same in every format that people read, and its page opens in Chromium without a complaint."""

import html
import re
from html.parser import HTMLParser

import pytest
from documents import DOCUMENTS
from hostile import check_html
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeprof import escape
from pipeprof.report import document, table
from pipeprof.report.document import Document
from pipeprof.report.sections import Block, Section

WIDE = 4000  # columns, in which nothing is wrapped or left out


class Words(HTMLParser):
    """The text of a page, and the titles that have in full what is cut in its middle."""

    def __init__(self, page):
        super().__init__()
        self.found = ""
        self.feed(page)

    def handle_starttag(self, _tag, attrs):
        self.found += dict(attrs).get("title", "")

    def handle_data(self, data):
        self.found += data


def solid(text):
    """Without what a format lays out by: blanks, line breaks, and the marks of code."""
    return "".join(text.split()).replace("`", "").replace("¦", "|")


def shown(found, form):
    """All that a format shows of a document, as plain text."""
    if form == "terminal":
        return solid(table.plain_text(lambda console: document.draw(console, found), WIDE))
    text = document.text(found, form)
    if form == "html":
        return solid(Words(text).found)
    return solid(html.unescape(re.sub(r"\\([^A-Za-z0-9\s])", r"\1", text.replace("\u200b", "").replace("<br>", "\n"))))


def texts(found, form):
    """Every text of a document, as escaping shows it; what is folded is not on a terminal."""
    yield found.title
    for section in found.sections:
        if section.folded and form == "terminal":
            continue
        if section.says_something:
            yield from (section.title, *section.strong, *section.notes, *section.code)
        for block in section.blocks:
            yield from (*block.caption, *block.head)
            yield from (line for row in block.rows for cell in row for line in cell.split("\n"))


@pytest.mark.parametrize("form", ["terminal", "markdown", "html"])
@pytest.mark.parametrize("verb", DOCUMENTS)
def test_every_format_has_every_sentence_and_every_cell(verb, form):
    found = DOCUMENTS[verb]()
    text = shown(found, form)
    assert len(list(texts(found, form))) > 2
    for one in texts(found, form):
        assert solid(one) in text, one


# What markup, a shell or a log means something to, but no backslash in front of a sign: Markdown's is taken away again.
ANY = st.lists(
    st.sampled_from([*"aé漢 <>&|*_[]~$#@:+-=.!()'\"\t\x1b\u202e", "://", "1. "]), min_size=1, max_size=12
).map("".join)


@st.composite
def any_document(draw):
    columns = draw(st.integers(1, 4))
    tall = draw(st.booleans())
    cell = ANY if not tall else st.lists(ANY.map(escape.line), min_size=1, max_size=3).map("\n".join)
    rows = st.lists(st.lists(cell, min_size=columns, max_size=columns), max_size=3)
    block = Block([draw(ANY) for _ in range(columns)], draw(rows), tall=tall, caption=draw(st.lists(ANY, max_size=2)))
    some = st.lists(ANY, max_size=2)
    section = Section(draw(ANY), draw(some), draw(some), [block], code=draw(some), folded=draw(st.booleans()))
    return Document(draw(ANY), [section])


@pytest.mark.parametrize("form", ["terminal", "markdown", "html"])
@settings(max_examples=50, deadline=None)
@given(found=any_document())
def test_no_text_is_lost_or_obeyed_in_any_format(form, found):
    text = shown(found, form)
    for one in texts(found, form):
        said = escape.terminal(one)
        assert solid(re.sub(r"\\(?=[^A-Za-z0-9\s])", "", said) if form == "markdown" else said) in text
    if form == "html":
        check_html(document.text(found, "html"))


@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("verb", DOCUMENTS)
def test_its_page_is_whole_on_a_narrow_and_on_a_wide_screen(verb, width, opened):
    page = opened(document.text(DOCUMENTS[verb](), "html"), width, "dark" if width == 400 else "light")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("h1").count() == 1
