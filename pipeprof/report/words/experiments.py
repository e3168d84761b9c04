"""What is to be noted about pairs of runs, sessions and sweeps, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pipeprof.record.text import shortened
from pipeprof.report.words import first_of
from pipeprof.units import format_count

Facts = Mapping[str, Any]
MOST_NAMED = 3  # arguments of a side


def noted(facts: Iterable[Facts]) -> dict[str, Any]:
    """The members `notes`, sentences, and `note_facts`, the codes and numbers behind them, of a result."""
    note_facts = list(facts)
    return {"notes": [sentence(one) for one in note_facts], "note_facts": note_facts}


def reasoned(facts: Facts | None) -> dict[str, Any]:
    """The members `reason`, a clause that is empty without one, and `reason_facts` of a recommendation."""
    return {"reason": "" if facts is None else sentence(facts), "reason_facts": facts}


def sentence(facts: Facts) -> str:
    """One code of an experiment."""
    return WORDS[facts["code"]](facts)


def _earlier(facts: Facts) -> str:
    ended = ", ".join(
        f"{old['verdict'] or 'undecided'} after {old['repetitions']} repetitions per side" for old in facts["earlier"]
    )
    return f"session {len(facts['earlier']) + 1} of this comparison; the earlier ones ended {ended}"


def _listed(arguments: Sequence[str]) -> str:
    """`--lr 1`, `data.csv` and 2 more."""
    return first_of([f"`{shortened(one)}`" for one in arguments], MOST_NAMED)


WORDS: dict[str, Callable[[Facts], str]] = {
    "same_batch": lambda _: "every step got the same batch, so what its content does to the speed is not included",
    "outputs_repeat": lambda _: (
        "the first outputs come back again and again: random augmentation repeats, and what the content of a row does "
        "to the speed is not included"
    ),
    "handed_out": lambda facts: (
        f"replaying outputs takes Python a little time itself ({facts['outputs_per_step']:.4g} per step), so the true "
        "gain is slightly larger, and a very cheap operator shows none"
    ),
    "different_steps": lambda facts: (
        f"the runs had different numbers of training steps: {', '.join(map(str, facts['steps']))}"
    ),
    "only_informs": lambda _: "the conditions differ, so this comparison only informs and cannot fail",
    "not_interleaved": lambda _: (
        "the two sides were measured one after the other, so a drift of the machine looks like a change: `pipeprof ab` "
        "runs them in turn"
    ),
    "other_job": lambda _: (
        "the two sides were measured in different CI jobs, or before and after a restart of the machine: `pipeprof ab` "
        "runs both in one"
    ),
    "other_workload": lambda facts: f"the workloads have different names: `{facts['base']}` and `{facts['new']}`",
    "other_arguments": lambda facts: (
        "the arguments of the commands differ: "
        + ", ".join(f"only {side} has {_listed(facts[side])}" for side in ("base", "new") if facts[side])
    ),
    "same_revision": lambda _: "both sides are of the same git revision",
    "uncommitted": lambda facts: f"{facts['arm']} is the working tree, with changes that are not committed",
    "same_file": lambda facts: (
        f"both sides run `{facts['path']}` as it is now, whatever their revision: give a relative path"
    ),
    "earlier_sessions": _earlier,
    "repeated": lambda facts: (
        f"repeated: {format_count(len(facts['failures']), 'failed run')}: {'; '.join(facts['failures'])}"
    ),
    "set_aside": lambda facts: (
        f"{format_count(facts['runs'], 'run')} made again: other virtual machines on the same host took up to "
        f"{100 * facts['most']:.0f} % of the CPU time"
    ),
    "session_continued": lambda facts: (
        f"the session was interrupted and continued {format_count(facts['times'], 'time')}"
    ),
    "session_budget": lambda facts: (
        f"stopped early: of the time budget of {facts['budget_s']:g} s {facts['used_s']:g} s are used, and the check "
        f"after {facts['look']} repetitions per side needs about {facts['needed_s']:g} s more"
    ),
    "session_planned": lambda facts: (
        f"planned within the time budget of {facts['budget_s']:g} s, of which {facts['used_s']:g} s are used: "
        f"only {facts['runs']} of {facts['last']} repetitions per side fit into it; the last check used up the "
        "allowed chance of a false alarm, so more time needs a fresh session (--new-session)"
    ),
    "session_hopeless": lambda facts: (
        f"stopped early after {facts['runs']} repetitions per side: at this noise the check after {facts['last']} "
        "would most likely not tell either (--to-the-end goes on)"
    ),
    "pool_budget": lambda facts: (
        f"stopped after {facts['rounds']} of {facts['planned']} rounds by the time budget of {facts['budget_s']:.0f} s"
    ),
    "same_rounds": lambda facts: (
        f"all comparisons are made of the same {facts['rounds']} rounds with {2 * facts['rounds']} runs of the command "
        "as it is: the intervals do not say how typical these runs were"
    ),
    "used_again": lambda facts: (
        f"a comparison needs up to {facts['looks']} repetitions per side, and there are {facts['rounds']} rounds: a "
        "run is used several times, each time with half of the deviation of another run added; with --rounds "
        f"{facts['looks']} each is used once"
    ),
    "variant_failed": lambda facts: f"{facts['variant']} failed in `{facts['run']}`: {facts['error']}",
    "variant_prepared": lambda facts: (
        f"`{facts['variant']}` was prepared once, in {facts['seconds']:.1f} s: this time is not part of any stage"
    ),
    "sweep_continued": lambda facts: f"the sweep was interrupted and continued {format_count(facts['times'], 'time')}",
    "sweep_budget": lambda facts: (
        f"stopped by the budget of {facts['budget_s']:g} s, of which {facts['used_s']:g} s are used: the next round "
        f"needs about {facts['needed_s']:g} s; more time goes on from here"
    ),
    "no_repetitions": lambda _: (
        "these numbers have no repetitions: noise is guessed from baselines that were measured repeatedly"
    ),
    "no_cost": lambda facts: (
        f"set-up and steady step were not both measured, so no row can be called the best for "
        f"{format_count(facts['steps'], 'step')}"
    ),
    "confirmed": lambda _: "confirmed in fresh repetitions",
    "none_better": lambda _: "nothing that was run is better than the base",
    "not_better_again": lambda _: "what was best was not better again in fresh repetitions",
    "not_confirmed": lambda _: "the search ended before its best variant was confirmed",
    "measured_once": lambda _: "a table without repetitions: measure it again",
}
