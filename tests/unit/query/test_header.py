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


GIVES = "-- Gives, one row per (rep):\n--   rep  bigint  repetition\n"
SELECT = "SELECT rep FROM step\n"


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
    query = header(tmp_path, "-- T.\n-- Reads: step\n" + GIVES + SELECT)
    assert query.takes == ()
    assert not query.ordered


READS = "-- Reads: step_phase, step?"


@pytest.mark.parametrize(("old", "new", "line", "problem"), [
    (READS + "\n", "", 14, "found no `Reads`"), (READS, "-- Reads: step phase", 6, "found `step phase`"),
    (READS, "-- Reads:", 6, "expected table names"), (READS, "-- Reads: step, step?", 6, "`step` is listed twice"),
    ("-- Takes:", "-- Takes: all", 7, "alone on its line"),
    ("--   $skip_steps ", "--   skip_steps ", 8, "expected `$name  type"),
    ("$skip_steps  bigint ", "$skip_steps  int ", 8, "found `int`"),
    ("--   $skip_steps ", "-- $skip_steps ", 8, "indented by 2"),
    ("--   $share ", "--   $skip_steps ", 7, "`skip_steps` is listed twice"),
    ("-- Gives, one row per (rep, phase), in that order:", "-- Gives:", 11, "expected `Gives, one"),
    ("(rep, phase)", "(rep, rank)", 11, "`rank` tells the rows apart"),
    ("--   phase     varchar  data", "--   phase varchar data", 13, "two spaces apart"),
    ("--   phase  ", "--   Phase  ", 13, "snake_case"),
    ("--   total_ns  ", "--   rep  ", 11, "`rep` is listed twice"),
    ("SELECT", "-- Gives: x\nSELECT", 16, "second `Gives`"), ("SELECT", "-- A note.\nSELECT", 16, "indented by 2"),
    ("SELECT rep, phase, total_ns FROM step_phase\n", "", 15, "expected a SELECT"), (GOOD, "", 1, ""),
    (GOOD, "SELECT 1 AS a\n", 1, ""), (GOOD, "\n-- Title.\nSELECT 1 AS a\n", 1, ""),
    (GOOD, "-- T.\n" + GIVES + "-- Reads: step\n" + SELECT, 2, "out of order"),
    (GOOD, "-- Reads: step\n" + GIVES + SELECT, 1, "expected a title"),
])  # fmt: skip
def test_a_malformed_header_names_file_and_line(tmp_path, old, new, line, problem):
    assert old in GOOD
    with pytest.raises(QueryError) as caught:
        header(tmp_path, GOOD.replace(old, new))
    message = caught.value.message
    assert f"query.sql`, line {line}: " in message
    assert problem in message
