"""Every table of every verb shows whole cells at any width; and a table of any cells does."""

import ast
import csv
import io
import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from comparisons import comparison, hostile, metric
from copies import copy_tree
from documents import DOCUMENTS
from hypothesis import given, settings
from hypothesis import strategies as st
from kineto_files import op as trace_op
from kineto_files import write_trace
from megengine_files import profile, write
from once import reports_made_once
from table_reader import check, solid

import pipeprof
from pipeprof import escape
from pipeprof.cli import cli
from pipeprof.inprocess import averages
from pipeprof.read.spool.finish import open_run
from pipeprof.report import table
from pipeprof.report.compare import sections as compare_sections
from pipeprof.report.document import draw as draw_document
from pipeprof.report.sections import Block

pytestmark = pytest.mark.slow  # every table of every verb

WIDTHS = (60, 80, 100, 120, 200)
CAPTURES = Path(__file__).parents[1] / "real" / "captures"
SWEEP = """table_id,row_in_table,variant,options,is_baseline,configure_ms,warmup_first_ms,warmup_second_ms,inference_ms
a,1,base,,1,1.0,2.0,2.0,10.0
a,2,fast with a rather long name of its own,--fast,0,1.0,30.0,2.0,5.0
a,3,slow,--slow,0,1.0,2.0,2.0,50.0
"""
# Calls that print tables, by verb. A verb that is neither here nor below fails a test.
CALLS = {
    "report": ["report graph --full", "report ranks --full", "report pynative --full --top 40"],
    "runs": ["runs"],
    "fleet": ["fleet .", "fleet . --sql 'FROM fleet_run'"],
    "sql": ["sql ranks", "sql graph 'SELECT * FROM step LIMIT 30'", "sql ranks 'FROM op_info'", "sql ranks 'FROM span'",
            "sql ranks 'SELECT * FROM step LIMIT 1'", "sql ranks 'SELECT [1.5, 2.25] AS a, 1e300 AS b, NULL AS c'"],
    "ops": ["ops graph", "ops ranks --group-by shape", "ops ranks --group-by name --top 0", "ops profile.json -t 0",
            "ops profile.json --aggregate-by type --aggregate sum", "ops trace.json", "ops trace.json --group-by stack 3"],
    "memory": ["memory graph", "memory ranks"],
    "compare": ["compare pynative graph", "compare graph ranks"],
    "baseline": ["baseline list --root kept", "baseline show --root kept --workload demo",
                 "baseline show --root kept --workload demo --history"],
    "history": ["history demo --root kept", "history ."],
    "sweep": ["sweep --table table.csv", "sweep --table table.csv --steps 1000"],
}  # fmt: skip
# These print the tables of another verb, which the tests below give content of their own, or sentences only.
NO_CALL = {
    "ab": "the comparison", "qualify": "its own, below", "whatif": "its own, below", "headspace": "its own, below",
    "demo": "a story of fixed width", "collect": "sentences", "import": "sentences", "timeline": "a file",
    "stacks": "a file", "render": "Markdown and HTML", "completion": "a script", "verify": "its own, below",
    "status": "its own, below", "top": "sentences", "tune": "its own, below", "bisect": "its own, below",
    "compact": "sentences", "push": "sentences", "serve": "an address",
}  # fmt: skip
# Texts that are aligned by hand, and always fit: titles of ours beside one text or number, and the demo's own story.
BY_HAND = {
    "report/notebook.py", "report/answer/screen.py", "cli/verbs.py", "experiment/demo.py",
    "report/top.py", "report/pictures/bars.py",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Real captures as runs, other programs' profiles, a baseline with a history, a table of option sets."""
    found = tmp_path_factory.mktemp("tables")
    for name in ("graph", "pynative", "ranks"):
        copy_tree(CAPTURES / f"2.10-{name}", found / name)
        open_run(found / name)
    write(found / "profile.json", profile())
    shapes = {
        "Input Dims": [[8, 1, 128, 128], [6, 1, 3, 3], []],
        "Call stack": "train.py(7): <module>;net.py(12): forward",
    }
    events = [trace_op(f"aten::a_rather_long_name_{n}", 1 + 10 * n, 8, External=n, **shapes) for n in range(30)]
    write_trace(found / "trace.json", events)
    (found / "table.csv").write_text(SWEEP, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(found)
        for words in ("demo", "other"):
            CliRunner().invoke(cli, f"baseline write graph --root kept --workload {words}", catch_exceptions=False)
    return found


@pytest.fixture(scope="module", autouse=True)
def _once():
    with reports_made_once():
        yield


@pytest.fixture
def blocks(monkeypatch):
    """What is drawn: (block, lines, width)."""
    found = []
    draw = table.draw

    def watched(block, width, *words):
        lines = draw(block, width, *words)
        found.append((block, lines, width))
        return lines

    monkeypatch.setattr(table, "draw", watched)
    monkeypatch.setattr(averages, "draw", watched)
    return found


def test_every_verb_is_asked_for_its_tables():
    missing = set(cli.list_commands(click.Context(cli))) - set(CALLS) - set(NO_CALL)
    assert not missing, "add calls that print their tables to CALLS, or to NO_CALL why there are none"


@pytest.mark.parametrize("words", [words for calls in CALLS.values() for words in calls])
def test_each_cell_of_a_verb_is_whole(folder, blocks, monkeypatch, words):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    for width in WIDTHS:
        blocks.clear()
        done = CliRunner().invoke(cli, words, env={"COLUMNS": str(width)})
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert blocks, done.output
        lines = done.output.splitlines()
        for block, drawn, given_width in blocks:
            assert given_width == width
            assert all(line in lines for line in (*drawn.head, *drawn.body)), "what is drawn is not what is printed"
            check(block, drawn, width)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("content", [comparison(), hostile() | {"new": comparison()["new"]}, comparison(metrics=[
    metric(f"step_time_of_variant_{n}", base=1.5e9 * n, new=3.25e9 * n, p_value=1e-12) for n in range(1, 9)
])])  # fmt: skip
def test_each_cell_of_a_comparison_is_whole(blocks, content, width):
    table.plain_text(lambda console: draw_document(console, compare_sections.document(content)), width)
    assert blocks
    for block, drawn, _ in blocks:
        check(block, drawn, width)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("verb", DOCUMENTS)
def test_each_cell_of_a_document_is_whole(blocks, verb, width):
    document = DOCUMENTS[verb]()
    table.plain_text(lambda console: draw_document(console, document), width)
    assert len(blocks) == sum(len(section.blocks) for section in document.sections if not section.folded)
    for block, drawn, _ in blocks:
        check(block, drawn, width)


def test_each_cell_of_key_averages_is_whole(blocks):
    rows = [
        averages.Average(f"aten::{'very_' * n}long", n, 10**n, 10**n, "op", f"[[{n}, 128, 128]]", "train.py:7\nnet.py:12 " + "f" * 90)
        for n in range(1, 30)
    ]  # fmt: skip
    text = averages.KeyAverages(rows, shapes=True, stacks=True).table(row_limit=-1)
    ((block, drawn, width),) = blocks
    assert "\n".join((*drawn.head, *drawn.body)) in text
    check(block, drawn, width)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_number_of_a_query_is_shortened(folder, width):
    """Against CSV, which nothing lays out."""
    query = ["sql", str(folder / "graph"), "SELECT * FROM step ORDER BY step LIMIT 30"]
    cells = [
        list(row.values())
        for row in csv.DictReader(io.StringIO(CliRunner().invoke(cli, [*query, "--format", "csv"]).output))
    ]
    lines = CliRunner().invoke(cli, query, env={"COLUMNS": str(width)}).output.splitlines()
    rule = next(at for at, line in enumerate(lines) if line.startswith("─"))
    for row, line in zip(cells, lines[rule + 1 :], strict=False):
        shown = line.split()
        assert shown == [cell for cell in row if cell][: len(shown)]
        assert len(shown) > 5
    assert len(cells) > 4


def test_a_terminal_gets_100_rows_and_a_pipe_gets_all(folder, monkeypatch):
    words = ["sql", str(folder / "graph"), "SELECT i AS n FROM range(12345) AS t(i)"]
    piped = CliRunner().invoke(cli, words).output.splitlines()
    assert piped[-1] == "12,345 rows"
    assert len(piped) > 12345
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    shown = CliRunner().invoke(cli, words).output.splitlines()
    assert shown[-1] == "100 of 12,345 rows; --format csv shows all"
    assert len(shown) == 104


def test_table_is_another_name_of_the_format_for_terminals(folder):
    for verb in ("report", "sql", "ops", "memory"):
        words = [verb, str(folder / "graph")]
        usual = CliRunner().invoke(cli, words, catch_exceptions=False).output
        assert CliRunner().invoke(cli, [*words, "--format", "table"]).output == usual
        assert CliRunner().invoke(cli, [*words, "--format", "terminal"]).output == usual
    document = json.loads(CliRunner().invoke(cli, ["report", str(folder / "graph"), "--format", "json"]).output)
    assert document["schema_version"]


def test_nothing_else_lays_tables_out():
    root = Path(pipeprof.__file__).parent
    files = [path for room in ("report", "cli", "experiment", "inprocess") for path in (root / room).rglob("*.py")]
    found = {str(path.relative_to(root)) for path in files if _aligns(ast.parse(path.read_text(encoding="utf-8")))}
    assert found == BY_HAND
    assert len(files) > 100


def _aligns(tree):
    """Whether a file makes rich's tables, or pads texts itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rich.table"):
            return True
        if isinstance(node, ast.Attribute) and node.attr in ("ljust", "rjust"):
            return True
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            spec = "".join(str(part.value) for part in node.format_spec.values if isinstance(part, ast.Constant))
            if "<" in spec or ">" in spec:
                return True
    return False


LETTERS = [*"abX_/. 0123456789-,:é漢字🚀\t\x1b\x07\u202e\r", "e\u0301"]
TEXTS = st.lists(st.sampled_from(LETTERS), max_size=60).map("".join)
NUMBERS = st.one_of(
    st.integers(-(2**63), 2**63).map(str),
    st.floats(allow_nan=False).map(str),
    st.integers(0, 10**12).map("{:,} us".format),
)


@st.composite
def any_block(draw):
    count = draw(st.integers(1, 9))
    right = frozenset(at for at in range(count) if draw(st.booleans()))
    rows = draw(st.integers(0, 5))
    cells = [[draw(NUMBERS if at in right else st.one_of(TEXTS, NUMBERS)) for at in range(count)] for _ in range(rows)]
    head = [
        f"{letter}{draw(st.sampled_from(['', '_wait_ns', ' self, total', ' of the step']))}"
        for letter in "abcdefghi"[:count]
    ]
    return Block(head, cells, right, draw(st.permutations(range(1, count))) if draw(st.booleans()) else ())


@settings(max_examples=300, deadline=None)
@given(any_block(), st.integers(40, 200))
def test_any_cells_are_whole_at_any_width(block, width):
    check(block, table.draw(block, width), width)


@given(TEXTS, st.integers(8, 80))
def test_a_text_that_is_wrapped_loses_nothing(text, width):
    text = escape.terminal(text)
    lines = table.wrap_text(text, width)
    assert solid("".join(lines)) == solid(text)
    assert all(table.text_width(line) <= width or not line.strip().strip("0123456789+-.,:/e ") for line in lines)


def test_what_a_terminal_would_obey_is_shown_instead():
    cell = "\x1b[2J\u202ex\r\ny\tz"
    assert table.draw(Block(["a"], [[cell]]), 80).body[1:] == ["\\x1b[2J\\u202ex y z"]
    assert table.draw(Block(["a"], [[cell]], tall=True), 80).body[1:] == ["\\x1b[2J\\u202ex", "y z"]
