"""Which call of a data loader is named: the innermost hot one that a user could change."""

import re

import pytest
from typed_rows import of_dicts

from pipeprof.verdict import calls, pipeline
from pipeprof.verdict.calls import (
    COVERED,
    ENOUGH_LOOKS,
    HOT,
    LEAST_LOOKS,
    LIBRARY,
    LINE,
    LOOP,
    LOOP_SHARE,
    MOSTLY_COVERED,
    NETWORK,
    NETWORK_FRAMES,
    OTHER,
    OUTSIDE,
    OWN,
    STORAGE,
    THREADS,
    TRAINING_FRAMES,
    WAIT_FRAMES,
    WORKERS,
)
from pipeprof.verdict.data_cause import data_cause

diagnose = of_dicts(pipeline.diagnose)

host_call, loop_calls, loop_site, take_calls = map(
    of_dicts, (calls.host_call, calls.loop_calls, calls.loop_site, calls.take_calls)
)

SINGLE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
SEVERAL = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
WAITING = {"rep": 0, "rank": 0, "kind": "train", "steps": 30, "data_wait_share": 0.6}


def call(name, depth, share, category="python_function", rank=0, wait=1000, covered=1.0):
    return {
        "rep": 0, "rank": rank, "is_wait": name.startswith("enumerate"), "name": name, "depth": float(depth),
        "category": category, "tracks": 1, "busy_ns": share * 2000, "loading_ns": 2000, "covered_ns": covered * wait,
        "wait_ns": wait,
    }  # fmt: skip


def judged(*rows):
    diagnosis = diagnose([WAITING], [], [])
    take_calls(diagnosis, rows)
    return diagnosis


RESIZE, ZOOM = "data/set.py(30): resize", "scipy/ndimage/_interpolation.py(7): zoom"
ROW, SLEEP = "set.py(9): __getitem__", "<built-in function sleep>"
FOLDER, JSON = "torchvision/datasets/folder.py(9): __getitem__", "json/decoder.py(1): f"


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        (  # of nested calls the innermost of the user's, and the library beside it
            [call(SINGLE, 2, 1.0, "user_annotation"), call("torch/utils/data/_utils/fetch.py(25): fetch", 4, 0.99),
             call("data/set.py(3): __getitem__", 5, 0.9), call(RESIZE, 6, 0.8), call(ZOOM, 7, 0.7),
             call("<built-in function zoom_shift>", 8, 0.69)],
            (RESIZE, ZOOM, OTHER, OWN),
        ),
        ([call("NPZReader.open", 3, 0.9, "reader"), call("read", 3.9, 0.6, "POSIX")],
         ("NPZReader.open", "read", STORAGE, THREADS)),
        # work that is spread names nothing but who makes the batches
        ([call(SINGLE, 1, 1.0), call("a.py(1): f", 2, HOT - 0.01)], (None, None, OTHER, OWN)),
        # a row that waits in the training's own thread is what is slow
        ([call(SINGLE, 1, 1.0), call(ROW, 2, 0.9), call(SLEEP, 3, 0.9)], (ROW, SLEEP, OTHER, OWN)),
        # where all is done in libraries the one that was chosen, and Python itself never
        ([call(SINGLE, 1, 1.0), call(FOLDER, 2, 0.9), call(JSON, 3, 0.9)], (FOLDER, JSON, OTHER, OWN)),
        ([call(SINGLE, 1, 1.0), call(JSON, 3, 0.9)], (None, None, OTHER, OWN)),
        # a loader that waits for its workers is not what is slow
        *(([call(SEVERAL, 1, 1.0), call("torch/utils/data/dataloader.py(1): _get_data", 2, 1.0), call(wait, 3, 0.9)],
           (None, None, OTHER, WORKERS))
          for wait in ("threading.py(355): wait", "<built-in method poll of select.poll object at 0x7>")),
        # the rank that waits longest is the one that counts
        ([call("a.py(1): f", 1, 0.9, wait=10), call("b.py(1): g", 1, 0.9, rank=1, wait=90)],
         ("b.py(1): g", None, OTHER, THREADS)),
    ],
)  # fmt: skip
def test_the_call_that_is_slow_is_named(rows, named):
    diagnosis = judged(*rows)
    found = diagnosis["fetch_call"]
    assert (found["name"], found["inside"], found["kind"], found["loader"]) == named
    if found["name"] == RESIZE:
        cause = data_cause(diagnosis)
        assert (cause.code, cause.stage.op_id, cause.stage.name) == ("input_bound", None, RESIZE)


