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
        "rep": 0, "rank": rank, "is_wait": name.startswith("enumerate"), "name": name, "depth": float(depth), "category": category, "tracks": 1,
        "busy_ns": share * 2000, "loading_ns": 2000, "covered_ns": covered * wait, "wait_ns": wait,
    }  # fmt: skip


def judged(*rows):
    diagnosis = diagnose([WAITING], [], [])
    take_calls(diagnosis, rows)
    return diagnosis


def named(*rows):
    found = judged(*rows)["fetch_call"]
    return found["name"], found["inside"], found["kind"], found["loader"]


def test_of_nested_calls_the_innermost_of_the_users_is_named_and_the_library_beside_it():
    rows = [
        call(SINGLE, 2, 1.0, "user_annotation"), call("torch/utils/data/_utils/fetch.py(25): fetch", 4, 0.99),
        call("data/set.py(3): __getitem__", 5, 0.9), call("data/set.py(30): resize", 6, 0.8),
        call("scipy/ndimage/_interpolation.py(7): zoom", 7, 0.7), call("<built-in function zoom_shift>", 8, 0.69),
    ]  # fmt: skip
    assert named(*rows) == ("data/set.py(30): resize", "scipy/ndimage/_interpolation.py(7): zoom", OTHER, OWN)
    cause = data_cause(judged(*rows))
    assert (cause.code, cause.stage.op_id, cause.stage.name) == ("input_bound", None, "data/set.py(30): resize")


def test_calls_of_files_are_storage_and_stand_beside_the_reader():
    rows = [call("NPZReader.open", 3, 0.9, "reader"), call("read", 3.9, 0.6, "POSIX")]
    assert named(*rows) == ("NPZReader.open", "read", STORAGE, THREADS)


def test_work_that_is_spread_names_nothing_but_who_makes_the_batches():
    assert named(call(SINGLE, 1, 1.0), call("a.py(1): f", 2, HOT - 0.01)) == (None, None, OTHER, OWN)
    assert judged()["fetch_call"] is None


def test_a_row_that_waits_in_the_trainings_own_thread_is_what_is_slow():
    rows = [call(SINGLE, 1, 1.0), call("set.py(9): __getitem__", 2, 0.9), call("<built-in function sleep>", 3, 0.9)]
    assert named(*rows) == ("set.py(9): __getitem__", "<built-in function sleep>", OTHER, OWN)


def test_where_all_is_done_in_libraries_the_one_that_was_chosen_is_named_and_python_itself_never():
    rows = [
        call(SINGLE, 1, 1.0),
        call("torchvision/datasets/folder.py(9): __getitem__", 2, 0.9),
        call("json/decoder.py(1): f", 3, 0.9),
    ]
    assert named(*rows)[:2] == ("torchvision/datasets/folder.py(9): __getitem__", "json/decoder.py(1): f")
    assert named(rows[0], rows[2])[0] is None


@pytest.mark.parametrize("wait", ["threading.py(355): wait", "<built-in method poll of select.poll object at 0x7>"])
def test_a_loader_that_waits_for_its_workers_is_not_what_is_slow(wait):
    rows = [call(SEVERAL, 1, 1.0), call("torch/utils/data/dataloader.py(1): _get_data", 2, 1.0), call(wait, 3, 0.9)]
    assert named(*rows) == (None, None, OTHER, WORKERS)


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


def test_the_rank_that_waits_longest_is_the_one_that_counts():
    rows = [call("a.py(1): f", 1, 0.9, wait=10), call("b.py(1): g", 1, 0.9, rank=1, wait=90)]
    assert named(*rows)[0] == "b.py(1): g"


def function(name, own, self_ns, inside=None, inside_ns=None):
    return {"name": name, "own_ns": own, "self_ns": self_ns, "inside": inside, "inside_ns": inside_ns, "step_ns": 1000}


def of_host(*rows):
    return host_call(rows, 0.9)


