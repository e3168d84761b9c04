"""Units: text to integer nanoseconds without passing through a float, and numbers to text for people."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import re

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
MANY_TIMES = 10  # from here on a change is told as a multiple
MOST_DIGITS = 6

_DECIMAL = re.compile(r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?:[eE](?P<exponent>[+-]?[0-9]+))?")
_LONGEST = 400  # characters: ten to the power of a billion would take all memory
_LONGEST_EXPONENT = 4
_SCALE = {"ns": 0, "us": 3, "ms": 6, "s": 9}
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?[smh])+")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_BYTES = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def ns_from_text(text: str, unit: str) -> int:
    """Exact integer ns of a decimal number in `unit` (ns, us, ms, s); digits below 1 ns are rounded half up.

    `"1795186330489203.848"` in us is 1795186330489203848. Exponents (`1e-05`) are accepted. Raises ValueError
    for anything that is not one decimal number.
    """
    scale = _SCALE[unit]
    match = _DECIMAL.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if match is None or not (match["whole"] or match["fraction"]) or len(match["exponent"] or "") > _LONGEST_EXPONENT:
        raise ValueError(f"not a decimal number: {text[:_LONGEST]!r}")
    scale += int(match["exponent"] or 0)
    sign = -1 if match["sign"] == "-" else 1
    fraction = match["fraction"] or ""
    digits = match["whole"] + fraction
    shift = scale - len(fraction)
    number = sign * int(digits)
    if shift >= 0:
        return number * int(10**shift)
    divisor = int(10**-shift)
    return sign * ((abs(number) * 2 + divisor) // (2 * divisor))


def seconds_from_text(text: str) -> float | None:
    """Seconds from `90`, `90s`, `10m` or `1h30m`; None for what is no time above 0."""
    words = text.strip()
    words = words if words[-1:] in _SECONDS else f"{words}s"
    if not _DURATION.fullmatch(words):
        return None
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in re.findall(r"([0-9.]+)([smh])", words))
    return seconds if 0 < seconds < math.inf else None


def utc_now() -> str:
    """This moment as a manifest says it: `2026-11-24T13:30:00+00:00`."""
    return dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds")


def utc_text(seconds: float) -> str:
    """As `utc_now`, of seconds since the epoch."""
    return dt.datetime.fromtimestamp(seconds, dt.timezone.utc).isoformat(timespec="seconds")


def format_minute(moment: str) -> str:
    """What `utc_now` writes, for people: to the minute, in the time zone of this machine."""
    at = dt.datetime.fromisoformat(moment)
    with contextlib.suppress(OverflowError):  # the first and the last day that Python has are not in every zone
        at = at.astimezone()
    return at.strftime("%Y-%m-%d %H:%M")


def format_ns(ns: float | None) -> str:
    """A duration for people: `740 ns`, `12.3 us`, `4.56 ms`, `1.23 s`, `2 min 05 s`; `-` for None."""
    if ns is None:
        return "-"
    magnitude = abs(ns)
    if magnitude < 1_000:
        return f"{_fixed(ns, 0)} ns"
    for limit, divisor, name in ((1e6, 1e3, "us"), (1e9, 1e6, "ms"), (60e9, 1e9, "s")):
        if magnitude < limit * 0.9995:
            return f"{ns / divisor:.{_decimals(magnitude / divisor)}f} {name}"
    minutes, seconds = divmod(round(magnitude / 1e9), 60)
    return f"{'-' if ns < 0 else ''}{minutes} min {seconds:02d} s"


def byte_unit(largest: float) -> tuple[str, int]:
    """The unit for an axis that reaches to so many bytes, and how many it is."""
    return next(((name, size) for name, size in _BYTES if abs(largest) >= size), ("B", 1))


def format_bytes(count: float | None) -> str:
    """A size for people in powers of 1024: `512 B`, `1.5 KiB`, `3.2 GiB`; `-` for None."""
    if count is None:
        return "-"
    value = float(count)
    for name in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.0f} B" if name == "B" else f"{value:.{_decimals(abs(value))}f} {name}"
        value /= 1024
    return f"{value:.1f} TiB"


def format_bytes_apart(base: float, new: float) -> tuple[str, str]:
    """Two sizes for people, in as many digits as tell them apart; where few do not, the new one by its difference.

    `505.02 MiB` and `505.09 MiB`; `505 MiB` and `505 MiB + 64 B`.
    """
    texts = format_bytes(base), format_bytes(new)
    unit, size = byte_unit(max(abs(base), abs(new)))
    for digits in range(1, MOST_DIGITS - 1):
        if texts[0] != texts[1] or base == new:
            return texts
        texts = f"{base / size:.{digits}f} {unit}", f"{new / size:.{digits}f} {unit}"
    least = format_bytes(base)
    return least, f"{least} {'+' if new > base else '-'} {format_bytes(abs(new - base))}"


def percent(share: float) -> str:
    """A share in a sentence: `79 %`, `0.4 %`, `<0.1 %`; a whole number where that is enough."""
    return f"{share * 100:.0f} %" if share >= 0.1 or share == 0 else format_ratio(share)


def format_ratio(ratio: float | None) -> str:
    """A share for people: 0.1234 is `12.3 %`, 0.0003 is `<0.1 %`; `-` for None."""
    if ratio is None:
        return "-"
    text = _fixed(ratio * 100, 1)
    return "<0.1 %" if ratio > 0 and text == "0.0" else f"{text} %"


def format_change(ratio: float | None) -> str:
    """How far new / base is from 1, for people: 1.083 is `+8.3 %`, 258 is `258x`, what rounds to nothing `0.0 %`.

    `-` for None.
    """
    if ratio is None:
        return "-"
    if ratio >= MANY_TIMES:
        return f"{ratio:,.0f}x" if ratio < 1e6 else f"{ratio:.2g}x"
    text = f"{(ratio - 1) * 100:+.1f}"
    return f"{text if text.strip('+-0.') else text[1:]} %"


def format_above(value: float, limit: float) -> tuple[str, str]:
    """A value above a limit, and the limit, in as many digits as tell them apart: `0.00161`, `0.00160`.

    Where six do not, the value is `just above 0.0016`.
    """
    for digits in range(2, MOST_DIGITS + 1):
        texts = f"{value:#.{digits}g}", f"{limit:#.{digits}g}"
        if texts[0] != texts[1]:
            return texts if digits > 2 else (f"{value:.2g}", f"{limit:.2g}")
    return f"just above {limit:.2g}", f"{limit:.2g}"


def format_changes(ratio: float, low: float, high: float) -> tuple[str, str, str]:
    """A change and the ends of its interval, all in one unit.

    `+8.3 %`, `+6.9` and `+9.8` in per cent, or `9.2x`, `7.6x` and `18x`.
    """
    if max(high, ratio) < MANY_TIMES:
        return format_change(ratio), format_change(low).removesuffix(" %"), format_change(high).removesuffix(" %")
    change, least, most = (format_change(one) if one >= MANY_TIMES else f"{one:.1f}x" for one in (ratio, low, high))
    return change, least, most


def format_count(number: int, noun: str) -> str:
    """`1 run`, `8 runs`, `2 batches`, `3 processes`."""
    many = "es" if noun.endswith(("s", "x", "ch", "sh")) else "s"
    return f"{number:,} {noun}{'' if number == 1 else many}"


def _fixed(value: float, digits: int) -> str:
    """With that many decimals; zero has no sign."""
    text = f"{value:.{digits}f}"
    return text if text.strip("-0.") else text.removeprefix("-")


def _decimals(value: float) -> int:
    return 2 if value < 10 else 1 if value < 100 else 0
