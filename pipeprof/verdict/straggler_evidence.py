"""What led to the name of a straggler: each number with its query and what it was measured on, as codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.verdict.evidence import evidence, on

if TYPE_CHECKING:
    from collections.abc import Mapping

    Row = Mapping[str, Any]

_DIFF, _ARRIVAL = "rank/phase_diff", "rank/last_arrival"


def of_rank(item: Row) -> list[dict[str, Any]]:
    """Evidence on one rank that stragglers() found."""
    lines = _now_and_then(item) if item["kind"] == "sometimes" else _always(item)
    if item["arrival"] and item["arrival"]["caused_ns"]:
        lines += _arrival(item["rank"], item["arrival"])
    return lines


def _now_and_then(item: Row) -> list[dict[str, Any]]:
    """Evidence on a rank that is slow now and then, which medians over the steps do not show."""
    steps = on("held_up_steps", held_up=item["held_up_steps"], steps=item["steps"], ranks=item["ranks"])
    who = {"rank": item["rank"], "measure": item["measure"]}
    return [evidence("rank_measure_sometimes", item["excess_ns"], "ns", _DIFF, steps, **who)]


def _always(item: Row) -> list[dict[str, Any]]:
    rank = item["rank"]
    names = ("steps", "ranks", "noise_ns", "needed_ns")
    steps = on("compared_steps", **{name: item[name] for name in names})
    lines = [evidence("rank_measure", item["excess_ns"], "ns", _DIFF, steps, rank=rank, measure=item["measure"])]
    if item["phase"] != item["measure"]:
        same = on("same_steps")
        lines.append(evidence("rank_phase", item["phase_excess_ns"], "ns", _DIFF, same, rank=rank, phase=item["phase"]))
    less = item["communication_less_ns"]
    if less is not None:
        wait = on("they_wait" if less >= 0 else "they_do_not_wait")
        lines.append(evidence("rank_communication", less, "ns", _DIFF, wait, rank=rank))
    return lines


def _arrival(rank: int, arrival: Row) -> list[dict[str, Any]]:
    chance = on("collectives", events=arrival["events"], expected_share=arrival["expected_share"])
    where = on("collective", kind=arrival["collective_kind"], name=arrival["collective"])
    return [
        evidence("last_to_arrive", arrival["last_share"], "share", _ARRIVAL, chance, rank=rank),
        evidence("waits_for_rank", arrival["per_rank_ns"], "ns", _ARRIVAL, where, rank=rank),
    ]


_CAUSES = {"data_wait": "input", "host_gap": "host", "free": "host"}


def suggestions(item: Row) -> list[dict[str, Any]]:
    """What to look at on a rank that stragglers() found, and what it can bring at most."""
    code = "rare" if item["kind"] == "sometimes" else _CAUSES.get(item["phase"], "device")
    advice: list[dict[str, Any]] = [{"code": code, "rank": item["rank"]}]
    if item["share"] < 1:
        advice.append({"code": "bound", "rank": item["rank"], "times": 1 / (1 - item["share"])})
    return advice
