"""Causes across ranks on drawn trainings whose cause is known: tables written, read, judged and worded."""

import re

import fleet_score
import pytest
from fleet_jobs import CAUSES, draw, write

from pipeprof.record import store
from pipeprof.record.run import load
from pipeprof.report.build import build
from pipeprof.report.sections.of_run import chosen, first_lines

SENTENCES = {
    "slow_worker": r"Slow worker: passes of rank (?P<rank>\d+) take",
    "fail_slow": r"Fail-slow: passes of rank (?P<rank>\d+) take .* from step (?P<since>\d+) on",
    "slow_link": r"Slow link: transfers of `(?P<link>[-a-z0-9]+)`",
    "stage_imbalance": r"Stage imbalance: passes of stage (?P<stage>\d+)",
    "last_stage": r"Stage imbalance: passes of stage (?P<stage>\d+), the last one,",
    "input_length": r"Input-length imbalance: microbatches differ in work",
    "host_gap": r"Host gaps: passes begin later than what they wait for",
}


@pytest.mark.parametrize("cause", [cause for cause in CAUSES if cause != "none"])
def test_the_first_screen_names_the_planted_cause(tmp_path, cause):
    job = draw(41, cause, most_ranks=8)
    content = build(write(job, tmp_path / "run"))
    first = " ".join(line.strip() for line in first_lines(content))
    found = re.match(SENTENCES[cause], first)
    assert found, first
    assert found.groupdict() == {name: str(job.planted[name]) for name in found.groupdict()}
    item = content["ranks"]["causes"]["found"][0]
    if cause != "input_length":  # whose samples are also longer in all, which nobody can take away
        assert item["cost"] == pytest.approx(job.truth["cost"], abs=0.03)


def test_the_slow_down_and_its_parts_are_those_of_the_generator(tmp_path):
    job = draw(5, "last_stage", most_ranks=16, exact=True)
    causes = build(write(job, tmp_path / "run"))["ranks"]["causes"]
    slow, truth = causes["slowdown"], job.truth
    assert causes["error"] < 1e-6
    assert slow["s"] == pytest.approx(truth["slowdown"], rel=1e-6)
    assert (slow["m_w"], slow["m_s"]) == pytest.approx((truth["m_w"], truth["m_s"]), abs=1e-4)
    assert {row["stage"]: row["s"] for row in slow["by_stage"]} == pytest.approx(
        {stage: truth[f"stage_{stage}"] for stage in range(job.shape.pp)}, rel=1e-6
    )
    assert {row["replica"]: row["s"] for row in slow["by_replica"]} == pytest.approx(
        {replica: truth[f"replica_{replica}"] for replica in range(job.shape.dp)}, rel=1e-6
    )


def test_a_healthy_job_has_no_cause_and_its_section_says_so(tmp_path):
    content = build(write(draw(6, "none", most_ranks=8), tmp_path / "run"))
    assert content["ranks"]["causes"]["verdict"] == "even"
    section = chosen(content, ["causes"])[0]
    assert section.strong == ["No stage, rank, link or input slows the step"]
    assert "Stage imbalance" not in " ".join(first_lines(content))


def test_a_receiver_that_was_not_recorded_is_not_guessed(tmp_path):
    job = draw(5, "slow_link", most_ranks=8)
    run = write(job, tmp_path / "run")
    last = store.partition(run, "collective", 0, job.shape.ranks - 1)
    for path in last.iterdir():
        path.unlink()
    content = build(load(run.path))
    assert (content["ranks"]["causes"]["verdict"], content["ranks"]["causes"]["why"]) == ("not_measured", "not_paired")
    assert chosen(content, ["causes"])[0].notes[0].startswith("The step could not be replayed: the other side")


@pytest.mark.slow
def test_every_cause_is_found_in_a_draw_of_its_own():
    """96 jobs, 12 of each kind: what `make bench-causes` measures on more."""
    scored = [fleet_score.score(seed) for seed in range(900, 996)]
    summary = fleet_score.summary(scored)
    assert summary["right"] >= 0.95 * summary["planted"]
    assert summary["false_causes"] == 0
    assert summary["worst_s_error"] < 0.01


def test_more_ranks_than_memory_allows_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("pipeprof.report.ranks.RANK_STEPS", 5)
    content = build(write(draw(6, "none", most_ranks=8), tmp_path / "run"))
    assert content["ranks"]["causes"]["why"] == "many_ranks"
    assert "need too much memory" in chosen(content, ["causes"])[0].notes[0]
