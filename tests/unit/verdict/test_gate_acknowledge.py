"""Accepted regressions: shown, passed until their day, never more than was accepted."""

import pytest

from pipeprof.errors import UsageError
from pipeprof.verdict import Policy, judge
from pipeprof.verdict.gate.alerts import acknowledged
from pipeprof.verdict.gate.policy import Acknowledgement, Rule, read_policy
from pipeprof.verdict.gate.result import note

STEP = "step_time_median"
BASE = tuple(1e8 * (1 + part / 1000) for part in (-5, -3, -1, 1, 3, 5))


def verdict(ratio, direction="lower", more=None):
    base, new = {STEP: BASE}, {STEP: tuple(value * ratio for value in BASE)}
    return judge({**base, **(more or {})}, {**new, **(more or {})}, Policy(metrics={STEP: Rule(direction=direction)}))


def policy(**entry):
    known = {"metric": STEP, "max_ratio": 1.10, "reason": "new loss", "expires": "2026-12-31"}
    return Policy(acknowledge=(Acknowledgement(**{**known, **entry}),))


def after(found, entries, today="2026-11-21", workload="mlp"):
    return acknowledged(found, entries, (workload,), today)


def test_an_accepted_regression_passes_and_stays_visible():
    done = after(verdict(1.08), policy(reference="#12"))
    assert (done.verdict, done.exit_code, done.metrics[0].verdict) == ("acknowledged", 0, "acknowledged")
    assert done.metrics[0].reasons[-1] == note("acknowledged", until="2026-12-31", reason="new loss", reference="#12")


@pytest.mark.parametrize("entry", [{"max_ratio": 1.05}, {"workload": "cnn"}, {"metric": "step_time_p90"}])
def test_an_entry_covers_only_what_it_names(entry):
    found = verdict(1.08)
    assert after(found, policy(**entry)).metrics == found.metrics


def test_it_holds_up_to_and_including_its_day():
    assert after(verdict(1.08), policy(workload="mlp"), today="2026-12-31").verdict == "acknowledged"


def test_an_expired_entry_fails_and_is_named():
    done = after(verdict(1.08), policy(), today="2027-01-01")
    assert done.exit_code == 1
    assert note("acknowledgement_expired", metric=STEP, reason="new loss", expires="2026-12-31") in done.notes


def test_higher_is_better_is_covered_by_the_inverse():
    assert after(verdict(1 / 1.08, "higher"), policy()).verdict == "acknowledged"
    assert after(verdict(1 / 1.20, "higher"), policy()).verdict == "regressed"


def test_what_did_not_regress_is_left_alone():
    found = verdict(1.0)
    assert after(found, policy()) == found


@pytest.mark.parametrize(
    "wrong",
    [
        {"expires": "soon"}, {"expires": "20261231"}, {"expires": "2026-02-31"}, {"max_ratio": 0.9},
        {"max_ratio": float("nan")}, {"max_ratio": float("inf")}, {"reason": " "},
    ],
)  # fmt: skip
def test_an_entry_that_could_never_be_checked_is_refused(wrong):
    entry = {"metric": STEP, "max_ratio": 1.1, "reason": "r", "expires": "2026-12-31", **wrong}
    with pytest.raises(UsageError, match=next(iter(wrong))):
        read_policy({"acknowledge": [entry]}, "pyproject.toml")


def test_what_outgrew_its_entry_fails_and_says_so():
    done = after(verdict(1.12), policy())
    assert done.exit_code == 1
    (outgrown,) = [one for one in done.notes if one["code"] == "acknowledgement_outgrown"]
    assert (outgrown["max_ratio"], outgrown["ratio"]) == (1.1, pytest.approx(1.12))


def test_an_entry_of_a_metric_that_nobody_measured_is_named():
    done = after(verdict(1.0), policy(metric="step_time_medain"))
    assert done.exit_code == 0
    assert done.notes[-1] == note("acknowledgement_not_measured", metric="step_time_medain", reason="new loss")


def test_a_change_of_sign_is_no_ratio_that_could_be_accepted():
    base, new = {STEP: (10.0,) * 6}, {STEP: (-10.0,) * 6}
    found = judge(base, new, Policy(metrics={STEP: Rule(direction="higher")}))
    assert found.metrics[0].ratio < 0
    assert after(found, policy()).verdict == "regressed"


def test_the_day_may_be_a_date_of_toml():
    import msgspec

    entry = f'[[acknowledge]]\nmetric = "{STEP}"\nmax_ratio = 1.1\nreason = "r"\nexpires = 2026-12-31\n'
    assert read_policy(msgspec.toml.decode(entry), "here").acknowledge[0].expires == "2026-12-31"