def test_of_the_host_the_function_that_takes_half_of_its_time_by_itself_or_in_one_library_is_named():
    log, waits = (
        function("a.py(1): log", 600, 500),
        function("b.py(1): get", 700, 20, "<built-in acquire of lock>", 680),
    )
    assert of_host(function("c.py(1): f", 90, 90), log)["name"] == "a.py(1): log"
    assert of_host(waits) | {"share": None} == {
        "name": "b.py(1): get", "share": None, "inside": "<built-in acquire of lock>", "inside_share": 0.68, "waits": True,
    }  # fmt: skip
    assert of_host(function("a.py(1): step", 800, 100, "torch/x.py(1): f", 200)) is None  # it launches operators
    assert of_host(function("a.py(1): log", 440, 440)) is None
    assert of_host() is None


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("train.py(3): step", False), ("data/profile_x.py(1): f", False), ("numpy/core.py(1): f", True),
        ("/usr/lib/python3.11/queue.py(1): get", True), ("/x/site-packages/torch/a.py(1): f", True), ("nn.Module: Net_0", True),
        ("<built-in function sum>", True), ("/x/site-packages/transformers/a.py(1): f", False),
    ],
)  # fmt: skip
def test_what_is_a_library(name, library):
    assert (re.search(LIBRARY, name) is not None) is library


def seen(function, total, depth, caller="train.py(3): main", **more):
    row = {
        "rep": 0, "rank": 0, "total_ns": total, "depth": depth, "name": f"train.py: {function}",
        "frame": f"train.py({depth}): {function}", "caller": caller, "is_library": False, "self_ns": total,
        "frame_ns": total, "wait_ns": 0, "launch_ns": total, "training_ns": 0, "network_ns": 0, "owned_ns": total, "op_ns": 0, "inside": None,
        "inside_ns": None, "loop_ns": 1000, "looks": total,
    }  # fmt: skip
    return row | more


MAIN = seen("main", 1000, 1, None, training_ns=500, owned_ns=30)


def found(*rows):
    return [(call["name"], call["where"], call["share"]) for call in loop_calls(rows)]


def test_the_outermost_function_that_trains_nothing_is_named_and_none_that_it_calls():
    inner = seen("Profiler.collect", 600, 3, "train.py(9): Profiler.step")
    step = seen(
        "Profiler.step", 600, 2, "train.py(25): main", owned_ns=0, frame_ns=None, inside=inner["name"], inside_ns=600
    )
    assert found(MAIN, step, inner) == [("Profiler.step", OUTSIDE, 0.6)]
    call = loop_calls([MAIN, step, inner])[0]
    assert (call["site"], call["code"], call["inside"]) == ("train.py:25", "train.py:3", inner["name"])
    assert call["most_share"] == pytest.approx(0.6 + 2 * (0.6 * 0.4 / 1000) ** 0.5)
    assert found(MAIN, step, seen("log", 250, 2)) == [("Profiler.step", OUTSIDE, 0.6), ("log", OUTSIDE, 0.25)]


def test_the_loop_is_in_the_innermost_function_that_nearly_all_looks_have():
    inner = seen("train", 800, 2, frame="train.py(57): train", training_ns=500)
    library = seen("Model.train", 1000, 3, is_library=True)
    assert loop_site([MAIN, inner, seen("forward", 790, 4), library]) == "train.py:57"
    assert loop_site([MAIN]) == "train.py:1"
    assert loop_site([library]) is loop_site([]) is None


def test_waiting_for_the_network_is_no_work_of_a_call_but_part_of_its_bound():
    least = round(1000 * LOOP_SHARE)
    assert found(MAIN, seen("log", 700, 2, wait_ns=700 - least + 1)) == []
    assert found(MAIN, seen("log", 700, 2, wait_ns=700 - least)) == [("log", OUTSIDE, 0.7)]


def test_of_the_loop_and_of_the_network_only_python_of_its_own_counts():
    assert found(MAIN | {"owned_ns": 300}) == [("main", LOOP, 0.3)]
    forward = seen("Net.construct", 500, 4, network_ns=500, owned_ns=100)
    assert found(MAIN, forward) == []
    assert found(MAIN, forward | {"owned_ns": 250}) == [("Net.construct", NETWORK, 0.25)]
    assert found(seen("x", 900, 2) | {"name": "mindspore/nn/cell.py: Cell.__call__"}) == []


def test_the_function_that_holds_the_loop_is_no_call_whatever_little_of_what_trains_was_seen_below_it():
    """A compiled step returns at once: the looks are in `.asnumpy()`, which waits for it, and in Python."""
    module = seen("<module>", 1000, 0, None, training_ns=10, wait_ns=550, owned_ns=100)
    auc = seen("auc", 270, 1, "train.py(74): <module>")
    assert found(module, auc) == [("auc", OUTSIDE, 0.27)]
    assert found(module | {"caller": "run.py(3): start"}, auc) == [("auc", OUTSIDE, 0.27)]
    assert found(module | {"total_ns": 900}) == []


