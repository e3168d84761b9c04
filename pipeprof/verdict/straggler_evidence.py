"""What led to the name of a straggler: each number with its query and what it was measured on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.units import format_ns, format_ratio
from pipeprof.verdict.evidence import evidence

if TYPE_CHECKING:
    from collections.abc import Mapping

    Row = Mapping[str, Any]

PHASES = {
    "data_wait": "the wait for data", "forward": "the forward pass", "backward": "the backward pass",
    "optimizer": "the optimizer", "host_gap": "Python and framework code on the host", "other": "other operators",
    "computing": "computing on the device", "free": "time in which the device is idle",
    "forward_backward": "forward+backward", "tail": "the tail", "compute": "compute", "step": "the step",
    "until_bp": "the step up to BP", "own": "own time (without communication)",
    "communication": "communication (the longest waits)",
}  # fmt: skip
MEASURES = {
    "own": "own time (the step without communication)", "until_bp": "time up to BP", "data_wait": "wait for data",
    "step": "length of the step",
}  # fmt: skip
_DIFF, _ARRIVAL = "rank/phase_diff", "rank/last_arrival"


def of_rank(item: Row) -> list[dict[str, Any]]:
    """Of one rank that stragglers() found."""
    who = f"rank {item['rank']}"
    found = _now_and_then(who, item) if item["kind"] == "sometimes" else _always(who, item)
    if item["arrival"] and item["arrival"]["caused_ns"]:
        found += _arrival(who, item["arrival"])
    return found


def _now_and_then(who: str, item: Row) -> list[dict[str, Any]]:
    """Medians over the steps do not show it."""
    basis = f"in {item['held_up_steps']} of {item['steps']} steps over a tenth of a step longer; {item['ranks']} ranks"
    what = f"{who}: {MEASURES[item['measure']]} longer than the others', spread over all steps"
    return [evidence(what, item["excess_ns"], "ns", _DIFF, basis)]


def _always(who: str, item: Row) -> list[dict[str, Any]]:
    steps = f"{item['steps']} step{'' if item['steps'] == 1 else 's'} of {item['ranks']} ranks"
    noise = "" if item["noise_ns"] is None else f"; standard error {format_ns(item['noise_ns'])}"
    limit = f"counts from {format_ns(item['needed_ns'])} on"
    what = f"{who}: {MEASURES[item['measure']]} longer than the others'"
    found = [evidence(what, item["excess_ns"], "ns", _DIFF, f"{steps}{noise}; {limit}")]
    if item["phase"] != item["measure"]:
        what = f"{who}: {PHASES[item['phase']]} longer"
        found.append(evidence(what, item["phase_excess_ns"], "ns", _DIFF, "the same steps"))
    less = item["communication_less_ns"]
    if less is not None:
        basis = "there they wait for it" if less >= 0 else "it does not make them wait there"
        found.append(evidence(f"{who}: communication shorter than the others'", less, "ns", _DIFF, basis))
    return found


def _arrival(who: str, arrival: Row) -> list[dict[str, Any]]:
    kind = arrival["collective_kind"] or "collective"
    where = f"most of it in {kind} `{arrival['collective']}`; matched by name, overlapping waits count again"
    chance = f"{arrival['events']} collectives; by chance {format_ratio(arrival['expected_share'])}"
    return [
        evidence(f"{who}: last to arrive", arrival["last_share"], "share", _ARRIVAL, chance),
        evidence(f"{who}: each other rank waits for it per step", arrival["per_rank_ns"], "ns", _ARRIVAL, where),
    ]


_DEVICE = "compare its batch and input shapes, the clock and the temperature of its device, and what else runs there"
_HOST = "look for what only it does in a step (logging, checkpoints, printing), and for other load on its machine"
_RARE = "look for what it does now and then: checkpoints, logging, evaluation, garbage collection, other programs"
_ADVICE = {
    "data_wait": "its input is slower than the others': look at its data pipeline and where it reads from",
    "host_gap": _HOST,
    "free": _HOST,
}


def suggestions(item: Row) -> list[str]:
    """What to look at on a rank that stragglers() found, and what it can bring at most."""
    advice = _RARE if item["kind"] == "sometimes" else _ADVICE.get(item["phase"], _DEVICE)
    found = [f"rank {item['rank']}: {advice}"]
    if item["share"] < 1:
        gain = 1 / (1 - item["share"])
        found.append(f"with rank {item['rank']} as fast as the others a step is at most {gain:.2f} times as fast")
    return found