@pytest.mark.parametrize(
    ("covered", "name", "doubts"),
    [
        (COVERED - 0.01, None, ["no_pipeline"]),
        (COVERED, "NPZReader.open", ["waits_uncovered"]),
        (MOSTLY_COVERED, "NPZReader.open", []),
    ],
)
def test_what_covers_few_of_the_waits_explains_nothing(covered, name, doubts):
    diagnosis = judged(call("NPZReader.open", 1, 0.9, "reader", covered=covered))
    assert diagnosis["fetch_call"]["name"] == name
    assert [doubt["code"] for doubt in diagnosis["doubts"]] == doubts
    assert judged()["fetch_call"] is None


def function(name, own, self_ns, inside=None, inside_ns=None):
    return {"name": name, "own_ns": own, "self_ns": self_ns, "inside": inside, "inside_ns": inside_ns, "step_ns": 1000}


def test_of_the_host_the_function_that_takes_half_of_its_time_by_itself_or_in_one_library_is_named():
    log, lock = function("a.py(1): log", 600, 500), "<built-in acquire of lock>"
    assert host_call([function("c.py(1): f", 90, 90), log], 0.9)["name"] == "a.py(1): log"
    assert host_call([function("b.py(1): get", 700, 20, lock, 680)], 0.9) | {"share": None} == {
        "name": "b.py(1): get", "share": None, "inside": lock, "inside_share": 0.68, "waits": True,
    }  # fmt: skip
    launches = function("a.py(1): step", 800, 100, "torch/x.py(1): f", 200)  # operators
    for rows in ([launches], [function("a.py(1): log", 440, 440)], []):
        assert host_call(rows, 0.9) is None


@pytest.mark.parametrize(("name", "library"), [
    ("train.py(3): step", False), ("data/profile_x.py(1): f", False), ("numpy/core.py(1): f", True),
    ("/usr/lib/python3.11/queue.py(1): get", True), ("/x/site-packages/torch/a.py(1): f", True),
    ("nn.Module: Net_0", True), ("<built-in function sum>", True), ("/x/site-packages/transformers/a.py(1): f", False),
])  # fmt: skip
def test_what_is_a_library(name, library):
    assert (re.search(LIBRARY, name) is not None) is library


def seen(function, total, depth, caller="train.py(3): main", **more):
    row = {
        "rep": 0, "rank": 0, "total_ns": total, "depth": depth, "name": f"train.py: {function}",
        "frame": f"train.py({depth}): {function}", "caller": caller, "is_library": False, "self_ns": total,
        "frame_ns": total, "wait_ns": 0, "launch_ns": total, "training_ns": 0, "network_ns": 0, "owned_ns": total,
        "op_ns": 0, "frame_op_ns": 0, "inside": None, "inside_ns": None, "loop_ns": 1000, "looks": total,
    }  # fmt: skip
    return row | more


MAIN = seen("main", 1000, 1, None, training_ns=500, owned_ns=30)
BUSY_MAIN = MAIN | {"owned_ns": 300}
LOG = seen("log", 500, 2)
FORWARD = seen("Net.construct", 500, 4, network_ns=500, owned_ns=100)
# A compiled step returns at once: the looks are in `.asnumpy()`, which waits for it, and in Python.
MODULE = seen("<module>", 1000, 0, None, training_ns=10, wait_ns=550, owned_ns=100)
AUC = seen("auc", 270, 1, "train.py(74): <module>")
LEAST = round(1000 * LOOP_SHARE)
JSON_CALL = "json/encoder.py: encode"


