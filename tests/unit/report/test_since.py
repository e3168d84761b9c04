"""Since when the steps take as long as they do: the row of a page's first screen, and the mark in its step chart."""

from itertools import accumulate

import pytest

from pipeprof.report import charts, html
from pipeprof.report.answer.since import since
from pipeprof.report.build import build

MS = 1_000_000


@pytest.fixture
def trained(make_run):
    """`trained(lengths, begin_ns)`: a run of training steps of so many ms."""

    def made(lengths, begin_ns=0):
        ends = [begin_ns + at * MS for at in accumulate(lengths)]
        return make_run({
            "step": [
                {"step": n, "kind_step": n, "kind": "train", "start_ns": end - length * MS, "end_ns": end}
                for n, (end, length) in enumerate(zip(ends, lengths, strict=True))
            ]
        })  # fmt: skip

    return made


def rules(run, content):
    """The vertical lines of the step chart, in s."""
    drawn = charts.charts_of(run, content)[0].spec["vconcat"][0]
    return [layer["data"]["values"][0]["at"] for layer in drawn["layer"] if layer["mark"].get("type") == "rule"]


def test_steps_that_become_slower_at_once_have_a_place_and_a_mark(trained):
    run = trained([10] * 120 + [20] * 120)
    content = build(run)
    assert since(content) == (
        "Slower since about step 120, 1.20 s after the launch: "
        "the median step rises from 10.0 ms to 20.0 ms, mostly in what follows the fetch."
    )
    assert rules(run, content) == [1.2]
    assert f"<dt>Since</dt><dd>{since(content)}" in html.of_run(run, content)


def test_a_clock_that_counts_from_the_start_of_the_machine_gives_no_time(trained):
    run = trained([10] * 120 + [20] * 120, begin_ns=200_000_000 * MS)
    content = build(run)
    assert since(content).startswith("Slower since about step 120: ")
    assert rules(run, content) == [1.2]


def test_steps_that_become_slower_all_the_time_have_no_mark(trained):
    run = trained([10 + n // 10 for n in range(240)])
    content = build(run)
    assert since(content).startswith("It grows over the whole training: the median step rises from ")
    assert rules(run, content) == []


@pytest.mark.parametrize("steps", [240, 5])
def test_steps_of_the_same_length_and_few_steps_have_no_such_row(trained, steps):
    run = trained([10] * steps)
    content = build(run)
    assert since(content) == ""
    assert "<dt>Since</dt>" not in html.of_run(run, content)


def test_without_a_step_there_is_no_such_row(empty):
    content = build(empty)
    assert since(content) == ""
    assert "<dt>Since</dt>" not in html.of_run(empty, content)
