"""However the training loop is written, table `step` has its steps, at the times at which they ran."""

import ast
import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

pytestmark = pytest.mark.mindspore

SOURCE = Path(__file__).parent / "workloads" / "loops.py"
STYLES = [
    node.name
    for node in ast.parse(SOURCE.read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef)
    and any(isinstance(d, ast.Name) and d.id == "style" for d in node.decorator_list)
]


@pytest.fixture(params=STYLES)
def styled(request, recorded):
    return recorded("loops.py", request.param)


def test_every_step_is_one_row_at_its_time(styled):
    truth = styled.truth()
    for kind, rows in (("train", styled.training()), ("eval", styled.evaluation())):
        times = [at for told, _, at in truth if told == kind]
        assert len(rows) == len(times), kind
        assert [row["kind_step"] for row in rows] == list(range(len(times)))
        # The very first step of a loop that fetches nothing begins, as far as can be seen, with its forward pass.
        blind = [n == 0 and row["fetch_wait_ns"] is None for n, row in enumerate(rows)]
        wrong = [(n, r["start_ns"], at, r["end_ns"]) for n, (r, at) in enumerate(zip(rows, times, strict=True))
                 if not (r["start_ns"] <= at or blind[n]) or not at <= r["end_ns"]]  # fmt: skip
        assert not wrong, f"{kind} steps elsewhere than the script made them: {wrong}"


def test_epochs_are_right_or_unknown(styled):
    told = [epoch for kind, epoch, _ in styled.truth() if kind == "train"]
    found = [row["epoch"] for row in styled.training()]
    assert all(was is None or row is None or row == was for row, was in zip(found, told, strict=True)), (found, told)


def test_first_step_is_warmup_and_most_others_are_not(styled):
    kinds = [row["kind"] for row in styled.training()]
    assert kinds[0] == "warmup"
    assert "train" in kinds


def test_phases_add_up_to_the_step_exactly(styled):
    for row in styled.rows("step"):
        points = [row[name] for name in ("start_ns", "fp_ns", "bp_ns", "end_ns") if row[name] is not None]
        assert points == sorted(points), row
        assert row["data_wait_ns"] == (None if row["fp_ns"] is None else row["fp_ns"] - row["start_ns"])
    sums = styled.sql(
        "SELECT step.end_ns - step.start_ns AS whole, sum(p.total_ns) AS parts FROM step "
        "JOIN step_phase AS p ON p.rep = step.rep AND p.rank = step.rank AND p.step = step.step "
        "GROUP BY step.rep, step.rank, step.step, whole"
    )
    assert len(sums) == len(styled.rows("step"))
    assert all(row["whole"] == row["parts"] for row in sums)


def test_training_steps_do_not_overlap(styled):
    rows = styled.training()
    assert all(one["end_ns"] <= other["start_ns"] for one, other in pairwise(rows))


def test_run_is_complete_and_no_hook_failed(styled):
    assert styled.manifest.state == "complete", styled.manifest.reason
    assert not [message for code, message in styled.warned().items() if code.startswith("probe_failed")]


def test_every_row_that_was_fetched_is_a_fetch_of_its_step(styled):
    steps = {row["step"]: row for row in styled.rows("step")}
    for fetch in styled.rows("fetch"):
        if fetch["step"] is not None:
            step = steps[fetch["step"]]
            assert step["start_ns"] <= fetch["start_ns"], (fetch, step)
            assert fetch["start_ns"] + fetch["wait_ns"] <= step["end_ns"], (fetch, step)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("varying_shapes_compile_again", [True, False, True, False, False, True]), ("jit_loop", [True] + [False] * 11)],
)
def test_steps_with_a_compilation_are_warmup(recorded, name, expected):
    assert [row["kind"] == "warmup" for row in recorded("loops.py", name).training()] == expected


def test_update_of_accumulated_gradients_is_one_step_with_all_its_rows(recorded):
    recording = recorded("loops.py", "gradient_accumulation")
    used = [fetch["step"] for fetch in recording.rows("fetch")]
    assert used == [step for step in range(4) for _ in range(3)]


def test_two_optimizers_are_two_updates_of_one_step(recorded):
    assert {row["updates"] for row in recorded("loops.py", "gan").training()} == {2}


def test_operators_of_both_networks_of_a_step_have_the_line_that_launched_them(recorded):
    """Nothing but an update that comes once more shows where such a step began."""
    rows = recorded("loops.py", "gan_of_fixed_tensors").sql(
        "SELECT op_info.name, stack.site FROM op JOIN op_info USING (rep, rank, op_id)"
        " LEFT JOIN stack USING (rep, rank, stack_id) WHERE op.step IS NOT NULL"
    )
    assert len(rows) > 20
    assert [row for row in rows if not row["site"]] == []


def test_row_fetched_and_not_used_belongs_to_no_step(recorded):
    fetches = recorded("loops.py", "broken_off_one_row_late").rows("fetch")
    assert len(fetches) == 18
    assert sum(fetch["step"] is None for fetch in fetches) == 3


