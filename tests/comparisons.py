"""Comparisons as `pipeprof compare --format json` prints them, for the tests of what shows them."""

import copy

EXIT = {
    "unchanged": 0, "improved": 0, "acknowledged": 0, "regressed": 1, "incomparable": 3, "missing": 3, "inconclusive": 4,
}  # fmt: skip
HOSTILE = "x`|<img src=//evil.example onerror=alert(1)> **b** @octocat #1\r\n::error::pwned ]]> \x1b[2J\u202e"
HEADLINE = "Regressed: step time +8.3 % (95 % interval +6.9 to +9.8 %), because the wait for map `decode` grew to 2.1x"


def metric(name="step_time_median", verdict="unchanged", **other):
    return {
        "name": name, "unit": "ns", "direction": "lower", "family": "primary", "verdict": verdict, "base": 12_000_000.0,
        "new": 12_996_000.0, "ratio": 1.083, "ci_low": 1.069, "ci_high": 1.098, "p_value": 0.0001, "alpha": 0.002,
        "min_effect": 0.02, "counts_below": 11_764_706.0, "counts_above": 12_240_000.0, "reps_base": 8, "reps_new": 8,
        "reps_needed": None, "reps_find": None, "reason": "",
        "reason_facts": [],
    } | other  # fmt: skip


def comparison(verdict="regressed", /, metrics=None, **other):
    side = {"label": "run", "kind": "run", "workload": "demo", "reps": 8, "created_at": "2026-01-01T00:00:00Z",
            "git": {"revision": "0123456789abcdef", "dirty": False}}  # fmt: skip
    cause = {
        "what": "phase data_wait", "kind": "phase", "name": "data_wait", "change": "grew", "base": 1e6, "new": 2.1e6,
        "unit": "ns", "ratio": 2.1, "share": 0.9, "text": "the wait for map `decode` grew to 2.1x", "proven": True,
        "place_base": None, "place_new": None,
    }  # fmt: skip
    return copy.deepcopy({
        "schema_version": 1, "workload": "", "verdict": verdict, "exit_code": EXIT[verdict], "headline": HEADLINE,
        "metrics": [metric(verdict=verdict)] if metrics is None else metrics, "explanation": [cause],
        "fingerprint": {"same": True, "differences": []}, "notes": ["the sides were not interleaved"],
        "base": side | {"label": "base"}, "new": side | {"label": "new"}, "looks": [5, 8, 12], "next_look": None,
        "trust": trust(), "session": None, "limits": None, "check": None, "confirmation": None, "repetitions": [], "curves": {"base": [], "new": []},
        "pipelines": {"base": [], "new": []},
    } | other)  # fmt: skip


def trust(edits=(), departures=(), **policy):
    """The member of that name; the base revision is all b."""
    origin = {"origin": "revision", "path": "pipeprof.toml", "revision": "b" * 40, "changed": False}
    return {"policy": origin | policy, "departures": list(departures), "base_revision": "b" * 40,
            "baseline": "baselines/demo", "edits": list(edits)}  # fmt: skip


def setting(key="alpha", reference=0.008, value=0.0001, effect="looser"):
    return {"key": key, "reference": reference, "value": value, "effect": effect}


def edit(kind="policy", path="pipeprof.toml", change="edited", settings=(), problem=""):
    return {"kind": kind, "path": path, "change": change, "settings": list(settings), "problem": problem}


def hostile(verdict="regressed"):
    """Every text of the content means something to some reader of the output."""
    content = comparison(verdict, metrics=[metric(HOSTILE, verdict, reason=HOSTILE, unit="ns")], headline=HOSTILE)
    content["explanation"][0] |= {"text": HOSTILE, "name": HOSTILE}
    content["fingerprint"] = {
        "same": False,
        "differences": [{"name": HOSTILE, "base": HOSTILE, "new": None, "hard": True}],
    }
    content["notes"] = [HOSTILE]
    entry = {"metric": HOSTILE, "max_ratio": 9.0, "reason": HOSTILE, "expires": HOSTILE, "workload": HOSTILE}
    wild = [
        setting(HOSTILE, HOSTILE, [HOSTILE]),
        setting("acknowledge", None, entry),
        setting("acknowledge", HOSTILE, None),
    ]
    content["trust"] = trust(
        [edit(kind, HOSTILE, HOSTILE, wild, problem) for kind in ("policy", HOSTILE) for problem in ("", HOSTILE)], wild,
        path=HOSTILE, revision=HOSTILE,
    )  # fmt: skip
    content["new"] = {"label": HOSTILE, "workload": HOSTILE, "git": {HOSTILE: HOSTILE}, "reps": 8}
    return content
