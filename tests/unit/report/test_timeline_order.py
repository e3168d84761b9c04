"""Order and memory: rows in any order come out by time, and little is held."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeprof.errors import UsageError
from pipeprof.record.run import Share
from pipeprof.report.timeline import read as timeline_read
from pipeprof.report.timeline.clock import FIRST, LAST, parse_ranks, parse_steps
from pipeprof.report.timeline.read import Source, merged
from pipeprof.report.timeline.text import Slices
from pipeprof.report.timeline.tracks import Lanes, nested

INTERVALS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), max_size=25)


def slices_of(table):
    start, dur = (table.column(name).to_numpy().astype(np.int64) for name in ("start_ns", "dur_ns"))
    same = np.zeros(len(start), np.int64)
    return Slices(start, dur, same, same, same, same)


@pytest.fixture
def stored(tmp_path):
    """`stored(name, starts, rows_per_group)`: a source of rows that begin then, and take the rest of that by 5."""

    def made(name, starts, rows_per_group):
        columns = {"start_ns": pa.array(starts, pa.int64()), "dur_ns": pa.array([n % 5 for n in starts], pa.int64())}
        pq.write_table(pa.table(columns), tmp_path / name, row_group_size=rows_per_group)
        return Source([Share(tmp_path / name, 0, 0)], ("start_ns", "dur_ns"), slices_of)

    return made


def order(parts):
    return [(start, dur) for part in parts for start, dur in zip(part.start.tolist(), part.dur.tolist(), strict=True)]


def expected(*starts):
    return sorted(((n, n % 5) for many in starts for n in many), key=lambda row: (row[0], -row[1]))


def test_runs_that_are_in_order_are_merged(stored):
    even, odd = list(range(0, 1000, 2)), list(range(1, 1000, 2))
    one, two = stored("a", even + odd, 50), stored("b", even, 33)
    assert order(merged([one, two], FIRST, LAST)) == expected(even, odd, even)
    assert order(merged([Source([], ("start_ns", "dur_ns"), slices_of), stored("c", [], 10)], FIRST, LAST)) == []


@pytest.mark.parametrize("most", [10, 100, 10_000])
def test_any_order_comes_out_by_time(stored, monkeypatch, most):
    monkeypatch.setattr(timeline_read, "MOST_ROWS", most)
    starts = np.random.default_rng(5).integers(0, 5000, 2000).tolist()
    parts = list(merged([stored("a", starts, 64)], FIRST, LAST))
    assert order(parts) == expected(starts)
    assert max(len(part.start) for part in parts) <= max(3 * most, 64)


def test_only_what_lies_in_the_time_is_given_and_row_groups_outside_of_it_are_not_read(stored):
    read = []
    source = stored("a", list(range(100)), 10)
    source = source._replace(slices=lambda table: read.append(table.num_rows) or slices_of(table))
    assert [start for start, _ in order(merged([source], 50, 60))] == [
        start
        for start in range(60)
        if start >= 50 or start + start % 5 > 50  # not what touches its edges
    ]
    assert len(read) == 3  # one that reaches into it, one inside, and one that begins at its end


def test_what_has_no_time_is_told_once_however_often_it_is_read(stored, monkeypatch):
    monkeypatch.setattr(timeline_read, "MOST_ROWS", 10)
    starts = np.random.default_rng(5).integers(0, 5000, 500).tolist()
    read, told = [], []

    def without_some(table):
        read.append(table.num_rows)
        made = slices_of(table)
        return made._replace(dur=np.where(made.dur == 4, -1, made.dur))

    list(merged([stored("a", starts, 64)._replace(slices=without_some)], FIRST, LAST, told.append))
    assert sum(read) > 2 * len(starts)
    assert sum(told) == sum(start % 5 == 4 for start in starts)


def overlaps(one, two):
    """Whether two intervals overlap in part; without length counts as 1."""
    (a, b), (c, d) = sorted(((start, start + max(dur, 1)) for start, dur in (one, two)), key=lambda x: (x[0], -x[1]))
    return a < c < b < d


def in_order(intervals):
    return sorted(intervals, key=lambda one: (one[0], -one[1]))


@given(INTERVALS)
def test_nesting_is_told_as_by_comparing_all_pairs(intervals):
    rows = in_order(intervals)
    start = np.array([one[0] for one in rows], np.int64)
    end = start + np.array([max(one[1], 1) for one in rows], np.int64)
    assert nested(start, end) == (not any(overlaps(one, two) for one in rows for two in rows))


@given(INTERVALS, st.integers(1, 8))
def test_lanes_never_overlap_however_rows_are_cut(intervals, size):
    rows, lanes = in_order(intervals), Lanes()
    placed = []
    for first in range(0, len(rows), size):
        part = rows[first : first + size]
        found = lanes.assign(*(np.array(column, np.int64) for column in zip(*part, strict=True)))
        placed += zip(found.tolist() if found is not None else [0] * len(part), part, strict=True)
    for lane, one in placed:
        assert not any(overlaps(one, two) for other, two in placed if other == lane)
    assert max((lane for lane, _ in placed), default=0) < max(len(rows), 1)


@pytest.mark.parametrize(("text", "found"), [
    ("1:3", (1, 3)), (":3", (None, 3)), ("7:", (7, None)), (":", (None, None)),
    ("0,2,4-6", {0, 2, 4, 5, 6}), ("3-3", {3}),
])  # fmt: skip
def test_steps_are_first_and_end_and_ranks_are_numbers_and_ranges(text, found):
    assert (parse_steps if ":" in text else parse_ranks)(text) == found


@pytest.mark.parametrize(("parse", "option", "text"), [
    *((parse_steps, "--steps", text) for text in ("", "3", "3:3", "4:2", "a:b", "1:2:3", "-1:2", "1" * 19 + ":")),
    *((parse_ranks, "--ranks is", text) for text in ("", "0-", "7-4", "0,7-4", "0-9999999999", "9" * 5000)),
])  # fmt: skip
def test_other_steps_and_ranks_are_refused(parse, option, text):
    with pytest.raises(UsageError, match=option):
        parse(text)
