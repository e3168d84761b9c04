"""When a process of the job is said to take the CPU that the training needs."""

import pytest
from typed_rows import of_dicts

from pipeprof.verdict import account
from pipeprof.verdict.account import KIND, lower

find_contention, loop_cores = of_dicts(account.find_contention), of_dicts(account.loop_cores)

PLACE = {"rep": 0, "rank": 0, "phase": "steady"}
ROOM = PLACE | {"cores": 2.0, "idle_share": 0.02, "job_cores": 1.9, "dur_ns": 60_000_000_000}
WRITER = PLACE | {
    "part": "child", "what": "WriterPool", "site": "train.py:9", "library": "w.py:2", "command": "python", "pid": 12,
    "processes": 1, "cores": 0.9, "job_share": 0.45, "wait_cores": None,
}  # fmt: skip
MAIN = WRITER | {"part": "main", "what": "", "site": "", "library": "", "pid": None, "cores": 1.1, "job_share": 0.55,
                 "wait_cores": 0.75}  # fmt: skip


@pytest.mark.parametrize(("row", "room", "part"), [
    ({"job_share": 0.19}, {}, None), ({"cores": 0.09}, {}, None), ({"part": "worker"}, {}, None),
    ({"part": "other_rank"}, {}, None), ({"part": "neighbour", "job_share": None}, {}, None),
    ({"phase": "warm_up"}, {}, None), ({}, {"idle_share": 0.11}, None), ({}, {"idle_share": None}, None),
    ({}, {"cores": None}, None), ({}, {"phase": "set_up"}, None), ({"cores": 0.04}, {"cores": 0.5}, "child"),
    ({"part": "launcher"}, {}, "launcher"),
])  # fmt: skip
def test_who_is_named(row, room, part):
    found = find_contention([MAIN, WRITER | row], [ROOM | room])
    assert (found and found["part"]) == part


THREAD = WRITER | {"part": "python_thread", "what": "count", "library": "", "command": "", "wait_cores": 0.1}
HELD = ROOM | {"idle_share": 0.5, "gil_share": 0.7}


@pytest.mark.parametrize(("row", "room", "named"), [
    ({}, {}, True),
    ({}, {"gil_share": 0.39}, False),  # such as a thread that computes in NumPy
    ({}, {"gil_share": None}, False), ({"cores": 0.19}, {}, False), ({"job_share": 0.19}, {}, False),
    ({"what": ""}, {}, False),  # recorded before threads were told by what they run
])  # fmt: skip
def test_a_python_thread_is_named_where_the_interpreters_lock_is_held(row, room, named):
    found = find_contention([MAIN, THREAD | row], [HELD | room])
    assert (found is not None) == named
    if found:
        assert (found["kind"], found["what"], found["confidence"]) == ("lock_contention", "count", "medium")
        assert (found["cores"], found["training_cores"], found["own_wait_cores"]) == (0.9, 1.1, 0.1)


@pytest.mark.parametrize(
    ("room", "codes", "confidence"),
    [
        ({"job_cores": 1.4}, ["other_load"], "low"),
        ({"dur_ns": 4_000_000_000}, ["short"], "medium"),
        ({"dur_ns": 4_000_000_000, "job_cores": 1.4}, ["short", "other_load"], "low"),
    ],
)
def test_doubts(room, codes, confidence):
    found = find_contention([MAIN, WRITER], [ROOM | room])
    assert ([doubt["code"] for doubt in found["doubts"]], found["confidence"]) == (codes, confidence)


def test_a_busy_child_on_a_machine_without_idle_cores_is_named_the_largest_in_half_of_the_repetitions():
    found = find_contention([MAIN, WRITER], [ROOM])
    assert (found["kind"], found["pid"], found["site"], found["confidence"]) == (KIND, 12, "train.py:9", "high")
    assert (found["training_cores"], found["wait_cores"], found["available_cores"]) == (1.1, 0.75, 2.0)
    other = WRITER | {"what": "Other", "cores": 1.0, "pid": 13}
    assert find_contention([MAIN, WRITER, other], [ROOM])["pid"] == 13
    rooms, one = [ROOM | {"rep": rep} for rep in range(3)], WRITER | {"rep": 0}
    assert find_contention([one], rooms) is None
    found = find_contention([one, WRITER | {"rep": 1, "pid": 99}], rooms)
    assert found["doubts"] == [{"code": "repetitions_differ", "agree": 2, "of": 3}]


def diagnosis(**more):
    return {"verdict": "consumer_bound", "kind": None, "facts": None, "confidence": "high", "doubts": [],
            "network": {"confidence": "medium", "doubts": [{"code": "varies"}]}} | more  # fmt: skip


def lowered(found, **more):
    made = diagnosis(**more)
    lower(made, found)
    return made


def test_what_else_was_found_is_less_sure():
    made = lowered(find_contention([MAIN, WRITER], [ROOM]))
    assert (made["kind"], made["process"]["leads"]) == (KIND, True)
    assert (made["confidence"], made["network"]["confidence"]) == ("medium", "low")
    assert made["doubts"] == [{"code": KIND, "share": 0.45, "what": "WriterPool", "pid": 12}]
    assert [doubt["code"] for doubt in made["network"]["doubts"]] == ["varies", KIND]
    assert lowered(None) == diagnosis() | {"process": None}


@pytest.mark.parametrize(("verdict", "kind", "limit", "leads"), [
    ("consumer_bound", None, "host_gap", True), ("consumer_bound", None, "other_loader", False),
    ("input_bound", "burst", None, True), ("input_bound", "wait", None, False), ("input_bound", None, None, False),
])  # fmt: skip
def test_a_thread_that_may_make_the_batches_does_not_lead(verdict, kind, limit, leads):
    made = lowered(find_contention([MAIN, THREAD], [HELD]), verdict=verdict, kind=kind, network={"limit": limit})
    assert bool(made["process"]) == leads
    assert (made["kind"], made["confidence"]) == (kind, "medium")
    assert [doubt["code"] for doubt in made["doubts"]] == ["lock_contention"]


@pytest.mark.parametrize(
    ("computing", "ready", "leads"),
    [(0.05, None, False), (0.3, None, True), (None, None, True), (0.085, 0.5, True), (0.015, 0.75, False)],
)
def test_a_stage_that_only_waits_may_wait_for_that_very_process(computing, ready, leads):
    """One that is ready to compute for most of its time waits for a CPU, not for a process."""
    dataset = MAIN | {"part": "dataset_thread", "cores": 0.25, "wait_cores": ready}
    found = find_contention([MAIN, WRITER, dataset], [ROOM])
    made = lowered(found, verdict="input_bound", kind="wait", facts={"cpu_share": computing}, network=None)
    assert made["process"]["leads"] is leads
    assert (made["kind"], made["confidence"]) == (KIND if leads else "wait", "medium")


@pytest.mark.parametrize(("rows", "training", "cores"), [
    ([MAIN], 1.0, 1.85), ([MAIN], 0.5, 3.7), ([MAIN | {"wait_cores": None}], 1.0, 1.1),
    ([MAIN, MAIN | {"part": "mindspore_thread"}], 1.0, 3.7), ([MAIN, MAIN | {"rank": 1, "cores": 2.0}], 1.0, 2.75),
    ([MAIN | {"phase": "warm_up"}, WRITER], 1.0, None), ([], 1.0, None), ([MAIN], 0.0, None),
])  # fmt: skip
def test_cores_that_the_threads_of_the_loop_used_or_wanted_in_its_steps(rows, training, cores):
    assert loop_cores(rows, training) == (cores if cores is None else pytest.approx(cores))
