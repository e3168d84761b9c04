"""Which calls a training waits for: in its data loader, on its host, and between its steps."""

import pytest
from query_cases import answers, rows
from table_rows import KEY, step, steps

from pipeprof.verdict.calls import LIBRARY, NETWORK_FRAMES, TRAINING_FRAMES, WAIT_FRAMES

WAITS = [KEY | {"fetch": n, "step": n, "start_ns": 1000 * n, "wait_ns": 400, "side": "iterator"} for n in (0, 1)]
STEPS = steps("train", "train", length=1000)
GIVE = "depth name tracks busy_ns loading_ns covered_ns wait_ns"


def loading(*calls, phase="data"):
    """Calls as (name, track, start, end); callers stand in front of what they call."""
    names = list(dict.fromkeys(call[0] for call in calls))
    ops = [
        {"op_id": names.index(name), "exec_id": number, "track": track, "start_ns": start, "dur_ns": end - start}
        for number, (name, track, start, end) in enumerate(calls)
    ]
    infos = [{"op_id": number, "name": name, "phase": phase} for number, name in enumerate(names)]
    return {"step": STEPS, "fetch": WAITS, "op": ops, "op_info": infos}


CALLING = "name own_ns self_ns inside inside_ns step_ns"
PYTHON, OP = "python_function", "cpu_op"
# Callers in front of what they call: (name, category, caller, step, own time).
CALLS = [
    ("train.py(1): main", PYTHON, None, None, 7),
    ("ProfilerStep*", "user_annotation", 0, 0, 3),
    ("train.py(9): log", PYTHON, 1, 0, 100),
    ("lib/x.py(1): f", PYTHON, 2, 0, 30),
    ("aten::add", OP, 3, 0, 500),
    ("<built-in function sum at 0x7f>", PYTHON, 3, 0, 40),
    ("<built-in function sum at 0x8f>", PYTHON, 2, 0, 20),
    ("lib/x.py(2): g", PYTHON, 1, 0, 50),
]


def calling(calls=CALLS, **more):
    ops = [
        {"op_id": n, "exec_id": n, "parent_id": caller, "step": number, "track": "t", "side": "host", "start_ns": n,
         "dur_ns": 1, "self_ns": own}
        for n, (_, _, caller, number, own) in enumerate(calls)
    ]  # fmt: skip
    infos = [{"op_id": n, "name": call[0], "category": call[1], "phase": "other"} for n, call in enumerate(calls)]
    return {"op": ops, "op_info": infos, "step": [step(0, 0, 1000)], **more}


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


def looked_at(*looks):
    return {
        "step": [step(0, 0, 100), step(1, 100, 200), step(2, 200, 300, in_window=True), step(3, 300, 400)],
        "stack": [{"stack_id": at, "parent_id": up, "frame": frame} for at, up, frame in FRAMES],
        "stack_sample": [
            {"t_ns": at, "dur_ns": length, "stack_id": stack, "part": next(iter(part), None)}
            for at, length, stack, *part in looks
        ],
    }


test_rows_of_diagnose_fetch_call = answers("diagnose/fetch_call", {
    "only what lies in a wait counts and calls in each other count once": (GIVE,
        loading(("next", "main", -10, 410), ("resize", "main", 100, 300), ("resize", "main", 150, 250),
                ("next", "main", 990, 1410), ("resize", "main", 1300, 1500)),
        [(1.0, "next", 1, 800, 800, 800, 800), (pytest.approx(2.0), "resize", 1, 300, 800, 800, 800)]),
    "threads that load at the same time add up and cover a wait once": (GIVE,
        loading(("read", "a", 0, 300), ("read", "b", 100, 400), ("read", "b", 500, 900)),
        [(1.0, "read", 2, 600, 600, 400, 800)]),
    "the address of an object is no part of a name": ("name busy_ns",
        loading(*[(f"<built-in method read of X object at 0x{n:x}>", "main", 100 * n, 100 * n + 50) for n in (1, 2)]),
        [("<built-in method read of X object>", 100)], {"least": 0.9}),
    "what takes less than the least is left out and what makes no batch is none": ("name",
        loading(("next", "main", 0, 450), ("open", "main", 0, 40)), [("next",)], {"least": 0.2}),
    "what takes less than the least is left out and what makes no batch is none, too": ("",
        loading(("conv", "main", 0, 400), phase="forward"), []),
}, least=0.0)  # fmt: skip

test_rows_of_diagnose_host_call = answers("diagnose/host_call", {
    "a function has its own time and that of libraries but none of operators": (CALLING, calling(),
        [("train.py(1): main", 50, 0, "lib/x.py(2): g", 50, 1000),
         ("train.py(9): log", 190, 160, "<built-in function sum>", 60, 1000)]),
}, least=0.0, library="^(<|lib/)")  # fmt: skip


def marked(tables, table, at, **change):
    """The tables, with one row of one of them changed."""
    changed = [row | change if number == at else row for number, row in enumerate(tables[table])]
    return tables | {table: changed}


test_rows_of_diagnose_host_call_beside_others = answers("diagnose/host_call", {
    "other threads and what makes batches are left out": ("name",
        marked(marked(calling(), "op", 2, track="other"), "op_info", 7, phase="data"), []),
    "short functions are left out": ("name", calling(), [("train.py(9): log",)], {"least": 0.1}),
}, least=0.0, library="^(<|lib/)")  # fmt: skip


