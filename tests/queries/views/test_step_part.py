"""Every moment of a step counts once, for the first thing it is."""

import pytest
import table_rows
from table_rows import step

INFO = [
    {"op_id": number, "phase": phase, "name": phase}
    for number, phase in enumerate(("forward", "backward", "optimizer", "communication", "other", "gradients", "after"))
]
FORWARD, BACKWARD, OPTIMIZER, COMMUNICATION, OTHER, GRADIENTS, AFTER, UNKNOWN = range(8)
PARTS = [
    "forward", "backward", "optimizer", "other", "gradients", "after", "exposed", "tail", "data_wait", "host_gap",
    "overlapped",
]  # fmt: skip


def op(op_id, start, stop, number=0, **more):
    return table_rows.op(op_id, stop - start, number, start, **more)


def parts(look, ops, fetches=(), collectives=(), info=(), **more):
    row = step(0, 100, 200, in_window=True, **more)
    infos = [*INFO, *info]
    tables = {"step": [row], "op": ops, "op_info": infos, "fetch": list(fetches), "collective": list(collectives)}
    columns = ", ".join(f"{part}_ns" for part in PARTS)
    text = f"SELECT {columns}, dur_ns FROM step_part"  # noqa: S608 - names of this file
    rows = look(text, {name: rows for name, rows in tables.items() if rows})
    assert len(rows) == 1
    *times, whole = rows[0]
    assert sum(times[:-1]) == whole == 100
    return {part: time for part, time in zip(PARTS, times, strict=True) if time}


def test_a_step_of_all_parts(look):
    ops = [op(FORWARD, 120, 140), op(BACKWARD, 145, 160), op(COMMUNICATION, 150, 180), op(OPTIMIZER, 185, 190)]
    fetch = {"step": 0, "start_ns": 100, "wait_ns": 10}
    assert parts(look, ops, [fetch], bp_ns=170) == {
        "data_wait": 10, "forward": 20, "backward": 15, "exposed": 10, "tail": 10, "optimizer": 5, "host_gap": 30,
        "overlapped": 10,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        pytest.param([op(FORWARD, 100, 130), op(FORWARD, 110, 120)], 30, id="nested"),
        pytest.param([op(FORWARD, 100, 130), op(FORWARD, 120, 150)], 50, id="overlapping"),
        pytest.param([op(FORWARD, 100, 130), op(FORWARD, 100, 130)], 30, id="twice the same"),
        pytest.param([op(FORWARD, 100, 130), op(FORWARD, 130, 140)], 40, id="one after the other"),
        pytest.param([op(FORWARD, 90, 110), op(FORWARD, 190, 230)], 20, id="over the ends of the step"),
        pytest.param([op(FORWARD, 150, 150), op(FORWARD, 10, 50), op(FORWARD, 110, 111)], 1, id="empty and outside"),
    ],
)
def test_operators_count_as_a_union(look, ops, expected):
    assert parts(look, ops)["forward"] == expected


def test_forward_counts_before_backward_before_optimizer_before_others(look):
    ops = [op(FORWARD, 100, 120), op(BACKWARD, 110, 140), op(OPTIMIZER, 130, 160), op(OTHER, 150, 180)]
    found = parts(look, ops)
    assert found == {"forward": 20, "backward": 20, "optimizer": 20, "other": 20, "host_gap": 20}


def test_work_on_gradients_and_behind_the_optimizer_count_before_communication(look):
    ops = [op(GRADIENTS, 110, 130), op(AFTER, 120, 150), op(COMMUNICATION, 140, 160), op(FORWARD, 105, 115)]
    found = parts(look, ops)
    assert found == {"forward": 10, "gradients": 15, "after": 20, "exposed": 10, "overlapped": 10, "host_gap": 45}


def test_an_operator_nothing_is_known_of_is_other(look):
    assert parts(look, [op(UNKNOWN, 100, 120)])["other"] == 20


def test_a_collective_seen_as_operator_and_as_event_counts_once(look):
    event = {"step": 0, "start_ns": 150, "dur_ns": 20}
    assert parts(look, [op(COMMUNICATION, 150, 170)], collectives=[event])["exposed"] == 20


def test_without_a_backward_end_nothing_is_in_the_tail(look):
    assert parts(look, [op(COMMUNICATION, 150, 170)], bp_ns=None) == {"exposed": 20, "host_gap": 80}


def test_fetching_beside_operators_is_no_wait(look):
    fetch = {"step": 0, "start_ns": 100, "wait_ns": 50}
    assert parts(look, [op(FORWARD, 110, 200)], [fetch]) == {"data_wait": 10, "forward": 90}


def test_steps_without_operators_and_evaluation_have_no_row(look):
    steps = [step(n, 0, 10, kind, in_window=True) for n, kind in enumerate(("train", "train", "eval"))]
    tables = {
        "step": steps,
        "op": [op(FORWARD, 0, 5, 1), op(FORWARD, 0, 5, 2), op(FORWARD, 0, 5, None)],
        "op_info": INFO,
    }
    assert look("SELECT step FROM step_part", tables) == [(1,)]


def test_warmup_does_not_stand_for_training_steps_without_operators(look):
    steps = [step(n, 0, 10, kind, in_window=True) for n, kind in enumerate(("warmup", "train"))]
    assert look("SELECT step FROM step_part", {"step": steps, "op": [op(FORWARD, 0, 5, 0)]}) == []


def test_on_a_device_what_ran_there_counts_of_whatever_step_and_the_host_does_not(look):
    """The kernel of the step before runs into this one, that of this one when the host is a step ahead."""
    host = [op(FORWARD, 100, 150, side="host"), op(BACKWARD, 150, 195, side="host")]
    device = [
        op(OPTIMIZER, 90, 110, number=7, side="device"),
        op(FORWARD, 120, 130, side="device"),
        op(BACKWARD, 250, 260, side="device"),
    ]
    assert parts(look, [*host, *device]) == {"optimizer": 10, "forward": 10, "host_gap": 80}


def test_an_operator_of_no_step_counts_only_on_a_device(look):
    assert parts(look, [op(FORWARD, 110, 120), op(BACKWARD, 130, 140, number=None)]) == {"forward": 10, "host_gap": 90}


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("my range", "user_annotation"),
        ("train.py(7): main", "python_function"),
        ("ProfilerStep*", "cpu_op"),
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "cpu_op"),
    ],
)
def test_what_a_trace_has_around_its_operators_is_none(look, name, category):
    """It takes the whole step: what it does not do in operators is waiting for data, and the host."""
    info = [{"op_id": 20, "name": name, "phase": "other", "category": category}]
    fetch = {"step": 0, "start_ns": 100, "wait_ns": 30}
    found = parts(look, [op(20, 100, 200), op(FORWARD, 140, 160)], [fetch], info=info)
    assert found == {"data_wait": 30, "forward": 20, "host_gap": 50}
    assert (
        look("SELECT step FROM step_part", {"step": [step(0, 100, 200)], "op": [op(20, 100, 200)], "op_info": info})
        == []
    )
