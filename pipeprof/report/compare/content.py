"""A comparison as `pipeprof compare --format json` prints it, read back strictly: the file may come from anywhere."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from pipeprof.errors import RunError
from pipeprof.record.document import BAD_JSON, decode_document

SCHEMA_VERSION = 1

Word = Literal["regressed", "improved", "unchanged", "inconclusive", "incomparable", "missing", "acknowledged"]
Number = int | float | None


class _Part(msgspec.Struct, kw_only=True):
    """Base of the parts; keys that a later version added are left out."""


class Metric(_Part):
    """One metric's verdict."""

    name: str
    verdict: Word
    unit: str = ""
    direction: str = "lower"
    family: str = "primary"
    base: Number = None
    new: Number = None
    ratio: Number = None
    ci_low: Number = None
    ci_high: Number = None
    p_value: Number = None
    alpha: Number = None
    min_effect: Number = None
    counts_below: Number = None
    counts_above: Number = None
    reps_base: int = 0
    reps_new: int = 0
    reps_needed: int | None = None
    reps_find: Number = None
    reason: str = ""
    reason_facts: list[dict[str, Any]] = []


class Cause(_Part):
    """One line of the explanation."""

    what: str = ""
    kind: str = ""
    name: str = ""
    change: str = ""
    base: Any = None
    new: Any = None
    unit: str = ""
    ratio: Number = None
    share: Number = None
    text: str = ""
    proven: bool = True
    measure: str | msgspec.UnsetType = msgspec.UNSET  # of stages
    place_base: str | None = None
    place_new: str | None = None


class Difference(_Part):
    """One field of the fingerprint that differs."""

    name: str
    base: Any = None
    new: Any = None
    hard: bool = False


class Repetitions(_Part):
    """What was measured of one metric: [place in time, value] of each repetition."""

    name: str
    base: list[tuple[int, float]] = []
    new: list[tuple[int, float]] = []


class Curves(_Part):
    """Lengths of training steps of one repetition of each side, ns."""

    base: list[float] = []
    new: list[float] = []


class Stage(_Part):
    """A stage of a data pipeline."""

    pipeline: str
    op_id: int
    name: str
    op_type: str | None = None
    label: str | None = None
    place: str | None = None
    workers: int | None = None
    consumer_id: int | None = None
    work_ns: Number = None
    fill_ratio: Number = None


class Pipelines(_Part):
    """The stages of each side; empty where they are not known."""

    base: list[Stage] = []
    new: list[Stage] = []


class Fingerprint(_Part):
    """Whether both sides were measured on the same machine and versions."""

    same: bool | None = None
    differences: list[Difference] = []


class Setting(_Part):
    """One setting that differs from the defaults, or from those in effect."""

    key: str
    reference: Any = None
    value: Any = None
    effect: str = "other"


class Edit(_Part):
    """Something by which the change is judged, edited by the change."""

    kind: str
    path: str
    change: str = "edited"
    settings: list[Setting] = []
    problem: str = ""


class PolicyOrigin(_Part):
    """Where the settings are from."""

    origin: str
    path: str | None = None
    revision: str | None = None
    changed: bool = False


class Trust(_Part):
    """What it was judged by."""

    policy: PolicyOrigin
    departures: list[Setting] = []
    base_revision: str | None = None
    baseline: str | None = None
    edits: list[Edit] = []


class Finds(_Part):
    """What the last check of a session was expected to find, at the spread that was seen."""

    repetitions: int | None = None
    change: Number = None
    spread: Number = None


class Plan(_Part):
    """The checks of a session: what is shown of them."""

    finds: Finds | None = None


class Session(_Part):
    """What a session of `pipeprof ab` took."""

    plan: Plan | None = None
    seconds: Number = None
    discarded: list[str] = []
    disturbed: list[str] = []
    stopped: str | None = None


class FirstRunner(_Part):
    """What the first of two runners found."""

    headline: str = ""


class Confirmation(_Part):
    """Whether another runner is to say the same, or has."""

    state: Literal["wanted", "confirmed", "not_confirmed"]
    metrics: list[str] = []
    first: FirstRunner | None = None


class Screen(_Part):
    """What the report on a run opens with; null where it has nothing to say."""

    sentence: str = ""
    cause: str | None = None
    place: str | None = None
    action: str | None = None
    gain: str | None = None
    then: str | None = None
    also: str | None = None
    confidence: str | None = None
    confidence_reason: str | None = None


class Limits(_Part):
    """What limits the new side by itself, as the report on its run says."""

    run: str
    code: str
    first_screen: Screen
    text: str = ""
    share: Number = None


class Check(_Part):
    """What the check made of the verdict: whether it is red, and the verdicts that it was told to fail on."""

    red: bool
    fail_on: list[str] = []


class Comparison(_Part):
    """The whole content."""

    schema_version: int
    verdict: Word
    exit_code: int
    workload: str = ""
    headline: str = ""
    metrics: list[Metric] = []
    explanation: list[Cause] = []
    repetitions: list[Repetitions] = []
    curves: Curves = msgspec.field(default_factory=Curves)
    pipelines: Pipelines = msgspec.field(default_factory=Pipelines)
    fingerprint: Fingerprint = msgspec.field(default_factory=Fingerprint)
    notes: list[str] = []
    base: dict[str, Any] = {}
    new: dict[str, Any] = {}
    looks: list[int] = []
    next_look: int | None = None
    trust: Trust | None = None
    session: Session | None = None
    limits: Limits | None = None
    check: Check | None = None
    confirmation: Confirmation | None = None


def read(data: bytes, where: str) -> dict[str, Any]:
    """The content with every key present. Raises RunError that names `where` for a newer version and for damage."""
    try:
        content = decode_document(data, Comparison, SCHEMA_VERSION, where, "install a newer pipeprof")
        found: dict[str, Any] = msgspec.to_builtins(content)
    except BAD_JSON as error:
        raise RunError(
            f"`{where}` is not a comparison: {error}", "write it with `pipeprof compare BASE NEW --format json`"
        ) from error
    return found
