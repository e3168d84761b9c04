"""Alerts: which changes of level are one, none with two names; regressions that were accepted pass until their day."""

import msgspec
import pytest

from pipeprof.errors import UsageError
from pipeprof.verdict import judge
from pipeprof.verdict.gate.alerts import Shift, acknowledged, alerts, counts, is_over
from pipeprof.verdict.gate.policy import Acknowledgement, Policy, Rule, read_policy
from pipeprof.verdict.gate.result import note


def shift(series=0, at=0, places="c", metric="step_time_median", before=40e6, after=44e6, now=None, workload="net"):
    names = tuple(letter * 10 for letter in places)
    return Shift(
        key=(series, at), workload=workload, metric=metric, before=before, after=after, now=now or after, at="2026",
        place=places[0] * 40, places=names,
    )  # fmt: skip


HIGHER = Rule(direction="higher")


@pytest.mark.parametrize(("metric", "before", "after", "rule", "told"), [
    ("step_time_median", 40e6, 41e6, None, True),
    ("step_time_median", 40e6, 40.5e6, None, False),  # 2 % at least
    ("step_time_median", 40e6, 36e6, None, False),  # faster
    ("step_time_median", 1e6, 1.04e6, None, False),  # below the floor of 50 us
    ("step_time_p90", 40e6, 80e6, None, False),  # it only informs
    ("first_step_time", 1e9, 2e9, None, False), ("peak_memory", 1e9, 1.1e9, None, True),
    ("op/MatMul", 1e6, 2e6, None, False), ("samples", 100.0, 90.0, HIGHER, True),
    ("samples", 90.0, 100.0, HIGHER, False),
])  # fmt: skip
def test_what_the_gate_would_fail_is_an_alert(metric, before, after, rule, told):
    assert counts(shift(metric=metric, before=before, after=after), rule or Policy().rule(metric)) == told


@pytest.mark.parametrize(("metric", "before", "after", "now", "over"), [
    ("step_time_median", 40e6, 44e6, 41e6, True), ("step_time_median", 40e6, 44e6, 42e6, False),
    ("samples", 100.0, 90.0, 99.0, True), ("samples", 100.0, 90.0, 90.0, False),
    ("instructions", 22_018.0, 22_678.0, 22_678.0, False),  # hardly more than the margin: half has to be gone
    ("instructions", 22_018.0, 22_678.0, 22_400.0, False), ("instructions", 22_018.0, 22_678.0, 22_100.0, True),
])  # fmt: skip
def test_it_is_over_when_the_level_is_what_it_was(metric, before, after, now, over):
    rule = HIGHER if metric == "samples" else Policy().rule(metric)
    assert is_over(shift(metric=metric, before=before, after=after, now=now), rule) == over


def told(shifts, known=()):
    return [(one.name, one.places) for one in alerts(shifts, dict(known))]


WIDE = {"net-bbbbbbbbbb": ["a" * 10, "b" * 10, "c" * 10]}


@pytest.mark.parametrize(
    ("shifts", "known", "names"),
    [
        (
            [shift(0, places="c"), shift(1, places="d"), shift(2, places="c", workload="other"), shift(0, 1, "ec")],
            {},
            ["net-cccccccccc", "net-dddddddddd", "other-cccccccccc", "net-eeeeeeeeee"],
        ),
        ([shift(places="d")], WIDE, ["net-dddddddddd"]),
        ([shift(places="c", workload="other")], WIDE, ["other-cccccccccc"]),
        (
            [shift(0, places="de"), shift(0, 1, places="bc")],  # the more alike has it
            {"net-bbbbbbbbbb": ["b" * 10, "c" * 10, "d" * 10]},
            ["net-dddddddddd", "net-bbbbbbbbbb"],
        ),
    ],
)
def test_other_commits_workloads_and_changes_of_one_series_stay_apart(shifts, known, names):
    assert [name for name, _ in told(shifts, known)] == names


