"""`pipeprof ab`: both arms in turn in one job, judged at planned looks, until it is decided or the time is over."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.experiment.arms import ArmWish, Workspace, checked_out, pair_hash, resolve_arms
from pipeprof.experiment.confirmation import check_same, read_first
from pipeprof.experiment.forecast import before
from pipeprof.experiment.interleaved import Interleaved
from pipeprof.experiment.journal import session_folder
from pipeprof.experiment.repetition import Bench
from pipeprof.experiment.session import load_session, new_session, open_session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pipeprof.verdict.gate.policy import Policy


@dataclass(frozen=True)
class AbWish:
    """What the user asks for. `budget_s`: seconds that all repetitions of the session may take together.

    `planted`: every step of the new side is made longer by this share, as a test of the gate itself. `workload`: what
    it is called in the result. `to_the_end`: also when the looks that follow will most likely not decide. `confirms`:
    the result of another runner, see `confirmation.py`.
    """

    base: ArmWish
    new: ArmWish
    command: tuple[str, ...] = ()
    folder: Path | None = None
    budget_s: float | None = None
    new_session: bool = False
    to_the_end: bool = False
    planted: float | None = None
    workload: str = ""
    confirms: Path | None = None
    seed: int | None = None


def run_ab(
    wish: AbWish, policy: Policy, say: Callable[[str], None], bench: Bench | None = None,
    trust: Mapping[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Measure and judge; writes `compare.json` and returns its content, that of `pipeprof compare` and `session`.

    `trust`: what it is judged by, see `judged_arms`.
    Raises UsageError for arms that cannot be, MeasureError for a session of another machine or job, WorkloadError when
    an arm fails, KeyboardInterrupt when it was interrupted: the session can be continued then.
    """
    workspace = Workspace.here()
    arms = resolve_arms(workspace, wish.base, wish.new, wish.command, planted=wish.planted is not None)
    first = read_first(workspace.cwd / wish.confirms, policy) if wish.confirms is not None else None
    rules_hash = policy_hash(policy) + (f"-planted-{wish.planted:g}" if wish.planted is not None else "")
    rules_hash += f"-confirms-{first.session.session_id}" if first is not None else ""
    pair = pair_hash(workspace, arms, rules_hash)
    folder = workspace.cwd / (wish.folder or f"pipeprof-ab-{pair}")
    if wish.budget_s is not None:
        policy = msgspec.structs.replace(policy, budget_s=wish.budget_s)
    bench = bench or Bench()
    with session_folder(folder, say):
        if wish.new_session and (earlier := load_session(folder)) is not None:
            earlier.interrupted(folder, bench.still_running)
        fresh = new_session(pair, {arm.name: arm.facts() for arm in arms}, rules_hash, wish.seed)
        session = open_session(folder, fresh, replace=wish.new_session)
        if first is not None:
            check_same(first, session)
        say(f"session {session.session_id} in `{folder}`")
        sides = {arm.name: arm for arm in arms}
        running = Interleaved(folder, session, sides, workspace, wish, policy, bench, say, trust, first)
        if session.state == "finished":
            return running.result_again()
        running.recover()
        if running.stopped() is not None:
            return running.conclude()
        if not session.repetitions:
            forecast = before(workspace.cwd, [arm.command for arm in arms], session.fingerprint, policy)
            say(forecast or "what can be found is said as soon as the noise is known")
        with checked_out(workspace, arms, folder) as folders:
            running.start(folders)
            return running.to_the_end()


def policy_hash(policy: Policy) -> str:
    """What makes two policies the same for a session; the budget only says how far it goes."""
    text = msgspec.json.encode(msgspec.structs.replace(policy, budget_s=None), order="sorted")
    return hashlib.sha256(text).hexdigest()[:12]
