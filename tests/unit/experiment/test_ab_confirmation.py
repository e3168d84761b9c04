"""A regression by time alone that another runner confirms, or does not."""

import json
from types import SimpleNamespace

import pytest
from ab_bench import STEP, FakeBench

from pipeprof.collect import fingerprint
from pipeprof.errors import RunError, UsageError
from pipeprof.experiment.ab import AbWish, run_ab
from pipeprof.experiment.arms import ArmWish
from pipeprof.verdict import judge
from pipeprof.verdict.gate.planned import confirmed, to_confirm
from pipeprof.verdict.gate.policy import Policy, Rule
from pipeprof.verdict.gate.policy_diff import departures

OTHER = "other_time"
POLICY = Policy(looks=(5,), metrics={STEP: Rule(unit="ns")}, confirm="other-runner")
SAME, SLOWER = (1e6, 1.01e6, 0.99e6, 1.005e6, 0.995e6), (1.2e6, 1.21e6, 1.19e6, 1.205e6, 1.195e6)
WAVERS = (1e6, 1.2e6, 0.9e6, 1.3e6, 0.8e6)


@pytest.fixture
def runners(tmp_path, monkeypatch):
    """`call(job, steps of new, confirms=...)`: a session in a folder and a job of its own."""
    monkeypatch.chdir(tmp_path)
    place = SimpleNamespace(job="")
    monkeypatch.setattr(fingerprint, "machine", lambda: {"cpu_model": "one"})
    monkeypatch.setattr(fingerprint, "job", lambda: place.job)

    def call(job, steps, policy=POLICY, new="new", folder=None, **wish):
        place.job = job
        wish |= {"base": ArmWish(command=("old",)), "new": ArmWish(command=(new,)), "folder": folder or tmp_path / job}
        return run_ab(AbWish(**wish, seed=1), policy, lambda _line: None, FakeBench({"old": SAME, new: steps}))

    place.call = call
    place.result = lambda job: tmp_path / job / "compare.json"
    return place


@pytest.mark.parametrize(
    ("steps", "unit", "confirm", "wanted"),
    [(SLOWER, "ns", "", None), (SLOWER, "ns", "other-runner", [STEP]), (SAME, "ns", "other-runner", None),
     (SLOWER, "bytes", "other-runner", None)],
)  # fmt: skip
def test_only_a_time_and_a_policy_that_asks_for_it_want_another_runner(runners, steps, unit, confirm, wanted):
    content = runners.call("one", steps, Policy(looks=(5,), metrics={STEP: Rule(unit=unit)}, confirm=confirm))
    assert content["verdict"] == ("regressed" if steps == SLOWER else "unchanged")
    assert content.get("confirmation") == (wanted and {"state": "wanted", "metrics": wanted})


@pytest.mark.parametrize(
    ("steps", "verdict", "state"),
    [(SLOWER, "regressed", "confirmed"), (SAME, "unchanged", "not_confirmed"),
     (WAVERS, "inconclusive", "not_confirmed")],
)  # fmt: skip
def test_it_is_regressed_only_if_both_say_so(runners, steps, verdict, state):
    first = runners.call("one", SLOWER)
    content = runners.call("two", steps, confirms=runners.result("one"))
    assert (content["verdict"], content["confirmation"]["state"]) == (verdict, state)
    assert content["confirmation"]["first"]["headline"] == first["headline"]
    assert json.loads(runners.result("two").read_text()) == content


def test_another_time_than_the_first_runner_named_stays_open():
    values = dict.fromkeys((STEP, OTHER), SLOWER)
    policy = Policy(metrics={STEP: Rule(unit="ns"), OTHER: Rule(unit="ns")}, confirm="other-runner")
    verdict = judge(dict.fromkeys(values, SAME), values, policy)
    assert set(to_confirm(verdict, policy)) == {STEP, OTHER}
    assert confirmed(verdict, [STEP, OTHER]) == verdict
    assert [metric.verdict for metric in confirmed(verdict, [STEP]).metrics] == ["regressed", "inconclusive"]
    none = confirmed(verdict, [])
    assert none.verdict == "inconclusive"
    assert {reason["code"] for metric in none.metrics for reason in metric.reasons} == {"not_confirmed"}
    (entry,) = departures(Policy(confirm="other-runner"))  # asking for another runner lets more pass
    assert (entry.key, entry.effect) == ("confirm", "looser")


def test_what_only_the_second_runner_found_is_worded_as_open(runners, tmp_path):
    first = runners.call("one", SLOWER)
    first["confirmation"]["metrics"] = [OTHER]
    (tmp_path / "first.json").write_text(json.dumps(first))
    content = runners.call("two", SLOWER, confirms=tmp_path / "first.json")
    assert (content["verdict"], content["exit_code"]) == ("inconclusive", 4)
    assert content["headline"].startswith("Inconclusive: ")
    assert content["metrics"][0]["reason_facts"] == [{"code": "not_confirmed"}]
    assert content["confirmation"]["state"] == "not_confirmed"


@pytest.mark.parametrize(
    ("steps", "given", "error", "words"),
    [
        (SLOWER, {"new": "newer"}, UsageError, "another `new`"), (SLOWER, {"job": "one"}, UsageError, "same job"),
        (SLOWER, {"policy": Policy()}, UsageError, "does not ask"),
        (SLOWER, {"confirms": "nowhere.json"}, UsageError, "cannot read"), (SAME, {}, UsageError, "nothing in"),
        (SLOWER, {"confirms": "broken.json"}, RunError, "no result of"),
    ],
)  # fmt: skip
def test_what_cannot_confirm_is_refused_before_anything_runs(runners, tmp_path, steps, given, error, words):
    runners.call("one", steps)
    first = runners.result("one").rename(tmp_path / "first.json")
    (tmp_path / "broken.json").write_text('{"headline": 3}')
    with pytest.raises(error, match=words):
        runners.call(**{"job": "two", "steps": SLOWER, "confirms": first, "folder": tmp_path / "elsewhere"} | given)