@pytest.mark.parametrize(("rows", "named"), [
    # waiting for the network is no work of a call
    ([MAIN, seen("log", 700, 2, wait_ns=700 - LEAST + 1)], []),
    ([MAIN, seen("log", 700, 2, wait_ns=700 - LEAST)], [("log", OUTSIDE, 0.7)]),
    # of the loop and of the network only Python of its own counts
    ([BUSY_MAIN], [("main", LOOP, 0.3)]), ([MAIN, FORWARD], []),
    ([MAIN, FORWARD | {"owned_ns": 250}], [("Net.construct", NETWORK, 0.25)]),
    ([seen("x", 900, 2) | {"name": "mindspore/nn/cell.py: Cell.__call__"}], []),
    # the function that holds the loop is no call, whatever little of what trains was seen below it
    ([MODULE, AUC], [("auc", OUTSIDE, 0.27)]),
    ([MODULE | {"caller": "run.py(3): start"}, AUC], [("auc", OUTSIDE, 0.27)]), ([MODULE | {"total_ns": 900}], []),
    ([MAIN, seen("log_mel", 970, 2)], [("log_mel", OUTSIDE, 0.97)]),  # nothing trains below it
    # where operators leave no frame only time in a library is a call of the program's
    ([BUSY_MAIN | {"op_ns": None, "frame_op_ns": None}], []), ([LOG | {"op_ns": None}], []),
    ([LOG | {"op_ns": None, "inside": "train.py: loss", "inside_ns": 500}], []),
    ([LOG | {"op_ns": None, "inside": JSON_CALL, "inside_ns": 249}], []),
    ([LOG | {"op_ns": None, "inside": JSON_CALL, "inside_ns": 250}], [("log", OUTSIDE, 0.5)]),
    # where they have lines these say what is Python
    ([LOG | {"op_ns": 249}], [("log", OUTSIDE, 0.5)]), ([LOG | {"op_ns": 250}], []),
    ([BUSY_MAIN | {"op_ns": 1, "frame_op_ns": 1}], []),
    # one line of a loop that launches operators at others
    ([BUSY_MAIN | {"op_ns": 1, "frame_ns": 250}], [("train.py:1", LINE, 0.25)]),
    ([BUSY_MAIN | {"op_ns": 1}], [("train.py:1", LINE, 0.3)]), ([BUSY_MAIN | {"op_ns": 1, "frame_ns": None}], []),
    ([BUSY_MAIN | {"op_ns": 1, "frame_op_ns": None}], []), ([LOG | {"op_ns": 250, "training_ns": 0}], []),
    ([LOG | {"looks": LEAST_LOOKS - 1}], []),
])  # fmt: skip
def test_which_functions_are_calls_of_the_program(rows, named):
    assert [(call["name"], call["where"], call["share"]) for call in loop_calls(rows)] == named


@pytest.mark.parametrize(("looks", "confidence"), [(ENOUGH_LOOKS - 1, "medium"), (ENOUGH_LOOKS, "high")])
def test_few_looks_make_a_call_less_sure(looks, confidence):
    assert [call["confidence"] for call in loop_calls([LOG | {"looks": looks}])] == [confidence]


