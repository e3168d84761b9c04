"""The policy of the gate: its pages name all of it, what departs from it is told, and which machines differ."""

from pathlib import Path

import pytest

from pipeprof.verdict.gate.policy import GIB, PREFIXES, Acknowledgement, Policy, Rule, differences, read_policy
from pipeprof.verdict.gate.policy_diff import departures
from pipeprof.verdict.gate.result import EXIT

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("gate.md", "policy.md"))
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("|")]


def test_the_pages_that_are_written_by_hand_name_every_key_default_prefix_and_exit_code():
    first = {row[0].strip("`") for row in ROWS}
    assert {key for kind in (Policy, Rule, Acknowledgement) for key in kind.__struct_fields__} - first == set()
    written = {row[0].removesuffix(" (exact)").strip("`"): row[1:] for row in ROWS}
    for name, rule in Policy().metrics.items():
        family, unit, *numbers = written[name]
        assert (family, unit) == (rule.family, rule.unit)
        assert [float(number.replace(",", "")) for number in numbers] == [rule.min_effect, rule.floor, rule.margin]
    assert [prefix for prefix in PREFIXES if f"`{prefix}`" not in PAGE] == []
    codes = {row[0]: row[-1] for row in ROWS}
    assert {word: codes[word] for word in EXIT} == {word: str(code) for word, code in EXIT.items()}


BASE = {"cpu_model": "A", "memory_bytes": 16 * GIB, "host": "x", "environment": {"OMP_NUM_THREADS": "2"}}


@pytest.mark.parametrize(("changed", "ignored", "expected"), [
    ({}, (), []), ({"cpu_model": "B", "host": "y"}, (), [("cpu_model", "A", "B", True), ("host", "x", "y", False)]),
    ({"memory_bytes": 16 * GIB + 4096}, (), []), ({"memory_bytes": 8 * GIB}, (), [("memory_gib", 16, 8, True)]),
    ({"environment": {"OMP_NUM_THREADS": "2", "LD_PRELOAD": "j"}}, (), [("environment.LD_PRELOAD", None, "j", True)]),
    ({"mindspore": "2.10.0"}, (), [("mindspore", None, "2.10.0", True)]),
    (
        {"cpu_model": "B", "environment": {}},
        ("cpu_model", "environment"),
        [("cpu_model", "A", "B", False), ("environment.OMP_NUM_THREADS", "2", None, False)],
    ),
])  # fmt: skip
def test_conditions_that_differ_are_named_and_some_are_hard(changed, ignored, expected):
    found = differences(BASE, {**BASE, **changed}, ignored=ignored)
    assert found == [dict(zip(("name", "base", "new", "hard"), one, strict=True)) for one in expected]


ENTRY = {"metric": "step_time_median", "max_ratio": 3.0, "reason": "planned", "expires": "2030-01-01"}


def effects(content, reference=None):
    found = departures(read_policy(content, "test"), read_policy(reference, "test") if reference else None)
    return {one.key: one.effect for one in found}


@pytest.mark.parametrize(("content", "effect"), [
    ({"alpha": 0.0001}, "looser"), ({"alpha": 0.05}, "stricter"), ({"looks": [3]}, "looser"),
    ({"looks": [5, 20]}, "other"), ({"budget_s": 1.0}, "looser"), ({"least_reps": 2}, "stricter"),
    ({"least_jobs": 50}, "looser"), ({"detect": 0.5}, "other"), ({"commands": ["python train.py"]}, "stricter"),
    ({"power": 0.5}, "other"), ({"ignore_fingerprint": ["cpu_model"]}, "looser"), ({"acknowledge": [ENTRY]}, "looser"),
])  # fmt: skip
def test_each_setting_says_whether_more_passes(content, effect):
    assert effects(content) == dict.fromkeys(content, effect)


@pytest.mark.parametrize(("metric", "rule", "key", "effect"), [
    ("step_time_median", False, "family", "looser"), ("count/x", {"family": "secondary"}, "family", "other"),
    ("data_wait", {"min_effect": 3.0}, "min_effect", "looser"),
    ("data_wait", {"min_effect": 0.01}, "min_effect", "stricter"), ("data_wait", {"floor": 1e12}, "floor", "looser"),
    ("data_wait", {"margin": 9.0}, "margin", "looser"), ("data_wait", {"direction": "higher"}, "direction", "looser"),
    ("data_wait", {"share": True}, "share", "other"), ("data_wait", {"exact": True}, "exact", "looser"),
])  # fmt: skip
def test_each_setting_of_a_metric_says_whether_more_passes(metric, rule, key, effect):
    assert effects({"metrics": {metric: rule}}) == {f"metrics.{metric}.{key}": effect}


def test_every_setting_of_the_policy_is_looked_at_and_what_is_taken_back_is_the_opposite():
    assert departures(Policy()) == []
    assert effects({"alpha": 0.008, "metrics": {"step_time_median": {"min_effect": 0.02}}}) == {}
    strange = {
        "alpha": 0.1, "looks": [9], "budget_s": 1.0, "least_reps": 9, "detect": 1.0, "power": 0.5, "least_jobs": 9,
        "ignore_fingerprint": ["x"], "commands": ["x"], "confirm": "other-runner", "acknowledge": [ENTRY],
        "metrics": {"data_wait": {
            "family": "secondary", "unit": "s", "direction": "higher", "min_effect": 1.0, "floor": 1.0, "margin": 1.0,
            "share": True, "exact": True,
        }},
    }  # fmt: skip
    found = {one.key.rpartition(".")[2] for one in departures(read_policy(strange, "test"))}
    assert found == {*Policy.__struct_fields__, *Policy().rule("data_wait").__struct_fields__} - {"metrics"}
    loose = {"alpha": 0.001, "acknowledge": [ENTRY], "ignore_fingerprint": ["x"], "metrics": {"data_wait": False}}
    keys = ("alpha", "acknowledge", "ignore_fingerprint", "metrics.data_wait.family")
    assert effects({}, loose) == dict.fromkeys(keys, "stricter")
    assert effects({}, {"commands": ["python train.py"]}) == {"commands": "looser"}
    (entry,) = [one for one in departures(Policy(), read_policy(loose, "test")) if one.key == "acknowledge"]
    assert (entry.reference["max_ratio"], entry.value) == (3.0, None)
