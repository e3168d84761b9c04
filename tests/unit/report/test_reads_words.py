"""A script that only reads batches: no screen speaks of a training, and the pipeline's own pace is said."""

import pytest

from pipeprof.record.run import Rank, Rep
from pipeprof.report import html, markdown
from pipeprof.report.build import build
from pipeprof.report.sections.of_run import first_lines, sections
from pipeprof.report.summary import three_lines
from pipeprof.verdict.ranking import IN_TIME
from tests.unit.report.conftest import MS, steps, tables


@pytest.fixture(params=[4, 0], ids=["waits", "in time"])
def run(request, make_run):
    wait_ns = request.param * MS
    stored = tables(count=30)
    stored["step"] = [row | {"fetch_wait_ns": wait_ns, "input_ns": wait_ns, "updates": None} for row in steps(count=30)]
    stored["fetch"] = [
        {
            "rank": 0,
            "pipeline_id": 0,
            "fetch": n,
            "step": n,
            "start_ns": n * 10 * MS,
            "wait_ns": wait_ns,
            "side": "iterator",
        }
        for n in range(30)
    ]
    del stored["op"], stored["op_info"]
    made = make_run(stored)
    evidence = {"step_evidence": "reads", "evidence_counts": {"rows": 31}}
    rank = Rank(rank=0, pid=1, host="", zero_realtime_ns=0, zero_monotonic_ns=0, **evidence)
    made.manifest.reps = [Rep(rep=0, zero_realtime_ns=0, zero_monotonic_ns=0, exit_code=0, ranks=[rank])]
    return made


def test_no_screen_speaks_of_a_training_that_is_not_there(run):
    content = build(run)
    said = content["first_screen"]["sentence"]
    assert said.startswith("No training here: 31 batches were read, 100 per second. ")
    shown = [*first_lines(content), *three_lines(run)]
    for section in sections(content):
        shown += [section.title, *section.strong, *section.notes]
        shown += [str(cell) for block in section.blocks for row in (block.head, *block.rows) for cell in row]
    text = "\n".join(line for line in shown if str(run.path) not in line)
    assert "raining step" not in text
    assert "the training" not in text
    assert "29 batches" in text
    assert "--ops all" not in text
    assert said in markdown.text(content)
    assert "No training here" in html.of_run(run, content)


def test_the_verdict_on_the_data_is_that_of_any_loop(run):
    content = build(run)
    waits = content["diagnosis"]["verdict"] == "input_bound"
    assert waits == (content["diagnosis"]["data_wait_share"] > 0.3)
    assert waits or content["verdict"]["causes"][0]["code"] == IN_TIME
