"""Which functions the training's own thread was seen in."""

import pytest
from table_rows import step

from pipeprof.verdict.calls import LIBRARY, NETWORK_FRAMES, TRAINING_FRAMES, WAIT_FRAMES

MAIN = "train.py(3): main"
FRAMES = [
    (0, None, MAIN),
    (1, 0, "train.py(9): Log.step"),
    (2, 1, "lib/numpy/sort.py(4): sort"),
    (3, 0, "mindspore/nn/optim/adam.py(8): Adam.construct"),
    (4, 0, "mindspore/ops/composite/base.py(6): grad"),
    (5, 4, "train.py(20): Net.construct"),
    (6, 5, "mindspore/nn/layer/basic.py(7): Dense.construct"),
    (7, 1, "mindspore/common/tensor.py(5): Tensor.asnumpy"),
    (8, 0, "train.py(10): Log.step"),
    (9, 0, "mindspore/dataset/engine/iterators.py(3): Iterator.__next__"),
    (10, 9, "train.py(30): Rows.__getitem__"),
    (12, 0, "torch/optim/sgd.py(3): SGD.step"),
    (13, 14, "train.py(30): Rows.__getitem__"),
    (14, 0, "torch/utils/data/dataloader.py(3): _BaseDataLoaderIter.__next__"),
    (15, 2, "lib/numpy/sort.py(9): _wrapfunc"),
    (16, 1, "train.py(40): _own"),
]
PARAMS = {
    "training": "^mindspore/(ops/composite|nn/optim)/", "network": "^mindspore/ops/composite/",
    "waits": "^mindspore/common/tensor", "library": "^lib/",
}  # fmt: skip


def tables(*looks):
    return {
        "step": [step(0, 0, 100), step(1, 100, 200), step(2, 200, 300, in_window=True), step(3, 300, 400)],
        "stack": [{"stack_id": at, "parent_id": up, "frame": frame} for at, up, frame in FRAMES],
        "stack_sample": [
            {"t_ns": at, "dur_ns": length, "stack_id": stack, "part": next(iter(part), None)}
            for at, length, stack, *part in looks
        ],
    }


@pytest.fixture
def rows(ask):
    def of(*looks, give, least=0.0):
        found = ask("diagnose/loop_call", tables(*looks), least=least, **PARAMS, give=f"name {give}")
        return {name: tuple(values) for name, *values in found}

    return of


def test_a_function_has_the_time_of_the_looks_that_have_it_on_the_stack(rows):
    found = rows((10, 30, 2), (50, 20, 1), (120, 10, 3), (350, 40, 4), give="total_ns self_ns training_ns loop_ns")
    assert found["train.py: Log.step"] == (50, 20, 0, 100)
    assert found["lib/numpy/sort.py: sort"] == (30, 30, 0, 100)
    assert found["train.py: main"] == (100, 0, 50, 100)


def test_a_library_whose_operators_leave_no_frame_is_seen_by_its_own(rows):
    looks = [(10, 30, 2), (50, 20, 1)]
    assert rows(*looks, give="op_ns")["train.py: Log.step"] == (0,)
    found = rows(*looks, (120, 10, 12), (130, 10, 13), give="op_ns total_ns owned_ns")
    assert found["train.py: Log.step"] == (None, 50, 50)
    assert found["train.py: main"] == (None, 60, 0)  # without the fetch
    assert found["torch/optim/sgd.py: SGD.step"] == (None, 10, 0)