def test_changes_at_one_commit_are_one_alert_that_keeps_its_name_when_its_place_becomes_clearer():
    one, other, third = shift(0, places="c"), shift(1, places="bc", metric="data_wait"), shift(2, places="cd")
    (alert,) = alerts([one, other, third], {})
    assert (alert.name, alert.places, alert.shifts) == ("net-cccccccccc", ("c" * 10,), (one, other, third))
    assert told([shift(places="c")], WIDE) == [("net-bbbbbbbbbb", ("c" * 10,))]
    one = Shift((0, 0), "my net", "peak_memory", 1.0, 2.0, 2.0, "2026-01-01", "2026-01-01", ("2026-01-01",))
    ((name, _),) = told([one])
    assert told([one])[0][0] == name
    assert name.startswith("my-net-")


STEP = "step_time_median"
BASE = tuple(1e8 * (1 + part / 1000) for part in (-5, -3, -1, 1, 3, 5))


def verdict(ratio, direction="lower"):
    new = {STEP: tuple(value * ratio for value in BASE)}
    return judge({STEP: BASE}, new, Policy(metrics={STEP: Rule(direction=direction)}))


def after(found, today="2026-11-21", **entry):
    known = {"metric": STEP, "max_ratio": 1.10, "reason": "new loss", "expires": "2026-12-31"}
    return acknowledged(found, Policy(acknowledge=(Acknowledgement(**{**known, **entry}),)), ("mlp",), today)


def test_an_accepted_regression_passes_and_stays_visible_up_to_and_including_its_day():
    done = after(verdict(1.08), reference="#12")
    assert (done.verdict, done.exit_code, done.metrics[0].verdict) == ("acknowledged", 0, "acknowledged")
    assert done.metrics[0].reasons[-1] == note("acknowledged", until="2026-12-31", reason="new loss", reference="#12")
    assert after(verdict(1.08), workload="mlp", today="2026-12-31").verdict == "acknowledged"


@pytest.mark.parametrize(
    ("ratio", "entry"),
    [(1.08, {"max_ratio": 1.05}), (1.08, {"workload": "cnn"}), (1.08, {"metric": "step_time_p90"}), (1.0, {})],
)
def test_an_entry_covers_only_what_it_names_and_what_regressed(ratio, entry):
    found = verdict(ratio)
    assert after(found, **entry).metrics == found.metrics
    assert ratio != 1.0 or after(found) == found


@pytest.mark.parametrize(("ratio", "entry", "code", "said"), [
    (1.08, {"today": "2027-01-01"}, 1,
     note("acknowledgement_expired", metric=STEP, reason="new loss", expires="2026-12-31")),
    (1.12, {}, 1, note("acknowledgement_outgrown", metric=STEP, reason="new loss", max_ratio=1.1,
                       ratio=pytest.approx(1.12))),
    (1.0, {"metric": "step_time_medain"}, 0,
     note("acknowledgement_not_measured", metric="step_time_medain", reason="new loss")),
])  # fmt: skip
def test_an_entry_that_does_not_hold_is_named(ratio, entry, code, said):
    done = after(verdict(ratio), **entry)
    assert (done.exit_code, done.notes[-1]) == (code, said)


def test_higher_is_better_is_covered_by_the_inverse_and_a_change_of_sign_by_none():
    assert after(verdict(1 / 1.08, "higher")).verdict == "acknowledged"
    assert after(verdict(1 / 1.20, "higher")).verdict == "regressed"
    found = judge({STEP: (10.0,) * 6}, {STEP: (-10.0,) * 6}, Policy(metrics={STEP: HIGHER}))
    assert found.metrics[0].ratio < 0
    assert after(found).verdict == "regressed"


@pytest.mark.parametrize("wrong", [
    {"expires": "soon"}, {"expires": "20261231"}, {"expires": "2026-02-31"}, {"max_ratio": 0.9},
    {"max_ratio": float("nan")}, {"max_ratio": float("inf")}, {"reason": " "},
])  # fmt: skip
def test_an_entry_that_could_never_be_checked_is_refused(wrong):
    entry = {"metric": STEP, "max_ratio": 1.1, "reason": "r", "expires": "2026-12-31", **wrong}
    with pytest.raises(UsageError, match=next(iter(wrong))):
        read_policy({"acknowledge": [entry]}, "pyproject.toml")


def test_the_day_may_be_a_date_of_toml():
    entry = f'[[acknowledge]]\nmetric = "{STEP}"\nmax_ratio = 1.1\nreason = "r"\nexpires = 2026-12-31\n'
    assert read_policy(msgspec.toml.decode(entry), "here").acknowledge[0].expires == "2026-12-31"
