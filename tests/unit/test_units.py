"""Text to integer nanoseconds and numbers to text for people."""

import ast
import time
from decimal import ROUND_HALF_UP, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeprof.units import (
    format_above,
    format_bytes,
    format_bytes_apart,
    format_changes,
    format_count,
    format_minute,
    format_ns,
    format_ratio,
    ns_from_text,
    percent,
)

SCALE = {"ns": 0, "us": 3, "ms": 6, "s": 9}


@pytest.mark.parametrize(
    ("text", "unit", "ns"),
    [
        ("1795186330489203.848", "us", 1795186330489203848),
        ("12", "ms", 12_000_000),
        ("0.5", "s", 500_000_000),
        ("1e-05", "ms", 10),
        ("1E3", "us", 1_000_000),
        ("1.5e+2", "ns", 150),
        ("-2.5", "us", -2500),
        ("+1", "ns", 1),
        (" 7 ", "ns", 7),
        ("0.5", "ns", 1),
        ("0.49", "ns", 0),
        (".5", "us", 500),
    ],
)
def test_decimal_text_becomes_exact_ns(text, unit, ns):
    assert ns_from_text(text, unit) == ns


@pytest.mark.parametrize(
    "text", ["", "abc", "1,5", "1.2.3", "1e", "e5", "0x10", "--1", "+-1", "nan", "inf", "1_0", "1e1.5", "/"]
)
def test_what_is_no_decimal_number_is_refused(text):
    with pytest.raises(ValueError):
        ns_from_text(text, "ms")


@given(
    st.decimals(allow_nan=False, allow_infinity=False, min_value=0, max_value=10**12, places=12),
    st.sampled_from(sorted(SCALE)),
)
def test_it_agrees_with_decimal_arithmetic(number, unit):
    exact = (number.scaleb(SCALE[unit])).quantize(Decimal(1), rounding=ROUND_HALF_UP)
    assert ns_from_text(f"{number:f}", unit) == int(exact)


@given(st.integers(-(10**18), 10**18))
def test_whole_ns_come_back_through_every_unit(number):
    for unit, digits in SCALE.items():
        assert ns_from_text(str(Decimal(number).scaleb(-digits)), unit) == number


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (None, "-"), (0, "0 ns"), (999, "999 ns"), (1000, "1.00 us"), (12_345, "12.3 us"), (999_499, "999 us"),
        (999_999, "1.00 ms"), (4_560_000, "4.56 ms"), (1_230_000_000, "1.23 s"), (59_900_000_000, "59.9 s"),
        (125_000_000_000, "2 min 05 s"), (-12_345, "-12.3 us"), (59_999_999_999, "1 min 00 s"),
    ],
)  # fmt: skip
def test_durations_for_people(ns, text):
    assert format_ns(ns) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "-"), (0, "0 B"), (1023, "1023 B"), (1536, "1.50 KiB"), (10 * 1024, "10.0 KiB"),
        (3 * 2**30, "3.00 GiB"), (2**40, "1.0 TiB"),
    ],
)  # fmt: skip
def test_sizes_for_people(count, text):
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("ratio", "text"), [(None, "-"), (0.1234, "12.3 %"), (0.0, "0.0 %"), (3e-4, "<0.1 %"), (1, "100.0 %")]
)
def test_shares_for_people(ratio, text):
    assert format_ratio(ratio) == text


@pytest.mark.parametrize(("share", "text"), [(0.794, "79 %"), (0.004, "0.4 %"), (0.0, "0 %"), (3e-4, "<0.1 %")])
def test_shares_in_a_sentence(share, text):
    assert percent(share) == text


def test_zero_has_no_sign_and_a_negative_duration_only_one():
    assert (format_ratio(-0.0), format_ratio(-0.0004), format_ns(-0.0)) == ("0.0 %", "0.0 %", "0 ns")
    assert (format_ratio(-0.0006), format_ns(-125e9)) == ("-0.1 %", "-2 min 05 s")


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (1, "run", "1 run"), (0, "run", "0 runs"), (8_000, "run", "8,000 runs"), (1, "batch", "1 batch"),
        (2, "batch", "2 batches"), (3, "process", "3 processes"), (2, "more row", "2 more rows"),
    ],
)  # fmt: skip
def test_counts_have_the_right_plural(number, noun, text):
    assert format_count(number, noun) == text


def own_percentages(source):
    """The format specs of a module that make a percentage."""
    specs = [node.format_spec for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FormattedValue)]
    return [ast.unparse(spec) for spec in specs if spec and ast.unparse(spec).endswith("%'")]


def test_shares_are_written_in_one_way(request):
    """`6.1 %` and never `6.1%`: no f-string makes a percentage of its own; the head of a page's picture is not text."""
    assert own_percentages('f"{share:.1%}"')
    sources = (request.config.rootpath / "pipeprof").rglob("*.py")
    assert {path.name for path in sources if own_percentages(path.read_text(encoding="utf-8"))} <= {"html.py"}


@pytest.mark.parametrize("zone", ["America/New_York", "Pacific/Auckland"])
def test_a_time_that_this_zone_has_no_date_for_is_shown_as_it_is(monkeypatch, zone):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        shown = [format_minute(moment) for moment in ("0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59+00:00")]
    finally:
        monkeypatch.undo()
        time.tzset()
    assert shown[0].startswith(("1-01-01", "0001-01-01"))
    assert shown[1].startswith("9999-12-31")


@pytest.mark.parametrize(
    ("value", "limit", "texts"),
    [
        (0.04, 0.0016, ("0.04", "0.0016")),
        (0.00164, 0.0016, ("0.00164", "0.00160")),
        (0.001601, 0.0016, ("0.001601", "0.001600")),
        (0.0016 * (1 + 1e-9), 0.0016, ("just above 0.0016", "0.0016")),
    ],
)
def test_a_value_above_a_limit_never_reads_as_the_limit(value, limit, texts):
    assert format_above(value, limit) == texts


@pytest.mark.parametrize(
    ("ratio", "low", "high", "shown"),
    [
        (1.083, 1.069, 1.098, ("+8.3 %", "+6.9", "+9.8")),
        (9.2, 7.559, 18.0, ("9.2x", "7.6x", "18x")),
        (30.0, 12.0, 258.0, ("30x", "12x", "258x")),
    ],
)
def test_a_change_and_the_ends_of_its_interval_have_one_unit(ratio, low, high, shown):
    """A comparison once said "+655.9 to 18x"."""
    assert format_changes(ratio, low, high) == shown


@pytest.mark.parametrize(
    ("base", "new", "shown"),
    [
        (1e9, 1e9, ("954 MiB", "954 MiB")),
        (446 << 20, 450 << 20, ("446 MiB", "450 MiB")),
        (472103249.4635412, 472248266.2352728, ("450.2 MiB", "450.4 MiB")),
        (10**9, 10**9 + 1, ("954 MiB", "954 MiB + 1 B")),
        (2000, 1999, ("1.953 KiB", "1.952 KiB")),
    ],
)
def test_two_sizes_are_told_apart_without_nine_digits(base, new, shown):
    assert format_bytes_apart(base, new) == shown