def test_the_outermost_function_that_trains_nothing_is_named_and_the_innermost_of_all_looks_holds_the_loop():
    inner = seen("Profiler.collect", 600, 3, "train.py(9): Profiler.step")
    step = seen("Profiler.step", 600, 2, "train.py(25): main", owned_ns=0, frame_ns=None, inside=inner["name"],
                inside_ns=600)  # fmt: skip
    (call,) = loop_calls([MAIN, step, inner])
    assert (call["name"], call["where"], call["share"]) == ("Profiler.step", OUTSIDE, 0.6)
    assert (call["site"], call["code"], call["inside"]) == ("train.py:25", "train.py:3", inner["name"])
    assert call["most_share"] == pytest.approx(0.6 + 2 * (0.6 * 0.4 / 1000) ** 0.5)
    assert [call["name"] for call in loop_calls([MAIN, step, seen("log", 250, 2)])] == ["Profiler.step", "log"]
    inner = seen("train", 800, 2, frame="train.py(57): train", training_ns=500)
    library = seen("Model.train", 1000, 3, is_library=True)
    assert loop_site([MAIN, inner, seen("forward", 790, 4), library]) == "train.py:57"
    assert loop_site([MAIN]) == "train.py:1"
    assert loop_site([library]) is loop_site([]) is None


def test_what_waits_for_what_others_launched_is_no_part_of_a_call_and_where_nearly_all_of_it_goes_is_named():
    """Seen: a logger that read the weights "takes 90 %, at most 20.4 times"; without it the steps took as long."""
    inside = {"inside": "mindspore/common/tensor.py: Tensor.asnumpy", "inside_ns": 600}
    log = seen("log", 900, 2, wait_ns=600, launch_ns=59, **inside)
    (call,) = loop_calls([MAIN, log])
    assert (call["share"], call["wait_share"], call["waits_beside"], call["inside"]) == (0.3, 0.6, True, None)
    assert call["most_share"] < 0.5
    (call,) = loop_calls([MAIN, log | {"launch_ns": 61}])
    assert (call["share"], call["waits_beside"]) == (0.9, False)
    # Seen: batches of a loop's own iterable, "how they are made was not recorded", all of it in one function below.
    batches, other = seen("batches", 900, 1), seen("other", 300, 2, "train.py(3): batches")
    (call,) = loop_calls([MAIN, batches, seen("log_mel", 850, 2, "train.py(3): batches"), other])
    assert (call["name"], call["mostly"]) == ("batches", "log_mel")
    (call,) = loop_calls([MAIN, batches, other])
    assert call["mostly"] is None


@pytest.mark.parametrize(("frame", "kinds"), [
    ("mindspore/ops/composite/base.py(651): _Grad.__call__.<locals>.after_grad", "network training"),
    ("mindspore/graph/api.py(1877): _PyNativeExecutor.grad", "network training"),
    ("mindspore/graph/api.py(900): _JitExecutor.__call__", "network training"),
    ("mindspore/graph/api.py(1805): _PyNativeExecutor.run_op_async", ""),
    ("mindspore/graph/api.py(1895): _PyNativeExecutor.sync", "waits"),
    ("mindspore/nn/optim/adam.py(802): Adam.construct", "training"),
    ("mindspore/train/model.py(10): Model.train", "training"),
    ("mindspore/common/tensor.py(1090): Tensor.asnumpy", "waits"),
    ("/usr/lib/python3.11/threading.py(320): Condition.wait", "waits"), ("/home/me/queue_model.py(3): get", ""),
    ("mindspore/nn/cell.py(1420): Cell.__call__", "network"),
    ("torch/nn/modules/module.py(1790): Module._call_impl", "network training"),
    ("torch/_tensor.py(640): Tensor.backward", "network training"), ("torch/optim/sgd.py(120): SGD.step", "training"),
    ("torch/utils/data/dataloader.py(725): _BaseDataLoaderIter.__next__", "training"),
    ("torch/cuda/__init__.py(1040): synchronize", "waits"), ("torch/serialization.py(960): save", ""),
])  # fmt: skip
def test_frames_that_train_compute_or_wait(frame, kinds):
    patterns = {"network": NETWORK_FRAMES, "training": TRAINING_FRAMES, "waits": WAIT_FRAMES}
    assert [name for name, pattern in patterns.items() if re.search(pattern, frame)] == kinds.split()
