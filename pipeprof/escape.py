r"""The one door for text that is not ours: names, commands, messages, notes of other programs.

One function for each kind of output. What comes out of it is shown and obeyed by nobody: no terminal, no CI log, no
Markdown renderer, no spreadsheet, no XML parser. Characters that cannot be seen, or that turn the reading direction,
are written as Python writes them (`\x1b`); what a log would take for a command has its second sign written so
(`:\x3aerror::`). Tables in Parquet and the values in JSON stay as they are. Standard library only.
"""

from __future__ import annotations

import json as _json
import re
import shlex
from collections.abc import Iterable
from typing import Any

_PLANE_ENDS = "".join(chr(plane << 16 | 0xFFFE) + chr(plane << 16 | 0xFFFF) for plane in range(1, 17))
# No sign of their own, or another reading direction, or nothing that may be written at all (halves of pairs).
_ABOVE_ASCII = (
    "\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ud800-\udfff\ufdd0-\ufdef\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff" + _PLANE_ENDS
)
# Joiners belong to emoji and to some scripts; beside a letter of ASCII they only hide.
_JOINER = "(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])"
_UNSEEN = re.compile(f"[\x00-\x1f{_ABOVE_ASCII}]|{_JOINER}")
_BLANK = re.compile("[\t-\r\x85\u2028\u2029]+")
_COMMANDS = (
    "add-mask|add-matcher|add-path|debug|echo|endgroup|error|group|internal-|notice|remove-matcher|save-state|set-env|"
    "set-output|stop-commands|warning"
)
_LOG = re.compile(rf"(?<!\S)::|::(?={_COMMANDS})|##(?=(?:vso|teamcity)?\[)", re.IGNORECASE)
_IN_QUOTES = re.compile(
    rf"[{_ABOVE_ASCII}]|{_JOINER}|(?<=#)#(?=(?:vso|teamcity)?\[)|(?<=:):(?={_COMMANDS})", re.IGNORECASE
)
_FORMULA = re.compile("\\s*[=+\\-@\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?|nan)", re.ASCII | re.IGNORECASE)
_CODE = re.compile("(`[^`]+`)")
_MARKED = re.compile(r"[\\`*\[\]<>~|$]|(?<![^\W_])_|_(?![^\W_])")  # `_` within a word is no markup
_MENTION = re.compile(r"([@#])(?=\w)|\b(GH-)(?=\d)", re.IGNORECASE)
_BEGIN = re.compile(r"^(?:[-+=#]+(?=\s)|[-=#]{2,}$|#$|(\d+)(?=[.)](?:\s|$)))")
_ZERO_WIDTH = "\u200b"


def line(text: object) -> str:
    """Text on one line, for a terminal or a log: line breaks and tabs become blanks."""
    words = str(text)
    if words.isprintable() and "::" not in words and "##" not in words:
        return words
    return _visible(_BLANK.sub(" ", words))


def terminal(text: str) -> str:
    """As `line`, but for text that has several lines on purpose."""
    return "\n".join(map(line, text.replace("\r\n", "\n").split("\n")))


def csv_cell(value: Any) -> Any:
    r"""A cell: numbers as they are; before text that a spreadsheet would take for a formula an apostrophe.

    Line breaks and tabs are written `\n`, `\t`: a cell is one line.
    """
    if value is None or isinstance(value, (bool, int, float)):
        return value
    text = _visible(str(value))
    return "'" + text if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def markdown(text: object) -> str:
    """Text as text, in GitHub's Markdown: no markup, link, mention or reference. What is in backticks stays code."""
    parts = _CODE.split(line(text).strip())
    return "".join(_span(part) if index % 2 else _plain(part) for index, part in enumerate(parts))


def markdown_code(text: object, *, in_table: bool = False) -> str:
    """A name as code. Inside a table a bar must be escaped even there."""
    words = line(text).strip().replace("`", "'") or "-"
    return "`" + (re.sub(r"\\+(?=\|)", "/", words).replace("|", "\\|") if in_table else words) + "`"


