"""What every form of a comparison shows: numbers as text, and which metrics come first. No markup here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pipeprof import escape
from pipeprof.report.words import gate
from pipeprof.report.words.comparison import METRICS, counts_runs, metric_name
from pipeprof.units import format_bytes, format_bytes_apart, format_change, format_changes, format_count, format_ns

Entry = dict[str, Any]

FAMILIES = {
    "primary": "Primary metrics",
    "informing": "For information, not part of the verdict",
    "deterministic": "Counts and sizes",
    "secondary": "Secondary metrics",
}
LONGEST_NAME = 200
LONGEST_TEXT = 2000

# Worst first.
ORDER = ("regressed", "missing", "incomparable", "inconclusive", "acknowledged", "improved", "unchanged")
_FIRST = {name: place for place, name in enumerate(METRICS)}
FAILURES = ("regressed", "missing", "incomparable")


def clean(words: object, longest: int = LONGEST_TEXT) -> str:
    """One line that shows every character, cut to `longest` characters."""
    text = escape.line(words).strip()
    return text if len(text) <= longest else text[: longest - 3] + "..."


def value(number: float | None, unit: str) -> str:
    """A metric's value for people; `-` for None."""
    if number is None:
        return "-"
    if unit == "ns":
        return format_ns(number)
    if unit == "s":
        return format_ns(number * 1e9)
    if unit == "bytes":
        return format_bytes(number)
    return _plain(number) + (f" {clean(unit, 20)}" if unit else "")


def values(entry: dict[str, Any]) -> tuple[str, str]:
    """Base and new as text: exact when rounding would hide that they differ."""
    base, new, unit = entry.get("base"), entry.get("new"), entry.get("unit") or ""
    if not _is_number(base) or not _is_number(new):
        return _one(base, unit), _one(new, unit)
    if unit == "bytes":
        return format_bytes_apart(float(base or 0), float(new or 0))
    texts = value(base, unit), value(new, unit)
    exact = _exact(base, unit), _exact(new, unit)
    return exact if texts[0] == texts[1] and exact[0] != exact[1] else texts


def _exact(number: Any, unit: str) -> str:
    """All digits. Estimates of ns have digits behind the point that mean nothing; seconds are told in whole ns."""
    if unit == "s":
        return _exact(number * 1e9, "ns")
    digits = f"{number:,.0f}" if unit == "ns" or float(number).is_integer() else repr(number)
    return f"{digits} {clean(unit, 20)}".rstrip()


def change(metric: dict[str, Any]) -> str:
    """`+8.3 % [+6.9, +9.8]`, or `-` when there is no ratio."""
    return " ".join(filter(None, change_and_interval(metric)))


def change_and_interval(metric: dict[str, Any]) -> tuple[str, str]:
    """`+8.3 %` and `[+6.9, +9.8]`, all as multiples where one of them is large; `-` and nothing without a ratio."""
    ratio, low, high = (metric.get(name) for name in ("ratio", "ci_low", "ci_high"))
    if ratio is None or low is None or high is None:
        return format_change(ratio), ""
    moved, *ends = format_changes(ratio, low, high)
    return moved, f"[{', '.join(ends)}]"


def cells(metric: dict[str, Any]) -> tuple[str, ...]:
    """What one line says of it: name, base, new, change with its interval, verdict, repetitions."""
    base, new = values(metric)
    name = clean(metric_name(metric["name"]), LONGEST_NAME)
    return name, base, new, change(metric), metric["verdict"], repetitions(metric)


def undecided_and_red(content: Mapping[str, Any]) -> bool:
    """Whether the check is red although nothing was decided: `fail-on` says so, or the change edits its judge."""
    return content["verdict"] == "inconclusive" and bool((content.get("check") or {}).get("red"))


def unconfirmed(content: Mapping[str, Any]) -> bool:
    """Whether it is slower, and not red before another runner says so, too."""
    waits = (content.get("confirmation") or {}).get("state") == "wanted"
    return waits and (content.get("check") or {}).get("red") is False


def repetitions(metric: dict[str, Any]) -> str:
    """`8 + 8`, with the number needed when there were too few."""
    text = f"{metric.get('reps_base', 0)} + {metric.get('reps_new', 0)}"
    needed = metric.get("reps_needed")
    return f"{text} (needs {needed} per side)" if needed else text


