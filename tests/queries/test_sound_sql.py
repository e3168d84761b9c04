"""The rules for our SQL: what they are there for is caught, and what is right is let through."""

import pytest
from sound_sql import violations

CAUGHT = {
    "SELECT a FROM t CROSS JOIN u": "on what",
    "SELECT a FROM t, u": "on what",
    "SELECT a FROM t NATURAL JOIN u": "on what",
    "SELECT a / b FROM t": "divisor",
    "SELECT a / 0 FROM t": "divisor",
    "SELECT a / nullif(b, 1) FROM t": "divisor",
    "SELECT ln(a) FROM t": "LN",
    "SELECT a FROM t WHERE b > 0.5": "a decimal",
    "SELECT CAST(a / 2 AS BIGINT) FROM t": "FLOOR",
    "SELECT CAST(avg(a) AS BIGINT) FROM t": "FLOOR",
    "SELECT CAST(3.0e0 * a AS BIGINT) FROM t": "FLOOR",
    "SELECT CAST(CASE WHEN a > 1 THEN median(b) ELSE 0 END AS BIGINT) FROM t": "FLOOR",
    "SELECT CAST(share AS BIGINT) FROM t": "FLOOR",
    "WITH u AS (SELECT avg(a) AS x FROM t), v AS (SELECT x + 1 AS y FROM u) SELECT CAST(y AS BIGINT) FROM v": "FLOOR",
}


@pytest.mark.parametrize(("sql", "word"), CAUGHT.items(), ids=CAUGHT)
def test_what_is_caught(sql, word):
    found = violations(f"{sql} ORDER BY 1", doubles=frozenset({"share"}))
    assert any(word in line for line in found), found


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM t LEFT JOIN u ON t.x = u.x AND t.y < u.y",
        "SELECT a, sum(b) FROM t INNER JOIN u USING (x) GROUP BY ALL",
        "SELECT a / nullif(b, 0), a / 2, a / 1.0e3, a / (nullif(b, 0)) FROM t",
        "SELECT ln(nullif(a, 0)) FROM t",
        "SELECT CAST(floor(a / 2) AS BIGINT), CAST(ceil(share) AS BIGINT), CAST(sum(a) AS BIGINT) FROM t",
        "SELECT CAST(CASE WHEN share > 0.5e0 THEN 1 ELSE 0 END AS BIGINT) FROM t",
        "SELECT percentile_cont(0.9e0) WITHIN GROUP (ORDER BY a) FILTER (WHERE b), median(a) FROM t",
        "SELECT a FROM t QUALIFY row_number() OVER (PARTITION BY b ORDER BY c, a) = 1",
        "SELECT sum(a) OVER (PARTITION BY b ORDER BY c ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) FROM t",
        "WITH RECURSIVE r AS (SELECT a FROM t UNION ALL SELECT t.a FROM r INNER JOIN t ON r.a = t.b) SELECT a FROM r",
        "SELECT a FROM t WHERE b = $top",
    ],
)
def test_what_is_let_through(sql):
    assert violations(f"{sql} ORDER BY 1", doubles=frozenset({"share"})) == []


def test_rows_must_be_sorted_at_the_top():
    inner = "SELECT a FROM (SELECT a FROM t ORDER BY a) AS u"
    assert violations(inner) == ["no ORDER BY at the top level"]
    assert violations(inner, ordered=False) == []


def test_the_top_must_be_a_select():
    assert violations("SELECT a FROM t UNION ALL SELECT a FROM u ORDER BY a") == [
        "top level is Union, expected one SELECT"
    ]
