"""A script that only reads batches, and one that only infers: no screen speaks of a training that is not there."""

import pytest

from pipeprof.read.foreign import import_path
from pipeprof.record.run import Rank, Rep
from pipeprof.report import html, markdown
from pipeprof.report.build import build
from pipeprof.report.sections.of_run import first_lines, sections
from pipeprof.report.summary import three_lines
from pipeprof.verdict.ranking import IN_TIME
from tests.unit.read.test_load_and_run import CURRENT
from tests.unit.report.conftest import MS, steps, tables


def shown(run, content):
    """All that is said of a run, without its path."""
    said = [*first_lines(content), *three_lines(run)]
    for section in sections(content):
        said += [section.title, *section.strong, *section.notes]
        said += [str(cell) for block in section.blocks for row in (block.head, *block.rows) for cell in row]
    return "\n".join(line for line in said if str(run.path) not in line)


@pytest.mark.parametrize("wait_ns", [4 * MS, 0])
def test_of_a_script_that_reads_the_pace_of_its_pipeline_is_said_and_the_verdict_is_that_of_any_loop(make_run, wait_ns):
    stored = tables(count=30)
    stored["step"] = [row | {"fetch_wait_ns": wait_ns, "input_ns": wait_ns, "updates": None} for row in steps(count=30)]
    fetch = {"rank": 0, "pipeline_id": 0, "wait_ns": wait_ns, "side": "iterator"}
    stored["fetch"] = [fetch | {"fetch": n, "step": n, "start_ns": n * 10 * MS} for n in range(30)]
    del stored["op"], stored["op_info"]
    evidence = {"step_evidence": "reads", "evidence_counts": {"rows": 31}}
    rank = Rank(rank=0, pid=1, host="", zero_realtime_ns=0, zero_monotonic_ns=0, **evidence)
    reps = [Rep(rep=0, zero_realtime_ns=0, zero_monotonic_ns=0, exit_code=0, ranks=[rank])]
    run = make_run(stored, reps=reps)
    content = build(run)
    said, text = content["first_screen"]["sentence"], shown(run, content)
    assert said.startswith("No training here: 31 batches were read, 100 per second. ")
    assert [words for words in ("raining step", "the training", "--ops all") if words in text] == []
    assert "29 batches" in text
    assert said in markdown.text(content)
    assert "No training here" in html.of_run(run, content)
    assert (content["diagnosis"]["verdict"] == "input_bound") == bool(wait_ns)
    assert (content["diagnosis"]["data_wait_share"] > 0.3) == bool(wait_ns)
    assert wait_ns or content["verdict"]["causes"][0]["code"] == IN_TIME


def test_logs_of_load_and_run_are_of_inference_and_numbers_are_the_same_everywhere(tmp_path):
    (tmp_path / "log.txt").write_text(CURRENT, encoding="utf-8")
    run = import_path(tmp_path / "log.txt", tmp_path / "run")
    content = build(run)
    text = shown(run, content)
    assert [words in text for words in ("iterations", "limits the inference", "training step")] == [True, True, False]
    counts = {row["kind"]: row["steps"] for row in content["steps"]["summary"]}
    timed, warm = counts["train"], counts["warmup"]
    assert f"{timed} iterations after {warm} of warm-up, median iteration" in three_lines(run)[0]
    assert f"{timed} iterations, median" in " ".join(first_lines(content))