def test_operators_that_leave_no_frame_are_of_the_functions_that_launched_them(ask):
    """Of a recorded step of 100 ns, 20 are in `Log.step` and 30 in all of `main`; the loop was seen for 70 ns."""
    given = tables((10, 30, 2), (50, 20, 1), (120, 20, 12)) | {
        "op_info": [{"op_id": 0, "name": "aten::topk", "stack_id": 8}, {"op_id": 1, "name": "aten::mm", "stack_id": 0}],
        "op": [
            {"op_id": 0, "step": 2, "start_ns": 210, "dur_ns": 25, "self_ns": 20},
            {"op_id": 1, "step": 2, "start_ns": 240, "dur_ns": 10, "self_ns": 10},
        ],
    }  # fmt: skip
    found = dict(ask("diagnose/loop_call", given, least=0.0, **PARAMS, give="name op_ns"))
    assert (found["train.py: Log.step"], found["train.py: main"]) == (round(0.2 * 70), round(0.3 * 70))
    assert found["torch/optim/sgd.py: SGD.step"] == 0


def test_lines_callers_and_what_is_inside(rows):
    found = rows((10, 30, 2), (50, 20, 1), (90, 5, 8), give="frame frame_ns caller inside inside_ns")
    assert found["train.py: Log.step"] == ("train.py(9): Log.step", 20, MAIN, "lib/numpy/sort.py: sort", 30)
    assert found["train.py: main"] == (MAIN, None, None, "lib/numpy/sort.py: sort", 30)


def test_what_is_inside_is_a_function_that_the_user_may_know(rows):
    found = rows((10, 30, 15), (50, 20, 16), give="inside inside_ns")
    assert found["train.py: Log.step"] == ("lib/numpy/sort.py: sort", 30)
    assert found["lib/numpy/sort.py: sort"] == (None, None)
    assert rows((50, 20, 16), give="inside")["train.py: Log.step"] == ("train.py: _own",)


def test_what_the_network_runs_and_what_waits_for_it(rows):
    found = rows((10, 30, 5), (50, 20, 6), (90, 5, 7), give="network_ns owned_ns wait_ns")
    assert found["train.py: Net.construct"] == (50, 30, 0)
    assert found["train.py: Log.step"] == (0, 0, 5)


def test_what_model_trains_in_pynative_is_the_network_and_no_call_of_its_own(ask):
    frames = [
        (0, None, MAIN), (1, 0, "mindspore/train/model.py(1395): Model.train"), (2, 1, "mindspore/nn/cell.py(1420): Cell.__call__"),
        (3, 2, "train.py(20): Net.construct"), (4, 3, "mindspore/nn/cell.py(1420): Cell.__call__"),
        (5, 4, "mindspore/graph/api.py(1805): _PyNativeExecutor.run_op_async"),
    ]  # fmt: skip
    content = tables((10, 60, 5), (90, 5, 3))
    content["stack"] = [{"stack_id": at, "parent_id": up, "frame": frame} for at, up, frame in frames]
    patterns = {"training": TRAINING_FRAMES, "network": NETWORK_FRAMES, "waits": WAIT_FRAMES, "library": LIBRARY}
    give = "name total_ns network_ns owned_ns training_ns"
    found = ask("diagnose/loop_call", content, least=0.0, **patterns, give=give)
    assert {name: values for name, *values in found}["train.py: Net.construct"] == [65, 65, 5, 0]


def test_a_fetch_is_the_data_pipelines_and_no_functions(rows):
    found = rows((10, 30, 10), (50, 20, 9), (90, 5, 0), (120, 10, 3), give="total_ns owned_ns loop_ns")
    assert found["train.py: main"] == (15, 5, 65)
    assert "train.py: Rows.__getitem__" not in found


def test_a_checkpoint_is_told_as_a_whole_and_is_no_functions(rows):
    found = rows((10, 30, 1, "checkpoint"), (50, 20, 1), give="total_ns loop_ns looks")
    assert found["train.py: Log.step"] == (20, 50, 1)


def test_looks_in_op_windows_and_outside_of_the_steps_are_left_out(rows):
    found = rows((10, 30, 1), (250, 20, 1), (450, 5, 1), give="total_ns looks")
    assert found["train.py: Log.step"] == (30, 1)


def test_functions_that_take_less_are_left_out(rows):
    assert "lib/numpy/sort.py: sort" not in rows((10, 30, 2), (50, 70, 1), give="looks", least=0.5)
