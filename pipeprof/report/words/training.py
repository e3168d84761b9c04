"""What is said of the steps of a training: waits for data, two lengths, that they become slower."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pipeprof.report.words import joined
from pipeprof.report.words.names import PHASES
from pipeprof.units import format_ns, percent
from pipeprof.verdict.rules import MODERATE_WAIT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Modes = Mapping[str, Any]

ORIGINS = {"collect": "the launch"}
RECORDING = "the beginning of the recording"  # of another program, whose launch is not known
FROM_BOOT_NS = 86_400_000_000_000  # who begins later counts from when its machine started


def origin_of(content: Mapping[str, Any]) -> str:
    """What the times of a run count from."""
    return ORIGINS.get(content["run"]["source"], RECORDING)


def moment(content: Mapping[str, Any], time_ns: float) -> str:
    """`, 3.20 s after the launch`; empty where times count from another moment than this run's."""
    return "" if time_ns > FROM_BOOT_NS else f", {format_ns(time_ns)} after {origin_of(content)}"


SLOWER = ("step", "drift")
DRIFT_CAUSES = {
    "recompilation": "graphs are compiled again",
    "memory_growth": "the memory of the training process grows",
    "neighbour": "other programs take more CPU",
    "throttling": "the job is throttled by its CPU quota",
}


def drift(row: Mapping[str, Any]) -> str:
    """`10.0 ms to 20.0 ms, mostly in waiting for data`; only for the verdicts in SLOWER."""
    ends = (" (first third)", " (last third)") if row["verdict"] == "drift" else ("", "")
    times = f"{format_ns(row['before_ns'])}{ends[0]} to {format_ns(row['after_ns'])}{ends[1]}"
    return f"{times}, mostly in {PHASES[row['phase']]}" if row["phase"] else times


def drift_sentence(content: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """What a row of verdict/drift.judge_course says of a report's run; only for the verdicts in SLOWER."""
    if row["verdict"] == "step":
        when = moment(content, row["at_ns"])
        text = f"the steps become slower at about step {row['at_step']}{when}: the median step rises from {drift(row)}"
    else:
        text = f"the steps become slower and slower as the training runs: the median step rises from {drift(row)}"
    causes = " and ".join(DRIFT_CAUSES[code] for code in row["causes"])
    return f"{text}; " + (f"at the same time {causes}" if causes else "cause not recorded")


_DIFFERS = {
    "data": "wait for their data",
    "neighbour": "have other programs beside them, which take {neighbour_cores} cores",
    "delay": "wait for a core",
    "fewer_cores": "use fewer cores ({own_cores})",
    "more_cores": "use more cores ({own_cores})",
    "later": "come later in the run",
    "earlier": "come earlier in the run",
}


def two_lengths(modes: Modes) -> str:
    """`two lengths: 98.0 ms (60 % of the steps) and 1.90 s (40 %)`."""
    short, long = modes["short"], modes["long"]
    first = f"{format_ns(short['median_ns'])} ({percent(short['share'])} of the steps)"
    return f"two lengths: {first} and {format_ns(long['median_ns'])} ({percent(long['share'])})"


def length_difference(modes: Modes) -> str:
    """What the long steps have that the short ones have not, as a sentence."""
    short, long = modes["short"], modes["long"]
    names = ("own_cores", "neighbour_cores")
    numbers = {
        name: f"{long[name]:.1f} instead of {short[name]:.1f}"
        for name in names
        if short[name] is not None and long[name] is not None
    }
    said = [_DIFFERS[code].format(**numbers) for code in modes["differs"]]
    if not said:
        return "The record has nothing that tells the long steps from the short ones."
    return f"The long steps {joined(said)}."


TIMES = {1: "once", 2: "twice"}
MOST_SITES = 3
EVEN = 0.05  # so far from a whole number it is still said as one


def repeated_passes(passes: dict[str, Any], rank: int | None = None) -> list[str]:
    """One sentence for each network whose forward pass runs more often per step than gradients are taken.

    Of one rank, or of the first that has any.
    """
    rows = next(iter(passes.values()), []) if rank is None else passes.get(f"rank {rank}", [])
    return [_said(row) for row in rows]


def _said(row: dict[str, Any]) -> str:
    sites = [_site(site) for site in row["sites"]]
    listed = joined(sites if len(sites) <= MOST_SITES else [*sites[:MOST_SITES], f"{len(sites) - MOST_SITES} more"])
    return f"the forward pass of {row['network']} runs {_often(row['per_step'])} per step: {listed}"


def _often(per_step: float) -> str:
    number = round(per_step)
    return TIMES.get(number, f"{number} times") if abs(per_step - number) < EVEN else f"{per_step:.1f} times"


def _site(site: dict[str, Any]) -> str:
    where = f"`{site['site'].rpartition('/')[2]}`" if site["site"] else "a library"
    return where if site["gradient"] else f"{where} ({format_ns(site['dur_ns'])}, no gradients taken)"


LEAST_WAIT = 0.01  # a smaller share is said without its digits: nobody does anything about it
NEAR_WAITS = 0.01  # apart by less, two shares are one piece of news
LITTLE_WAIT = 0.05  # two shares below it are one bound: nobody acts on the difference
READY, AT_TIMES = "the data is ready in time", "the training waits for its data only now and then"
NEXT_TO_NOTHING = "less than 1 %"


def data_wait(diagnosis: Mapping[str, Any], shown: Callable[[float], str] = percent) -> str:
    """`32 % of the time in the steady state, 38 % in all steps`; `82 to 83 % of the time` where both are nearly one.

    Two small ones are `less than 3 % of the time`, which is true of both; with the digits of a table, as others are.

    `diagnosis`: one whose `data_wait_share` is known. Rules go by the steady state; steps that fill the queues of
    each epoch are in the other number, which is the one of collect's summary and of the section on steps.
    """
    steady, overall = diagnosis["data_wait_share"], diagnosis.get("data_wait_share_all_steps")
    low, high = sorted((steady, steady if overall is None else overall))
    if wait_share(low, shown) == wait_share(high, shown):
        return f"{wait_share(low, shown)} of the time"
    if shown is percent and high < LITTLE_WAIT:
        return f"less than {math.floor(high * 100) + 1} % of the time"
    if high - low < NEAR_WAITS:
        return f"{shown(low).removesuffix(' %')} to {shown(high)} of the time"
    return (
        f"{wait_share(steady, shown)} of the time in the steady state, {wait_share(overall or 0.0, shown)} in all steps"
    )


def data_in_time(diagnosis: Mapping[str, Any]) -> str:
    """Of a training that its data does not hold up: that the data is ready in time, or at times is not."""
    share = diagnosis["data_wait_share"]
    return AT_TIMES if share is not None and share >= MODERATE_WAIT else READY


def wait_share(share: float, shown: Callable[[float], str] = percent) -> str:
    """A share in a sentence: `32 %`, or `less than 1 %`."""
    return NEXT_TO_NOTHING if share < LEAST_WAIT else shown(share)
