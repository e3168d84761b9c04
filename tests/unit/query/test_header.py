import pytest

from pipeprof.errors import QueryError
from pipeprof.query.header import Field, Parameter, parse

GOOD = """-- Time each rank spent in each phase
-- of a step.
--
-- More about it.
--
-- Reads: step_phase, step?
-- Takes:
--   $skip_steps  bigint  steps left out at the start (warm-up)
--   $share       double  a share,
--                        explained at length
-- Gives, one row per (rep, phase), in that order:
--   rep       bigint   repetition
--   phase     varchar  data_wait |
--                      tail
--   total_ns  bigint   ns    sum of spans
SELECT rep, phase, total_ns FROM step_phase
"""


def header(tmp_path, text):
    path = tmp_path / "query.sql"
    path.write_text(text)
    return parse(path, "family/query")


def test_everything_is_read(tmp_path):
    query = header(tmp_path, GOOD)
    assert query.name == "family/query"
    assert query.title == "Time each rank spent in each phase of a step. More about it."
    assert query.reads == ("step_phase", "step")
    assert query.needs == ("step_phase",)
    assert query.takes == (
        Parameter("skip_steps", "bigint", "steps left out at the start (warm-up)"),
        Parameter("share", "double", "a share, explained at length"),
    )
    assert query.gives == (
        Field("rep", "bigint", "", "repetition"),
        Field("phase", "varchar", "", "data_wait | tail"),
        Field("total_ns", "bigint", "ns", "sum of spans"),
    )
    assert query.key == ("rep", "phase")
    assert query.ordered
    assert query.sql.endswith("FROM step_phase\n")
    assert query.path == tmp_path / "query.sql"


def test_a_query_may_take_nothing_and_a_view_has_no_order(tmp_path):
    text = "-- T.\n-- Reads: step\n-- Gives, one row per (rep):\n--   rep  bigint  repetition\nSELECT rep FROM step\n"
    query = header(tmp_path, text)
    assert query.takes == ()
    assert not query.ordered


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        pytest.param("-- Reads: step_phase, step?\n", "", 14, "found no `Reads`", id="no reads"),
        pytest.param("-- Reads: step_phase, step?", "-- Reads: step phase", 6, "found `step phase`", id="bad table"),
        pytest.param("-- Reads: step_phase, step?", "-- Reads:", 6, "expected table names", id="empty reads"),
        pytest.param(
            "-- Reads: step_phase, step?", "-- Reads: step, step?", 6, "`step` is listed twice", id="table twice"
        ),
        pytest.param("-- Takes:", "-- Takes: all", 7, "alone on its line", id="takes with text"),
        pytest.param("--   $skip_steps ", "--   skip_steps ", 8, "expected `$name  type", id="no dollar"),
        pytest.param("$skip_steps  bigint ", "$skip_steps  int ", 8, "found `int`", id="unknown type"),
        pytest.param("--   $skip_steps ", "-- $skip_steps ", 8, "indented by 2", id="wrong indent"),
        pytest.param("--   $share ", "--   $skip_steps ", 7, "`skip_steps` is listed twice", id="parameter twice"),
        pytest.param(
            "-- Gives, one row per (rep, phase), in that order:", "-- Gives:", 11, "expected `Gives, one", id="no key"
        ),
        pytest.param("(rep, phase)", "(rep, rank)", 11, "`rank` tells the rows apart", id="key is no column"),
        pytest.param("--   phase     varchar  data", "--   phase varchar data", 13, "two spaces apart", id="one space"),
        pytest.param("--   phase  ", "--   Phase  ", 13, "snake_case", id="upper case"),
        pytest.param("--   total_ns  ", "--   rep  ", 11, "`rep` is listed twice", id="column twice"),
        pytest.param("SELECT", "-- Gives: x\nSELECT", 16, "second `Gives`", id="two gives"),
        pytest.param("SELECT", "-- A note.\nSELECT", 16, "indented by 2", id="text behind the columns"),
        pytest.param("SELECT rep, phase, total_ns FROM step_phase\n", "", 15, "expected a SELECT", id="no sql"),
    ],
)
def test_a_malformed_header_names_file_and_line(tmp_path, old, new, line, problem):
    assert old in GOOD
    with pytest.raises(QueryError) as caught:
        header(tmp_path, GOOD.replace(old, new))
    message = caught.value.message
    assert f"query.sql`, line {line}: " in message
    assert problem in message


@pytest.mark.parametrize("text", ["", "SELECT 1 AS a\n", "\n-- Title.\nSELECT 1 AS a\n"])
def test_no_header_is_malformed(tmp_path, text):
    with pytest.raises(QueryError, match="line 1: "):
        header(tmp_path, text)


def test_sections_out_of_order_are_refused(tmp_path):
    text = "-- T.\n-- Gives, one row per (rep):\n--   rep  bigint  repetition\n-- Reads: step\nSELECT rep FROM step\n"
    with pytest.raises(QueryError, match="out of order"):
        header(tmp_path, text)


def test_a_header_without_a_title_is_refused(tmp_path):
    text = "-- Reads: step\n-- Gives, one row per (rep):\n--   rep  bigint  repetition\nSELECT rep FROM step\n"
    with pytest.raises(QueryError, match="line 1: expected a title"):
        header(tmp_path, text)
