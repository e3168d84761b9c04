"""Names that something obeys, and what must hold for texts that they were put into."""

import base64
import csv
import hashlib
import io
import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

from markdown_it import MarkdownIt

NAMES = [
    "\x1b[2J\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\",
    "\x9b31mred",
    "\x9d0;title\x9c",
    "bell\x07back\x08del\x7f",
    "over\rwritten",
    "two\nlines",
    "win\r\nlines",
    "tab\tbed",
    "feed\x0bvert\x0cform",
    "nul\x00byte",
    "next\x85line",
    "line\u2028sep\u2029par",
    "rtl\u202eexe.gpj",
    "iso\u2066late\u2069",
    "mark\u200e\u200f\u061c",
    "zero\u200bwidth\u2060\ufeff",
    "joi\u200dner\u200c",
    "soft\xadhyphen",
    "tag\U000e0041\U000e007f",
    "half \ud800 pair",
    "byte \udcff",
    "not\ufffechar\uffff",
    "::error::pwned",
    "::set-output name=x::y",
    "x\n::error file=a,line=1::pwned",
    "  ::add-mask::a",
    "op::warning::late",
    "##[error]pwned",
    "##vso[task.setvariable variable=x]y",
    "##teamcity[buildStop]",
    "100%0A::error::x",
    "@octocat and @org/team",
    "fixes #1, GH-2, org/repo#3",
    "a@b.example",
    "https://evil.example www.evil.example",
    "[link](https://evil.example)",
    "![image](https://evil.example/x.png)",
    "[ref]: https://evil.example",
    "<img src=//evil.example onerror=alert(1)>",
    "<script>alert(1)</script>",
    "</td></tr></table><b>",
    "<!-- comment",
    "--> out",
    "]]> <![CDATA[ x",
    "&lt;b&gt; &amp; &#x3c;",
    "\"' onmouseover='x",
    "a|b|c",
    "\\|back\\",
    "# heading",
    "- item",
    "1. item",
    "> quote",
    "---",
    "```\nfenced",
    "~~~",
    "`code` and ` one",
    "``two`` `",
    "*bold* _under_ ~~gone~~ $math$",
    "    indented",
    "=cmd|' /C calc'!A0",
    "+1+cmd",
    "-2+3",
    "@SUM(A1)",
    "\t=1+1",
    "\uff1d1+1",
    "{macro:x} [~user] !img!",
    "[bold]rich[/bold] [red]",
    'quote"comma,semi;colon',
    "👩\u200d👩\u200d👧 ❤\ufe0f\u200d🔥",
    "größer 漢字",
    "$(touch x) `id` ; rm -rf / && echo",
    "'; DROP TABLE op; --",
    "../../etc/passwd",
    "%s %d {0} {name}",
    "",
    " ",
    "long" * 2000,
]
MANY = " ".join(name for name in NAMES if len(name) < 1000)

_UNSEEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\ufffe\uffff"
    "\U000e0000-\U000e0fff]|(?<=[\x00-\x7f])[\u200c\u200d]"
)
_COMMAND = re.compile(r"::(error|warning|notice) title=[^:,\r\n]*::[^\r\n]*")
_OF_PAGES = frozenset(("html", "head", "meta", "title", "style", "body", "main", "nav", "h1", "h2", "p", "strong", "table", "thead",
    "tbody", "tr", "th", "td", "ul", "li", "code", "pre", "span", "small", "br", "wbr", "figure", "figcaption", "svg", "rect",
    "line", "circle", "polyline", "div", "caption", "h3", "details", "summary", "section", "dl", "dt", "dd", "ol", "a",
    "text", "article", "polygon"))  # fmt: skip
_OF_MARKDOWN = re.compile(r"</?(?:details|summary)>|<br>|<!-- pipeprof-gate:[\w.-]* -->")


