"""The one place that says what the tables are."""

from operator import attrgetter

from every import every

from pipeprof.record.schema import PARTITIONS, TABLES

TYPES = {"bigint", "double", "varchar", "boolean"}


@every(TABLES, attrgetter("name"))
def test_columns_are_named_once_typed_and_described_with_times_in_integer_ns_and_sizes_in_integer_bytes(table):
    assert len(set(table.column_names)) == len(table.columns)
    assert not set(PARTITIONS) & set(table.column_names)
    for column in table.columns:
        assert column.type in TYPES, column
        assert column.doc, column
        for ending in ("ns", "bytes"):
            # what rounding to whole ns takes away; quantiles, which lie between two times
            fractions = column.name.startswith(("exact_", "median_", "p90_", "phase_"))
            if not fractions and (column.name.endswith("_" + ending) or column.name == ending):
                assert (column.type, column.unit) == ("bigint", ending), column


def test_table_names_are_unique():
    assert len({table.name for table in TABLES}) == len(TABLES)
