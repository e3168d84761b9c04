"""In which settings a policy departs from the defaults, and whether that lets more pass."""

import pytest

from pipeprof.verdict.gate.policy import Policy, read_policy
from pipeprof.verdict.gate.policy_diff import departures

ENTRY = {"metric": "step_time_median", "max_ratio": 3.0, "reason": "planned", "expires": "2030-01-01"}


def effects(content, reference=None):
    found = departures(read_policy(content, "test"), read_policy(reference, "test") if reference else None)
    return {one.key: one.effect for one in found}


def test_the_defaults_depart_from_nothing():
    assert departures(Policy()) == []
    assert effects({"alpha": 0.008, "metrics": {"step_time_median": {"min_effect": 0.02}}}) == {}


@pytest.mark.parametrize(
    ("content", "key", "effect"),
    [
        ({"alpha": 0.0001}, "alpha", "looser"),
        ({"alpha": 0.05}, "alpha", "stricter"),
        ({"looks": [3]}, "looks", "looser"),
        ({"looks": [5, 20]}, "looks", "other"),
        ({"budget_s": 1.0}, "budget_s", "looser"),
        ({"least_reps": 2}, "least_reps", "stricter"),
        ({"least_jobs": 50}, "least_jobs", "looser"),
        ({"detect": 0.5}, "detect", "other"),
        ({"commands": ["python train.py"]}, "commands", "stricter"),
        ({"power": 0.5}, "power", "other"),
        ({"ignore_fingerprint": ["cpu_model"]}, "ignore_fingerprint", "looser"),
        ({"acknowledge": [ENTRY]}, "acknowledge", "looser"),
        ({"metrics": {"step_time_median": False}}, "metrics.step_time_median.family", "looser"),
        ({"metrics": {"count/x": {"family": "secondary"}}}, "metrics.count/x.family", "other"),
        ({"metrics": {"data_wait": {"min_effect": 3.0}}}, "metrics.data_wait.min_effect", "looser"),
        ({"metrics": {"data_wait": {"min_effect": 0.01}}}, "metrics.data_wait.min_effect", "stricter"),
        ({"metrics": {"data_wait": {"floor": 1e12}}}, "metrics.data_wait.floor", "looser"),
        ({"metrics": {"data_wait": {"margin": 9.0}}}, "metrics.data_wait.margin", "looser"),
        ({"metrics": {"data_wait": {"direction": "higher"}}}, "metrics.data_wait.direction", "looser"),
        ({"metrics": {"data_wait": {"share": True}}}, "metrics.data_wait.share", "other"),
        ({"metrics": {"data_wait": {"exact": True}}}, "metrics.data_wait.exact", "looser"),
    ],
)
def test_each_setting_says_whether_more_passes(content, key, effect):
    assert effects(content) == {key: effect}


def test_every_setting_of_the_policy_is_looked_at():
    strange = {
        "alpha": 0.1, "looks": [9], "budget_s": 1.0, "least_reps": 9, "detect": 1.0, "power": 0.5, "least_jobs": 9,
        "ignore_fingerprint": ["x"], "commands": ["x"], "confirm": "other-runner", "acknowledge": [ENTRY], "metrics": {"data_wait": {
            "family": "secondary", "unit": "s", "direction": "higher", "min_effect": 1.0, "floor": 1.0, "margin": 1.0,
            "share": True, "exact": True,
        }},
    }  # fmt: skip
    found = {one.key.rpartition(".")[2] for one in departures(read_policy(strange, "test"))}
    rule = Policy().rule("data_wait")
    assert found == {*Policy.__struct_fields__, *rule.__struct_fields__} - {"metrics"}


def test_what_is_taken_back_is_the_opposite():
    loose = {"alpha": 0.001, "acknowledge": [ENTRY], "ignore_fingerprint": ["x"], "metrics": {"data_wait": False}}
    keys = ("alpha", "acknowledge", "ignore_fingerprint", "metrics.data_wait.family")
    assert effects({}, loose) == dict.fromkeys(keys, "stricter")
    assert effects({}, {"commands": ["python train.py"]}) == {"commands": "looser"}
    (entry,) = [one for one in departures(Policy(), read_policy(loose, "test")) if one.key == "acknowledge"]
    assert (entry.reference["max_ratio"], entry.value) == (3.0, None)