def seen(content: dict[str, Any]) -> list[str]:
    """What an undecided comparison tells all the same: how small a change these runs show, and what is counted.

    Empty where something was decided. Counts do not vary from run to run, so that the first run tells.
    """
    if content["verdict"] != "inconclusive":
        return []
    session = content.get("session")
    plan = session.get("plan") if isinstance(session, dict) else None
    finds = plan.get("finds") if isinstance(plan, dict) else None
    found = [_found(finds)] if isinstance(finds, dict) and _is_number(finds.get("spread")) else []
    counts = [one for one in content["metrics"] if one.get("family") == "deterministic"]
    if counts and {one["verdict"] for one in counts} == {"unchanged"}:
        such = ", such as how often each operator runs" if any(counts_runs(one["name"]) for one in counts) else ""
        found.append(f"{format_count(len(counts), 'exact count')}{such}: the same on both sides")
    return found


def _found(finds: dict[str, Any]) -> str:
    least, sides = finds.get("change"), f"with {clean(finds.get('repetitions'))} per side"
    what = f"{sides} even a slow-down of 50 % may well be missed"
    if isinstance(least, (int, float)):
        what = f"{sides} slow-downs of about {100 * least:.0f} % or more are usually found"
    return f"the step time varies by {100 * finds['spread']:.1f} % between repetitions (standard deviation): {what}"