def markdown_block(lines: Iterable[str], language: str = "text") -> list[str]:
    """Lines as a block of code, behind a fence that none of them can close."""
    shown = [line(one) for one in lines]
    longest = max((len(run) for one in shown for run in re.findall("`+", one)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence + language, *shown, fence]


def markdown_summary(text: object) -> str:
    """What stands before a fold: HTML, in which no markup is read, but people are mentioned."""
    return _MENTION.sub(rf"\g<0>{_ZERO_WIDTH}", xml(text))


def html(text: object) -> str:
    """Text between tags, or an attribute's value in quotes."""
    return xml(text).replace('"', "&quot;").replace("'", "&#x27;")


def html_words(sentence: object) -> str:
    """As `html`; what stands between two backticks is set as code."""
    parts = html(sentence).split("`")
    if len(parts) % 2 == 0:
        return "`".join(parts)
    return "".join(f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts))


def xml(text: object) -> str:
    """Text between tags of XML, as in SVG and JUnit."""
    return line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def xml_attribute(text: object) -> str:
    """An attribute's value with its quotes."""
    return '"' + xml(text).replace('"', "&quot;") + '"'


def log_data(text: object) -> str:
    """The message of a workflow command, as the runner unescapes it."""
    return line(text).replace("%", "%25")


def log_property(text: object) -> str:
    """A property of a workflow command, such as its title."""
    return log_data(text).replace(":", "%3A").replace(",", "%2C")


def json(encoded: str) -> str:
    r"""JSON with what cannot be seen written as `\u202e`: the same values, and nothing that a terminal or log obeys."""
    plain = encoded.isascii() and not any(sign in encoded for sign in ("##", "::", "\x7f"))
    return encoded if plain else _IN_QUOTES.sub(_as_json, encoded)


def json_string(text: object) -> str:
    """A name in a trace or a flame graph, which viewers show as it is: a JSON string of one visible line."""
    return _json.dumps("" if text is None else line(text), ensure_ascii=False)


def shell_word(word: str) -> str:
    r"""A word to be pasted into a shell (bash, zsh): quoted, `$'\x1b'` where it holds what cannot be shown."""
    if line(word) == word:
        return shlex.quote(word)
    quoted = word.replace("\\", "\\\\").replace("'", "\\'")
    return "$'" + _LOG.sub(_second_hidden, _UNSEEN.sub(lambda match: _in_shell(match[0]), quoted)) + "'"


def as_argument(path: str) -> str:
    """A path as a word that no program takes for an option: `./-x`."""
    return f"./{path}" if path.startswith("-") else path


def command(words: Iterable[str]) -> str:
    """A command to be pasted into a shell, on one line."""
    return " ".join(map(shell_word, words))


def _visible(text: str) -> str:
    """Every character can be seen, and no log finds a command."""
    if not text.isprintable():
        text = _UNSEEN.sub(lambda match: _as_python(match[0]), text)
    return _LOG.sub(_second_hidden, text) if "::" in text or "##" in text else text


def _as_python(sign: str) -> str:
    code = ord(sign)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no text
        return f"\\x{code - 0xDC00:02x}"
    return sign.encode("unicode_escape").decode("ascii")


def _second_hidden(match: re.Match[str]) -> str:
    return f"{match[0][0]}\\x{ord(match[0][1]):02x}"


def _as_json(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _in_shell(sign: str) -> str:
    r"""As Python writes it, but that a shell takes `\x80` and on for a byte."""
    return f"\\u{ord(sign):04x}" if "\x80" <= sign <= "\xff" else _as_python(sign)


def _span(span: str) -> str:
    """Code within a sentence, which may stand in a table."""
    return span.replace("|", "\u00a6")


def _plain(words: str) -> str:
    words = _MARKED.sub(r"\\\g<0>", words.replace("&", "&amp;"))
    words = _MENTION.sub(rf"\g<0>{_ZERO_WIDTH}", words)  # a mention would notify people
    words = words.replace("://", ":\\//")  # a bare address would become a link
    words = re.sub(r"(?i)\bwww\.", lambda match: match[0][:-1] + "\\.", words)
    return _BEGIN.sub(lambda match: match[0] + "\\" if match[1] else "\\" + match[0], words)
