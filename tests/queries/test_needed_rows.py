"""What is known of a query's rows from its syntax tree alone."""

import pytest
from needed_rows import needed


@pytest.mark.parametrize(("sql", "names"), [
    ("SELECT x FROM a JOIN b USING (x) LEFT JOIN c USING (x)", "a b"),
    ("SELECT x FROM a ASOF JOIN b ON a.x >= b.x", "a b"),
    ("SELECT x FROM a ANTI JOIN b USING (x) SEMI JOIN c USING (x), d", "a c d"),
    ("SELECT x FROM a FULL JOIN b USING (x)", ""),
    ("SELECT x FROM a RIGHT JOIN b USING (x)", ""),
    ("SELECT x FROM a UNION ALL SELECT x FROM b JOIN a USING (x)", "a"),
    ("SELECT x FROM a EXCEPT SELECT x FROM b", ""),
    ("WITH c AS (SELECT x FROM a), d AS (SELECT x FROM c, b) SELECT x FROM d", "a b"),
    ("WITH RECURSIVE c AS (SELECT x FROM a UNION ALL SELECT x FROM c JOIN b USING (x)) SELECT x FROM c", ""),
    ("SELECT x FROM (SELECT x FROM a) AS c, range(3) AS t(i)", "a"),
    ("SELECT count(*) FROM a", ""),
    ("SELECT any_name(x) FROM a", ""),
    ("SELECT count(*) OVER (PARTITION BY x) FROM a", "a"),
    ("SELECT count(*) FROM a GROUP BY ALL", ""),
    ("SELECT x, count(*) FROM a GROUP BY ALL", "a"),
    ("SELECT count(*) FROM a GROUP BY x", "a"),
    ("SELECT x, count(*) FROM a GROUP BY ROLLUP (x)", ""),
])  # fmt: skip
def test_names_without_a_row_of_which_there_are_none(sql, names):
    assert needed(sql) == set(names.split())
