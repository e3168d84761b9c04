"""The lint itself: each construct outside the portable subset is caught, and the forms inside are let through."""

import pytest
from portable import violations

CAUGHT = {
    "SELECT a FROM t ASOF JOIN u ON t.x >= u.x": "ASOF",
    "SELECT a FROM t SEMI JOIN u ON t.x = u.x": "SEMI",
    "SELECT a FROM t ANTI JOIN u ON t.x = u.x": "ANTI",
    "SELECT a FROM t POSITIONAL JOIN u": "POSITIONAL",
    "SELECT a FROM t CROSS JOIN u": "CROSS",
    "SELECT a FROM t, u": "no ON condition",
    "SELECT a FROM t INNER JOIN u USING (x)": "no ON condition",
    "SELECT a FROM t NATURAL JOIN u": "NATURAL",
    "SELECT a FROM t RIGHT JOIN u ON t.x = u.x": "RIGHT",
    "SELECT a FROM t FULL JOIN u ON t.x = u.x": "FULL",
    "SELECT a FROM t, LATERAL (SELECT 1) AS u": "Lateral",
    "SELECT unnest(a) FROM t": "Explode",
    "SELECT [a, b] FROM t": "Array",
    "SELECT list(a) FROM t": "ArrayAgg",
    "SELECT a[1] FROM t": "Bracket",
    "SELECT {'x': a} FROM t": "Struct",
    "SELECT a FROM t PIVOT (sum(b) FOR c IN (1, 2))": "Pivot",
    "SELECT a % 2 FROM t": "Mod",
    "SELECT mod(a, 2) FROM t": "Mod",
    "SELECT a // 2 FROM t": "IntDiv",
    "SELECT a FROM range(5)": "GenerateSeries",
    "SELECT a FROM generate_series(1, 5)": "GenerateSeries",
    "SELECT arg_max(a, b) FROM t": "ArgMax",
    "SELECT arg_min(a, b) FROM t": "ArgMin",
    "SELECT max_by(a, b) FROM t": "ArgMax",
    "SELECT approx_quantile(a, 0.5e0) FROM t": "ApproxQuantile",
    "SELECT approx_count_distinct(a) FROM t": "ApproxDistinct",
    "SELECT a / b FROM t": "divisor",
    "SELECT a / 0 FROM t": "divisor",
    "SELECT a / nullif(b, 1) FROM t": "divisor",
    "SELECT ln(a) FROM t": "LN",
    "SELECT a FROM t WHERE b > 0.5": "float literal",
    "SELECT CAST(a / 2 AS BIGINT) FROM t": "FLOOR",
    "SELECT CAST(avg(a) AS BIGINT) FROM t": "FLOOR",
    "SELECT CAST(3.0e0 * a AS BIGINT) FROM t": "FLOOR",
    "SELECT CAST(CASE WHEN a > 1 THEN median(b) ELSE 0 END AS BIGINT) FROM t": "FLOOR",
    "SELECT CAST(share AS BIGINT) FROM t": "FLOOR",
    "WITH u AS (SELECT avg(a) AS x FROM t), v AS (SELECT x + 1 AS y FROM u) SELECT CAST(y AS BIGINT) FROM v": "FLOOR",
    "SELECT CAST(a AS HUGEINT) FROM t": "type",
    "SELECT CAST(a AS TIMESTAMP) FROM t": "type",
    "SELECT try_cast(a AS BIGINT) FROM t": "TryCast",
    "SELECT quantile_cont(a, 0.9e0) FROM t": "PERCENTILE_CONT",
    "SELECT percentile_cont(0.9e0) WITHIN GROUP (ORDER BY a DESC) FROM t": "ascending",
    "SELECT quantile_disc(a, 0.9e0) FROM t": "PercentileDisc",
    "SELECT sum(a) FILTER (WHERE b) OVER (PARTITION BY c) FROM t": "FILTER",
    "SELECT * EXCLUDE (a) FROM t": "star",
    "SELECT a, sum(b) FROM t GROUP BY ALL": "GROUP BY ALL",
    "SELECT DISTINCT ON (a) a, b FROM t": "DISTINCT ON",
    "SELECT epoch_ns(a) FROM t": "Anonymous",
    "SELECT a FROM t USING SAMPLE 10": "TableSample",
    "SELECT (SELECT a FROM t UNION ALL BY NAME SELECT a FROM u) AS x": "BY NAME",
}


@pytest.mark.parametrize(("sql", "word"), CAUGHT.items(), ids=CAUGHT)
def test_outside_the_subset(sql, word):
    found = violations(f"{sql} ORDER BY 1", doubles=frozenset({"share"}))
    assert any(word in line for line in found), found


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM t LEFT JOIN u ON t.x = u.x AND t.y < u.y",
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
def test_inside_the_subset(sql):
    assert violations(f"{sql} ORDER BY 1", doubles=frozenset({"share"})) == []


def test_rows_must_be_sorted_at_the_top():
    inner = "SELECT a FROM (SELECT a FROM t ORDER BY a) AS u"
    assert violations(inner) == ["no ORDER BY at the top level"]
    assert violations(inner, ordered=False) == []


def test_the_top_must_be_a_select():
    assert violations("SELECT a FROM t UNION ALL SELECT a FROM u ORDER BY a") == [
        "top level is Union, expected one SELECT"
    ]
