"""What a comparison was judged by, and what the judged change does to that, in sentences. No markup here."""

from __future__ import annotations

from typing import Any

from pipeprof.report.compare.rows import LONGEST_NAME, LONGEST_TEXT, clean
from pipeprof.units import format_count

MOST = 12  # settings of one edit, and edits, in a report; the JSON has all
_EFFECTS = {"looser": "looser", "stricter": "stricter"}
_ELSEWHERE = {"given": "given by the program", "unknown": "not known"}
_POSSIBLE = {"possible_policy", "not_listed"}
_MEASURED = "workload"  # most changes edit the script that is measured: nothing to warn of
_VERBS = {"added": "adds", "removed": "removes"}


def edits(content: dict[str, Any]) -> list[str]:
    """What the change edits of the policy, the baseline and the check; empty when nothing is known."""
    return _cut([_edit(one) for one in _edits(content) if one.get("kind") != _MEASURED], "file")


def measured(content: dict[str, Any]) -> list[str]:
    """What the change edits of the files that the measured command names."""
    return _cut([_edit(one) for one in _edits(content) if one.get("kind") == _MEASURED], "file")


def title(content: dict[str, Any]) -> str:
    """What stands over `edits`."""
    kinds = {one.get("kind") for one in _edits(content)} - {_MEASURED}
    return f"This change {'may edit' if kinds <= _POSSIBLE else 'edits'} what it is judged by"


def basis(content: dict[str, Any]) -> list[str]:
    """Which settings and baseline were used, from which revision, and each departure from the defaults."""
    trust = content.get("trust") or {}
    if not trust:
        return []
    lines = [_policy(trust.get("policy") or {}, trust.get("base_revision"))]
    if trust.get("baseline"):
        lines.append(f"baseline: {_named(trust['baseline'])} of the base revision {_short(trust.get('base_revision'))}")
    return lines + [f"departs from the defaults: {_setting(one)}" for one in trust.get("departures") or []]


def loosens(content: dict[str, Any]) -> bool:
    """Whether the change edits the settings or the baseline that it is judged by."""
    return any(one.get("kind") in ("policy", "baseline") for one in _edits(content))


def _edits(content: dict[str, Any]) -> list[dict[str, Any]]:
    return (content.get("trust") or {}).get("edits") or []


def _policy(policy: dict[str, Any], base: str | None) -> str:
    path, revision = policy.get("path"), policy.get("revision")
    origin = policy.get("origin")
    if origin == "revision":
        return f"policy: {_named(path)} of the base revision {_short(revision)}"
    if origin == "working_tree":
        at = f" at revision {_short(revision)}" if revision else ""
        return f"policy: {_named(path)} of the working tree{at}" + (
            ", not as committed" if policy.get("changed") else ""
        )
    judged = f"; the base revision is {_short(base)}" if base else ""
    if origin == "file":
        return f"policy: {_named(path)}{judged}"
    if origin in _ELSEWHERE:
        return f"policy: {_ELSEWHERE[origin]}{judged}"
    return "policy: the defaults" + (f"; the base revision {_short(base)} has no settings" if base else "")


def _edit(edit: dict[str, Any]) -> str:
    verb, name = _VERBS.get(str(edit.get("change")), "edits"), _named(edit.get("path"))
    kind = edit.get("kind")
    if kind == "not_listed":
        listed = clean(edit.get("path"), LONGEST_NAME)
        return f"GitHub lists only {listed} files of this change: it may edit more than is told here"
    merged = "that counts once it is merged"
    said = {
        "policy": f"the policy {name}{_what_changes(edit)}: {merged}",
        "baseline": f"the baseline in {name}: {merged}",
        "alerts": f"what was decided about alerts, {name}: {merged}",
        "possible_policy": f"{name}, which may hold settings of the gate: they count once it is merged",
        "ci": f"{name}, which may say what is measured and how",
    }
    return f"this change {verb} {said.get(str(kind), f'{name}, which the measured command names')}"


def _what_changes(edit: dict[str, Any]) -> str:
    if edit.get("problem"):
        return f" (it cannot be read: {clean(edit['problem'], LONGEST_TEXT)})"
    found = sorted(edit.get("settings") or [], key=lambda one: one.get("effect") != "looser")  # a long list hides none
    settings = _cut([_setting(one) for one in found], "setting")
    return f" ({'; '.join(settings)})" if settings else ""


def _setting(one: dict[str, Any]) -> str:
    effect = _EFFECTS.get(str(one.get("effect")))
    key, before, after = clean(one.get("key"), LONGEST_NAME), one.get("reference"), one.get("value")
    if key == "acknowledge":
        said = (
            _acknowledgement(after, "accepts") if after is not None else _acknowledgement(before, "no longer accepts")
        )
    elif key == "ignore_fingerprint":
        said = f"`{key}` no longer has {_value(before)}" if after is None else f"`{key}` has {_value(after)}"
    else:
        said = f"`{key}` is {_value(after)} instead of {_value(before)}"
    return said + (f" ({effect})" if effect else "")


def _acknowledgement(entry: Any, verb: str) -> str:
    entry = entry if isinstance(entry, dict) else {}
    where = "" if entry.get("workload") in (None, "*") else f" of {_named(entry.get('workload'))}"
    return (
        f"{verb} {_named(entry.get('metric'))}{where} up to {_value(entry.get('max_ratio'))} times as large until "
        f"{_value(entry.get('expires'))}: {_value(entry.get('reason'))}"
    )


def _value(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(_value(one) for one in value)
    return clean(f"{value:g}" if isinstance(value, float) else value, LONGEST_NAME).replace("`", "'")


def _named(what: Any) -> str:
    return f"`{clean(what, LONGEST_NAME).replace('`', chr(39))}`"


def _short(revision: Any) -> str:
    return clean(revision, LONGEST_NAME)[:10] if revision else "(not known)"


def _cut(lines: list[str], what: str) -> list[str]:
    """At most MOST of them, and how many there are besides."""
    more = len(lines) - MOST
    return lines if more <= 0 else [*lines[:MOST], f"and {format_count(more, 'more ' + what)}"]