def test_where_operators_leave_no_frame_only_time_in_a_library_is_a_call_of_the_programs():
    log = seen("log", 500, 2) | {"op_ns": None}
    assert found(MAIN | {"owned_ns": 300, "op_ns": None}) == []
    assert found(log) == found(log | {"inside": "train.py: loss", "inside_ns": 500}) == []
    assert found(log | {"inside": "json/encoder.py: encode", "inside_ns": 249}) == []
    assert found(log | {"inside": "json/encoder.py: encode", "inside_ns": 250}) == [("log", OUTSIDE, 0.5)]


def test_where_the_operators_have_lines_these_say_what_is_python():
    log = seen("log", 500, 2)
    assert found(log | {"op_ns": 249}) == [("log", OUTSIDE, 0.5)]
    assert found(log | {"op_ns": 250}) == []
    assert found(MAIN | {"owned_ns": 300, "op_ns": 1}) == []


def test_waiting_for_what_others_launched_is_no_part_of_a_call():
    """Seen: a logger that read the weights "takes 90 %, at most 20.4 times"; without it the steps took as long."""
    log = seen(
        "log", 900, 2, wait_ns=600, launch_ns=59, inside="mindspore/common/tensor.py: Tensor.asnumpy", inside_ns=600
    )
    (call,) = loop_calls([MAIN, log])
    assert (call["share"], call["wait_share"], call["waits_beside"], call["inside"]) == (0.3, 0.6, True, None)
    assert call["most_share"] < 0.5
    (call,) = loop_calls([MAIN, log | {"launch_ns": 61}])
    assert (call["share"], call["waits_beside"]) == (0.9, False)


def test_the_function_in_which_nearly_all_of_a_call_goes_is_named_beside_it():
    """Seen: batches of a loop's own iterable, "how they are made was not recorded", all of it in one function below."""
    rows = [
        MAIN,
        seen("batches", 900, 1),
        seen("log_mel", 850, 2, "train.py(3): batches"),
        seen("other", 300, 2, "train.py(3): batches"),
    ]
    (call,) = loop_calls(rows)
    assert (call["name"], call["mostly"]) == ("batches", "log_mel")
    (call,) = loop_calls([*rows[:2], *rows[3:]])
    assert call["mostly"] is None


def test_a_function_below_which_nothing_trains_does_not_hold_the_loop():
    (call,) = loop_calls([MAIN, seen("log_mel", 970, 2)])
    assert (call["name"], call["where"]) == ("log_mel", OUTSIDE)


def test_few_looks_name_no_call():
    log = seen("log", 500, 2)

    def looked(looks):
        return loop_calls([log | {"looks": looks}])

    assert found(log | {"looks": LEAST_LOOKS - 1}) == []
    assert [call["confidence"] for call in looked(ENOUGH_LOOKS - 1)] == ["medium"]
    assert [call["confidence"] for call in looked(ENOUGH_LOOKS)] == ["high"]


@pytest.mark.parametrize(
    ("frame", "kinds"),
    [
        ("mindspore/ops/composite/base.py(651): _Grad.__call__.<locals>.after_grad", "network training"),
        ("mindspore/graph/api.py(1877): _PyNativeExecutor.grad", "network training"),
        ("mindspore/graph/api.py(900): _JitExecutor.__call__", "network training"),
        ("mindspore/graph/api.py(1805): _PyNativeExecutor.run_op_async", ""),
        ("mindspore/graph/api.py(1895): _PyNativeExecutor.sync", "waits"),
        ("mindspore/nn/optim/adam.py(802): Adam.construct", "training"),
        ("mindspore/train/model.py(10): Model.train", "training"),
        ("mindspore/common/tensor.py(1090): Tensor.asnumpy", "waits"),
        ("/usr/lib/python3.11/threading.py(320): Condition.wait", "waits"),
        ("/home/me/queue_model.py(3): get", ""),
        ("mindspore/nn/cell.py(1420): Cell.__call__", "network"),
        ("torch/nn/modules/module.py(1790): Module._call_impl", "network training"),
        ("torch/_tensor.py(640): Tensor.backward", "network training"),
        ("torch/optim/sgd.py(120): SGD.step", "training"),
        ("torch/utils/data/dataloader.py(725): _BaseDataLoaderIter.__next__", "training"),
        ("torch/cuda/__init__.py(1040): synchronize", "waits"),
        ("torch/serialization.py(960): save", ""),
    ],
)
def test_frames_that_train_compute_or_wait(frame, kinds):
    patterns = {"network": NETWORK_FRAMES, "training": TRAINING_FRAMES, "waits": WAIT_FRAMES}
    assert [name for name, pattern in patterns.items() if re.search(pattern, frame)] == kinds.split()
