"""The result of a first runner, which a session on another one confirms or not: the member `confirmation`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.errors import RunError, UsageError
from pipeprof.record.document import BAD_JSON, MOST_BYTES
from pipeprof.record.plain_file import read_file
from pipeprof.report.words import comparison, gate
from pipeprof.verdict.gate.planned import confirmed, to_confirm
from pipeprof.verdict.gate.result import MetricVerdict, Verdict, Word

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipeprof.experiment.session import Session
    from pipeprof.verdict.gate.policy import Policy

SAME = ("revision", "tree", "command", "env")  # of both arms, on both runners


class _Session(msgspec.Struct, kw_only=True):
    session_id: str
    job: str | None
    arms: dict[str, dict[str, Any]]


class _Wanted(msgspec.Struct, kw_only=True):
    state: str
    metrics: list[str]


class First(msgspec.Struct, kw_only=True):
    """What is read of the first runner's `compare.json`."""

    headline: str
    session: _Session
    confirmation: _Wanted | None = None


class _Judged(msgspec.Struct, kw_only=True):
    verdict: Word
    metrics: list[dict[str, Any]]
    explanation: list[dict[str, Any]]

    def as_verdict(self) -> Verdict:
        """The verdict that was put into words."""
        metrics = [
            {name: value for name, value in one.items() if name not in ("reason", "reason_facts")}
            | {"reasons": tuple(one.get("reason_facts") or ())}
            for one in self.metrics
        ]
        return Verdict(self.verdict, tuple(MetricVerdict(**one) for one in metrics))


def read_first(path: Path, policy: Policy) -> First:
    """The first runner's result. Raises UsageError when nothing in it is to be confirmed, RunError for damage."""
    if not policy.confirm:
        raise UsageError(
            "the policy does not ask for another runner", 'set `confirm = "other-runner"`, or leave --confirms out'
        )
    try:
        first = msgspec.json.decode(read_file(path, MOST_BYTES), type=First)
    except OSError as error:
        raise UsageError(
            f"cannot read `{path}`: {error.strerror}", "give the compare.json of the first runner"
        ) from error
    except BAD_JSON as error:
        raise RunError(f"`{path}` is no result of `pipeprof ab`: {error}", "fetch it again") from error
    if first.confirmation is None or first.confirmation.state != "wanted":
        raise UsageError(f"nothing in `{path}` is to be confirmed", "only a regression by time alone is")
    return first


def check_same(first: First, session: Session) -> None:
    """Raises UsageError unless both sessions are of the same two arms, and of different jobs."""
    for arm, facts in session.arms.items():
        other = first.session.arms.get(arm, {})
        differing = next((name for name in SAME if facts.get(name) != other.get(name)), None)
        if differing is not None:
            raise UsageError(
                f"the first runner measured another `{arm}`: its {differing} is {other.get(differing)!r}, "
                f"expected {facts.get(differing)!r}",
                "both runners have to measure the same change",
            )
    if session.job is not None and first.session.job == session.job:
        raise UsageError("both sessions are of the same job", "confirm it on another runner")


def with_confirmation(content: Mapping[str, Any], policy: Policy, first: First | None) -> dict[str, Any]:
    """The result with what another runner is to confirm, or, with the result of a `first` one, has confirmed."""
    said = msgspec.convert(content, _Judged)
    verdict = said.as_verdict()
    if first is None or first.confirmation is None:
        metrics = to_confirm(verdict, policy)
        return {**content, **({"confirmation": {"state": "wanted", "metrics": metrics}} if metrics else {})}
    asked = first.confirmation.metrics
    judged = confirmed(verdict, asked)
    both = any(one.name in asked and one.verdict == "regressed" for one in judged.metrics)
    about = {
        "state": "confirmed" if both else "not_confirmed",
        "metrics": asked,
        "first": {"session_id": first.session.session_id, "headline": first.headline},
    }
    if judged == verdict:
        return {**content, "confirmation": about}
    return {
        **content,
        "verdict": judged.verdict,
        "exit_code": judged.exit_code,
        "headline": comparison.headline(judged, said.explanation),
        "metrics": [gate.metric(one) for one in judged.metrics],
        "confirmation": about,
    }