def test_pipelines_know_what_they_feed(recorded):
    recording = recorded("loops.py", "eval_by_the_same_helper")
    assert [row["role"] for row in recording.rows("pipeline")] == ["train", "eval", "train", "eval"]


def test_iterator_of_a_source_is_hidden(recorded):
    roles = {row["role"] for row in recorded("loops.py", "two_stage_generator").rows("pipeline")}
    assert roles == {"train", "hidden"}


@pytest.mark.parametrize("name", ["pynative_loop", "model_train", "jit_loop"])
def test_op_executions_lie_in_their_step(recorded, name):
    recording = recorded("loops.py", name)
    steps = {row["step"]: row for row in recording.rows("step")}
    executions = [row for row in recording.rows("op") if row["step"] is not None]
    assert executions
    for row in executions:
        step = steps[row["step"]]
        assert step["start_ns"] <= row["start_ns"]
        assert row["start_ns"] + row["dur_ns"] <= step["end_ns"]
    assert all(row["bp_ns"] is not None for row in recording.training() if row["kind"] == "train")
    with_bp = [row for row in recording.training() if row["bp_source"] == "op"]
    assert with_bp
    assert all(row["in_window"] and row["fp_source"] == "op" for row in with_bp)


def test_gradients_in_pynative_have_the_operations_of_their_layers(recorded):
    rows = recorded("loops.py", "pynative_loop").sql("""
        SELECT DISTINCT op_info.name, phase, op_info.type, in_shapes, flops
        FROM op JOIN op_info USING (rep, rank, op_id) WHERE type IN ('MatMul', 'ReluGrad')
    """)
    found = {row["name"]: int(row["flops"] or 0) for row in rows}
    batch, one, two = 4, 2 * 8 * 16, 2 * 16 * 2  # of Dense(8, 16) and Dense(16, 2), for each row of the batch
    assert [found[f"MatMul#{number}"] // batch for number in range(1, 6)] == [one, two, two, two, one]
    assert found["ReluGrad#1"] == batch * 16


def test_modules_of_a_pynative_step_are_blocks_that_hold_their_operators(recorded, pipeprof):
    recording = recorded("loops.py", "pynative_loop")
    rows = sorted(recording.sql("SELECT * FROM span WHERE category = 'cell'"), key=lambda row: int(row["start_ns"]))
    names = ["SequentialCell", "0-Dense", "1-ReLU", "2-Dense"]
    assert [row["name"] for row in rows[:4]] == names
    assert [row["scope"] or "" for row in rows[:4]] == ["", *["SequentialCell"] * 3]
    ends = [(int(row["start_ns"]), int(row["start_ns"]) + int(row["dur_ns"])) for row in rows]
    assert all(ends[0][0] < begin < end < ends[0][1] for begin, end in ends[1:4])
    products = recording.sql("SELECT op.start_ns FROM op JOIN op_info USING (rep, rank, op_id) WHERE type = 'MatMul'")
    starts = sorted(int(row["start_ns"]) for row in products if ends[0][0] < int(row["start_ns"]) < ends[0][1])
    layers = dict(zip(names[1:], ends[1:4], strict=True))
    holding = [name for start in starts for name, (begin, end) in layers.items() if begin < start < end]
    assert holding == ["0-Dense", "2-Dense"]
    drawn = recording.path.with_suffix(".timeline.json")
    pipeprof.run("timeline", str(recording.path), "-o", str(drawn))
    assert sum(event.get("cat") == "cell" for event in json.loads(drawn.read_bytes())["traceEvents"]) == len(rows)


@pytest.mark.parametrize(
    ("style", "line", "function"),
    [("pynative_loop", "self.net(x)", "Trainer.forward"), ("jit_loop", "def step", "Trainer.step")],
)
def test_operators_have_the_stack_of_the_program(recorded, pipeprof, style, line, function):
    recording = recorded("loops.py", style)
    done = pipeprof.run("ops", str(recording.path), "--group-by", "stack 5", "--top", "0", "--format", "json")
    stacks = [row["stack"].split("\n") for row in json.loads(done.stdout)["rows"] if "MatMul" in row["name"]]
    source = Path(__file__).parent / "workloads" / "parts.py"
    text = source.read_text(encoding="utf-8").splitlines()
    lines = [at for at, words in enumerate(text, 1) if line in words]
    own = [[frame for frame in stack if not frame.startswith("mindspore/")] for stack in stacks]
    assert {f"{source}({at}): {function}" for at in lines} & {stack[0] for stack in own if stack}
    assert all(stack[0] for stack in stacks)
    if style == "pynative_loop":  # what a function that was compiled calls is not in the names of its operators
        assert any(re.fullmatch(r"mindspore/nn/layer/basic.py\(\d+\): Dense.construct", stack[0]) for stack in stacks)
    assert not any("site-packages" in frame for stack in stacks for frame in stack)