def check_log(text):
    """Nothing in it moves a cursor, turns the reading direction, or commands a CI log."""
    found = _UNSEEN.search(text)
    assert found is None, repr(text[max(found.start() - 40, 0) : found.end() + 40])
    for line in text.split("\n"):
        assert not re.match(r"\s*::", line), repr(line[:200])
        assert not re.search(r"##(vso|teamcity)?\[|::(error|warning|notice|debug|add-mask|set-output|group)\b", line), (
            repr(line[:200])
        )


def check_csv(text):
    check_log(text)
    rows = list(csv.reader(io.StringIO(text)))
    assert len({len(row) for row in rows}) == 1
    assert len(rows) == text.count("\n")
    for row in rows:
        for cell in row:
            assert not re.match(r"\s*[=+\-@\uff1d]", cell) or re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", cell), cell


def check_json(text):
    check_log(text)
    return json.loads(text)


def check_shown_json(text):
    """JSON for a viewer, which shows every name as it is."""
    for words in _strings(check_json(text)):
        check_log(words)
        assert "\n" not in words


def _strings(value):
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _strings(part)


def check_markdown(text):
    check_log(text.replace("\u200b", ""))
    code = set()
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in table.splitlines()}) == 1, table
    tokens = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(text)
    assert sum(token.type == "table_open" for token in tokens) == len(tables)
    for token in _tokens(tokens):
        assert token.type not in (
            "link_open",
            "image",
            "s_open",
            "code_block",
            "blockquote_open",
            "hr",
            "ordered_list_open",
        ), token
        if token.type in ("html_block", "html_inline"):
            assert not re.sub(r"\s", "", _OF_MARKDOWN.sub("", token.content)) or token.content.startswith(
                "<details>"
            ), token.content
            assert set(re.findall(r"</?\w+", token.content)) <= {
                "<details",
                "</details",
                "<summary",
                "</summary",
                "<br",
            }
        if token.type == "text":
            found = re.search(r"@\w|#\d|\bGH-\d|://\w|\bwww\.\w", token.content, re.IGNORECASE)
            assert found is None or "//" in found[0] or "www" in found[0], token.content
        if token.type in ("code_inline", "fence"):
            code.update(token.content.splitlines())
    for words in sorted(code - {""}, key=len, reverse=True):
        text = text.replace(words, "").replace(words.replace("|", "\\|"), "")
    found = re.search(r"(?:https?://|\bwww\.)\w.{0,99}", text)  # would be linked
    assert found is None, found[0][:500]


def _tokens(tokens):
    for token in tokens:
        yield token
        yield from _tokens(token.children or ())


class _Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        # a link within the page leads nowhere else
        self.attributes |= {name for name, value in attrs if name != "href" or not re.fullmatch("#[a-z0-9-]+", value)}


def check_html(text):
    text = without_scripts(text)
    check_log(text)
    page = _Page(text)
    assert page.tags <= _OF_PAGES, page.tags - _OF_PAGES
    assert not {name for name in page.attributes if name.startswith("on") or name in ("src", "href")}


def without_scripts(text):
    """The page without its one script, which its policy names by a hash, and without its data, whose strings are inert."""
    policies = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    policy = policies[0] if policies else ""
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert not scripts or policy.startswith("default-src 'none'; ")
    assert re.findall(r"script-src ([^;]*)", policy) == [f"'sha256-{one}'" for one in hashes]
    assert len(scripts) <= 1
    data = re.compile(r'<script type="application/json" data-chart="[a-z0-9-]+" data-margin="\d+">(.*?)</script>')
    for one in data.findall(text):
        assert not re.search("[<>&]", one)
        for words in _strings(json.loads(one)):
            check_log(words)
    return data.sub("", re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL))


def check_xml(text):
    check_log(text)
    ET.fromstring(text)  # noqa: S314 - our own text


def check_annotations(text):
    lines = text.splitlines()
    assert lines
    for line in lines:
        assert _COMMAND.fullmatch(line), line
        check_log(line.partition("::")[2].partition("::")[2])
        assert not re.search(r"%(?!25|3A|2C)", line), line