def families(content: dict[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    """(title, metrics) of each family that has any; within one the worst come first."""
    found = []
    known = list(FAMILIES)
    for family in (*known, None):
        rows = [one for one in content["metrics"] if _family(one, known) == family]
        if rows:
            rows.sort(key=lambda one: (_rank(one["verdict"]), _FIRST.get(one["name"], len(_FIRST)), one["name"]))
            found.append((FAMILIES.get(family or "", "Other metrics"), rows))
    return found


def differences(content: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """(field, base, new, weight) of each difference between the two fingerprints."""
    found = (content.get("fingerprint") or {}).get("differences") or []
    return [
        (
            clean(entry["name"], LONGEST_NAME),
            words(entry.get("base")),
            words(entry.get("new")),
            "cannot be compared" if entry.get("hard") else "noted",
        )
        for entry in found
    ]


def sides(content: dict[str, Any]) -> list[str]:
    """What was compared, one line per side."""
    lines = []
    for side in ("base", "new"):
        about = content.get(side) or {}
        known = [words(about["kind"])] if about.get("kind") else []
        if isinstance(about.get("reps"), int) and about["reps"]:
            known.append(format_count(about["reps"], "repetition"))
        parts = [words(about.get("label")) + (f" ({', '.join(known)})" if known else "")]
        parts += [f"workload {words(about['workload'])}"] if about.get("workload") else []
        parts += [f"revision {revision(about['git'])}"] if about.get("git") else []
        parts += [f"measured {words(about['created_at'])}"] if about.get("created_at") else []
        lines.append(f"{side}: {', '.join(parts)}")
    return lines


def revision(git: object) -> str:
    """The first ten signs of a commit, and whether files had been changed."""
    if not isinstance(git, dict) or not git.get("revision"):
        return words(git)
    return clean(git["revision"], LONGEST_NAME)[:10] + (" with changes" if git.get("dirty") else "")


def looks(content: dict[str, Any]) -> list[str]:
    """When it is judged again; empty when it is not."""
    following = content.get("next_look")
    return [] if following is None else [f"the next check is after {following} repetitions per side"]


def reason(metric: dict[str, Any]) -> str:
    """Why a metric has its verdict, and what more repetitions would show; empty when there is nothing to say."""
    more = needed(metric) if metric.get("alpha") is not None else ""
    return "; ".join(part for part in (clean(metric.get("reason") or ""), more) if part)


def needed(metric: Mapping[str, Any]) -> str:
    """What more repetitions would show of a metric; empty where no number helps."""
    number, finds = metric.get("reps_needed"), metric.get("reps_find")
    if number and metric.get("alpha") is None:
        return f"at least {number} repetitions per side are needed"
    return gate.needed(number, finds if _is_number(finds) else None) if number else ""


def words(what: object) -> str:
    """A value of unknown kind as one short line; `-` for None."""
    if what is None:
        return "-"
    if isinstance(what, dict):
        return clean(", ".join(_pairs(what)), LONGEST_NAME) or "-"
    return clean(what, LONGEST_NAME)


def workload_name(content: dict[str, Any]) -> str:
    """Name of the workload, as it was given; empty when there is none."""
    named = ((about or {}).get("workload") for about in (content, content.get("new"), content.get("base")))
    return str(next(filter(None, named), ""))


def workload(content: dict[str, Any]) -> str:
    """Name of the workload, safe in a file name or a comment mark; empty when there is none."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", workload_name(content))[:80].strip("-")


def title(content: dict[str, Any]) -> str:
    """`pipeprof: regressed`, with the workload when it has a name."""
    name = workload(content)
    return f"pipeprof: {name + ': ' if name else ''}{content['verdict']}"


def _pairs(what: dict[Any, Any]) -> Iterable[str]:
    return (f"{key} {item}" for key, item in what.items() if item is not None)


def _family(metric: dict[str, Any], known: list[str]) -> str | None:
    family = metric.get("family")
    return family if family in known else None


def _rank(verdict: str) -> int:
    return ORDER.index(verdict) if verdict in ORDER else -1


def _plain(number: float) -> str:
    return f"{int(number):,}" if number == int(number) else f"{number:.4g}"


def _is_number(what: object) -> bool:
    return isinstance(what, (int, float)) and not isinstance(what, bool)


def _one(what: Any, unit: str) -> str:
    return value(what, unit) if _is_number(what) else words(what)


MOST_LINES = 10
MOST_NAMED = 3  # operators of other names or shapes that are listed one by one
LARGE = 0.10  # of the step's change: an operator that came or went is listed all the same
PROVEN = ("regressed", "improved", "acknowledged")


class Line(NamedTuple):
    """One line: the cells of a table, and all of them as one sentence."""

    what: str
    base: str = ""
    new: str = ""
    share: str = "-"  # of the step's change

    @property
    def text(self) -> str:
        """The line as a sentence."""
        numbers = f": {self.base} -> {self.new}" if self.base else ""
        return self.what + numbers + ("" if self.share == "-" else f", {self.share} of the step's change")


def why_title(content: dict[str, Any]) -> str:
    """What stands above the lines: only a change that was judged has a cause."""
    if content["verdict"] in PROVEN:
        return "Why"
    return "Possible causes" if content["verdict"] == "inconclusive" else "What changed"


def lines(content: dict[str, Any]) -> list[Line]:
    """At most ten, in the order of the explanation; operators that hardly matter are folded into one."""
    entries: Sequence[Entry] = content.get("explanation") or []
    renamed = _small(entries, "appeared", "vanished")
    reshaped = _small(entries, "changed")
    folded = [group for group in (renamed, reshaped) if len(group) > MOST_NAMED]
    hidden = {id(entry) for group in folded for entry in group}
    single = [entry for entry in entries if id(entry) not in hidden]
    room = MOST_LINES - len(folded)
    shown = single if len(single) <= room else single[: room - 1]
    found = [*map(line, shown), *(Line(_summed_up(group)) for group in folded)]
    rest = len(single) - len(shown)
    return [*found, Line(f"and {rest} more: --format json")] if rest else found


def _small(entries: Sequence[Entry], *changes: str) -> list[Entry]:
    """Operators that came, went or became others, without a large share of the step's change of their own."""
    return [
        entry
        for entry in entries
        if entry.get("kind") == "structure"
        and str(entry.get("name")).startswith("op ")
        and entry.get("change") in changes
        and abs(entry.get("share") or 0.0) < LARGE
    ]


def _summed_up(group: Sequence[Entry]) -> str:
    found = {entry["change"] for entry in group}
    if found == {"changed"}:
        return f"{len(group)} operators have other types or shapes: another batch size?"
    if len(found) == 1:
        return f"{len(group)} operators {found.pop()}"
    return f"{len(group)} operators have other names: another library version?"


def line(entry: Entry) -> Line:
    """One entry of the explanation."""
    share = entry.get("share")
    part = "-" if share is None else f"{_whole(share)} %"
    said = entry.get("text") or f"{entry.get('what') or entry.get('name') or ''} {entry.get('change', '')}"
    base, new = ("-", "-") if entry.get("kind") == "structure" else values(entry)
    return Line(clean(said, LONGEST_NAME), *(("", "") if (base, new) == ("-", "-") else (base, new)), part)


def _whole(share: float) -> str:
    """A share in whole per cent; what rounds to nothing has no sign."""
    text = f"{share * 100:.0f}"
    return "0" if text == "-0" else text