def test_the_wait_itself_is_no_loading(ask):
    """As its thread marks it, with another thread that reads meanwhile; a function of Python may last as long."""
    calls = ("fetch", "main", 0, 400), ("f.py(1): next", "main", 0, 400), ("read", "a", 100, 400)
    run = marked(loading(*calls), "op_info", 1, category="python_function")
    rows = ask("diagnose/fetch_call", run, least=0.0, give="name is_wait busy_ns loading_ns covered_ns")
    assert rows == [
        ("read", False, 300, 700, 400), ("fetch", True, 400, 700, 400), ("f.py(1): next", False, 400, 700, 400),
    ]  # fmt: skip
    alone = loading(("fetch", "main", 0, 400))
    assert ask("diagnose/fetch_call", alone, least=0.5, give="is_wait loading_ns covered_ns") == [(True, 0, 0)]


STEP, SORT, TOP, NET = "train.py: Log.step", "lib/numpy/sort.py: sort", "train.py: main", "train.py: Net.construct"
SEEN = {
    "a function has the time of the looks that have it on the stack": (
        [(10, 30, 2), (50, 20, 1), (120, 10, 3), (350, 40, 4)], "total_ns self_ns training_ns loop_ns",
        {STEP: (50, 20, 0, 100), SORT: (30, 30, 0, 100), TOP: (100, 0, 50, 100)}),
    "a library that leaves no frames was not seen": ([(10, 30, 2), (50, 20, 1)], "op_ns", {STEP: (0,)}),
    # without the fetch
    "a library whose operators leave no frame is seen by its own": (
        [(10, 30, 2), (50, 20, 1), (120, 10, 12), (130, 10, 13)], "op_ns total_ns owned_ns",
        {STEP: (None, 50, 50), TOP: (None, 60, 0), "torch/optim/sgd.py: SGD.step": (None, 10, 0)}),
    "lines callers and what is inside": ([(10, 30, 2), (50, 20, 1), (90, 5, 8)],
        "frame frame_ns caller inside inside_ns",
        {STEP: ("train.py(9): Log.step", 20, MAIN, SORT, 30), TOP: (MAIN, None, None, SORT, 30)}),
    "what is inside is a function that the user may know": ([(10, 30, 15), (50, 20, 16)], "inside inside_ns",
        {STEP: (SORT, 30), SORT: (None, None)}),
    "what is inside may be ones own": ([(50, 20, 16)], "inside", {STEP: ("train.py: _own",)}),
    "what the network runs and what waits for it": ([(10, 30, 5), (50, 20, 6), (90, 5, 7)],
        "network_ns owned_ns wait_ns", {NET: (50, 30, 0), STEP: (0, 0, 5)}),
    "a fetch is the data pipelines and no functions": ([(10, 30, 10), (50, 20, 9), (90, 5, 0), (120, 10, 3)],
        "total_ns owned_ns loop_ns", {TOP: (15, 5, 65), "train.py: Rows.__getitem__": None}),
    "a checkpoint is told as a whole and is no functions": ([(10, 30, 1, "checkpoint"), (50, 20, 1)],
        "total_ns loop_ns looks", {STEP: (20, 50, 1)}),
    "looks in op windows and outside of the steps are left out": ([(10, 30, 1), (250, 20, 1), (450, 5, 1)],
        "total_ns looks", {STEP: (30, 1)}),
    "functions that take less are left out": ([(10, 30, 2), (50, 70, 1)], "looks", {SORT: None}, 0.5),
}  # fmt: skip


@pytest.mark.parametrize("case", SEEN.values(), ids=SEEN)
def test_functions_that_the_trainings_own_thread_was_seen_in(ask, case):
    looks, give, expected, *least = case
    rows = ask("diagnose/loop_call", looked_at(*looks), least=sum(least, 0.0), **PARAMS, give=f"name {give}")
    found = {name: tuple(values) for name, *values in rows}
    assert {name: found.get(name) for name in expected} == expected


def test_operators_that_leave_no_frame_are_of_the_functions_that_launched_them(ask):
    """Of a recorded step of 100 ns, 20 are in `Log.step` and 30 in all of `main`; the loop was seen for 70 ns."""
    given = looked_at((10, 30, 2), (50, 20, 1), (120, 20, 12)) | {
        "op_info": [{"op_id": 0, "name": "aten::topk", "stack_id": 8}, {"op_id": 1, "name": "aten::mm", "stack_id": 0}],
        "op": rows("op_id step start_ns dur_ns self_ns", (0, 2, 210, 25, 20), (1, 2, 240, 10, 10)),
    }
    found = dict(ask("diagnose/loop_call", given, least=0.0, **PARAMS, give="name op_ns"))
    assert (found[STEP], found[TOP]) == (round(0.2 * 70), round(0.3 * 70))
    assert found["torch/optim/sgd.py: SGD.step"] == 0
    at_line = dict(ask("diagnose/loop_call", given, least=0.0, **PARAMS, give="name frame_op_ns"))
    assert (at_line[STEP], at_line[TOP]) == (0, round(0.3 * 70))  # `Log.step` launches at another line than its slowest


def test_what_model_trains_in_pynative_is_the_network_and_no_call_of_its_own(ask):
    cell = "mindspore/nn/cell.py(1420): Cell.__call__"
    frames = [MAIN, "mindspore/train/model.py(1395): Model.train", cell, "train.py(20): Net.construct", cell,
              "mindspore/graph/api.py(1805): _PyNativeExecutor.run_op_async"]  # fmt: skip
    stack = [{"stack_id": at, "parent_id": at - 1 if at else None, "frame": frame} for at, frame in enumerate(frames)]
    patterns = {"training": TRAINING_FRAMES, "network": NETWORK_FRAMES, "waits": WAIT_FRAMES, "library": LIBRARY}
    content = looked_at((10, 60, 5), (90, 5, 3)) | {"stack": stack}
    give = "name total_ns network_ns owned_ns training_ns"
    assert (NET, 65, 65, 5, 0) in ask("diagnose/loop_call", content, least=0.0, **patterns, give=give)
