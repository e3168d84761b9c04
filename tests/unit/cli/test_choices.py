"""Options that choose among what a run does not have are refused, with what there is."""

import pytest
from in_process import ask
from table_rows import MS, op, steps

from pipeprof.errors import UsageError
from pipeprof.report.timeline.clock import numbers_text


@pytest.fixture
def run(make_run):
    ranks = [row for rank in (0, 1, 2, 5) for row in steps(*["train"] * 4, length=MS, rank=rank)]
    block = {"op_id": 0, "address": 4096, "bytes": 64, "produced_ns": 5, "released_ns": 9}
    memory = [{"t_ns": n * MS + 1, "device": "CPU", "name": "pool", "allocated_bytes": 1 << 20} for n in range(4)]
    infos = [{"op_id": 0, "name": "Default/Add-op0", "type": "Add"}]
    tables = {"op": [op(0, 10, 1, MS)], "op_info": infos, "allocation": [block, block | {"rank": 5}], "memory": memory}
    return make_run({"step": ranks, **tables}, state="complete").path


@pytest.mark.parametrize(("words", "message"), [
    (["timeline", "RUN", "--ranks", "0,7"], "the run has no rank 7: it has ranks 0-2, 5"),
    (["timeline", "RUN", "--ranks", "3-5"], "the run has no ranks 3-4: it has ranks 0-2, 5"),
    (["timeline", "RUN", "--rep", "3"], "the run has no repetition 3: it has repetition 0"),
    (["timeline", "RUN", "--steps", "50:60"], "--steps matches no step: the run has steps 0 to 3"),
    (["memory", "RUN", "--svg", "OUT", "--rank", "7"], "the run has no rank 7: it has ranks 0-2, 5"),
    (["memory", "RUN", "--svg", "-"], "a chart is not written to standard output"),
    (["memory", "RUN", "--rank", "0"], "there is no --svg"),
    (["memory", "RUN", "--blocks", "5"], "--blocks is for --svg and JSON"),
    (["memory", "RUN", "--skip-steps", "70"], "--skip-steps 70 leaves no training step"),
    (["stacks", "RUN", "-o", "OUT", "--steps", "50:"], "--steps matches no step: the run has steps 0 to 3"),
    (["stacks", "RUN", "-o", "OUT", "--by", "scope", "--depth", "3"], "these stacks are by scope"),
    (["sweep", "--table", "CSV", "--budget", "9"], "--table shows published figures and runs nothing"),
    (["memory", "RUN", "--svg", "OUT", "-o", "OUT"], "-o and --svg name the same file"),
    (["top", "RUN", "--listen", "0", "-o", "OUT"], "--listen shows nothing"),
    (["collect", "--ops", "off", "--schedule", "active=3", "--", "true"], "--ops off has none"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")  # fmt: skip
def test_it_is_refused_and_nothing_is_written(run, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(UsageError) as refused:
        ask(*(run if word == "RUN" else word for word in words))
    assert message in refused.value.message
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_what_a_run_has_is_drawn(run, tmp_path):
    assert ask("memory", run, "--svg", tmp_path / "x.svg", "--rank", "5").exit_code == 0
    assert "rank 5" in (tmp_path / "x.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("numbers", "text"), [([0], "0"), ([3, 1, 2, 2], "1-3"), ([0, 2, 3, 9], "0, 2-3, 9"), ([], "")]
)
def test_numbers_are_written_as_ranges(numbers, text):
    assert numbers_text(numbers) == text
