"""The answer where the step itself limits, or a rank of it, from what the verdict found."""

import pytest

from pipeprof.report.answer import shape, step
from pipeprof.report.sections.stragglers import straggler_sentences
from pipeprof.verdict.cause import Advice, Cause, Gain

MS = 1_000_000


def slow_rank(kind, **more):
    """A straggler of 5 ms for a step of 100."""
    return {"rank": 5, "kind": kind, "excess_ns": 5 * MS, "share": 0.05, "steps": 200, "held_up_steps": 20,
            "phase": "forward", "confidence": "high", "doubts": [], "doubt_facts": [],
            "suggestions": ["rank 5: look at it"]} | more  # fmt: skip


def of_straggler(item):
    return step.of_straggler({"run": {"path": "r"}, "ranks": {"straggler": {"found": [item]}}}, Cause("straggler"))


def test_a_rank_that_is_slow_now_and_then_is_late_by_what_it_is_late_then():
    given = of_straggler(slow_rank("sometimes", phase=None))
    assert given.sentence == (
        "Rank 5 is a straggler: in 20 of 200 steps it takes on average 50.0 ms longer than the other ranks (5.0 % of "
        "the time of all steps), and they wait for it."
    )
    assert not given.cause
    found = {"verdict": "straggler", "found": [slow_rank("sometimes", phase=None)]}
    (said,) = straggler_sentences(found)
    assert said == (
        "Rank 5 is a straggler: 5.00 ms per step (5.0 %) longer than the others on average, all of it in 20 of 200 "
        "steps (high confidence)"
    )


def test_a_rank_that_is_always_slow_is_late_in_a_step_and_in_a_phase():
    given = of_straggler(slow_rank("steady"))
    assert given.sentence == (
        "Rank 5 is a straggler: it takes 5.00 ms (5.0 %) longer for a step than the other ranks, and they wait for it."
    )
    assert given.cause == "Most of the difference is in the forward pass."


@pytest.mark.parametrize(("ranks", "rest"), [(8, []), (9, ["and 1 more rank"]), (10, ["and 2 more ranks"])])
def test_stragglers_beyond_those_that_are_listed_are_counted(ranks, rest):
    found = {"verdict": "straggler", "found": [slow_rank("steady", rank=rank) for rank in range(ranks)]}
    assert straggler_sentences(found)[8:] == rest


def kind(name, share, phase="forward", count=10.0):
    return {"type": name, "phase": phase, "share": share, "count_per_step": count}


def test_a_step_that_computes_names_operators_of_its_computing_alone():
    types = [kind("Adam", 0.38, "optimizer"), kind("AllReduce", 0.2, "communication"), kind("MatMul", 0.25)]
    said = step._cause({"top_types": types, "limit_share": 0.4}, "compute")
    assert said == "Most of it: 10 MatMul per step (25 %, forward)."


def test_operators_side_by_side_are_no_larger_than_the_computing_of_the_step():
    types = [kind("MatMul", 0.9), kind("ReLU", 0.1, "other", 1.0), kind("Cast", 0.04)]
    said = step._cause({"top_types": types, "limit_share": 0.4}, "compute")
    assert said == "Most of it: 10 MatMul per step (40 %, forward) and `ReLU` (10 %)."


LAUNCHED = "Python and framework code launch about 512 operators per step, one by one."


@pytest.mark.parametrize(
    ("many", "mode", "largest", "said"),
    [
        (512.4, "pynative", "MatMul", LAUNCHED),
        (512.4, "graph", "MatMul", ""),
        (512.4, "pynative", "Gradients/Default/net-Net/MatMul-op0", ""),  # under jit
        (512.4, None, "MatMul", LAUNCHED),  # of a recording that did not note it
        (1.0, "pynative", "MatMul", ""),
        (None, "pynative", "MatMul", ""),
    ],
)
def test_launches_are_of_all_operators_not_of_the_largest_types_and_not_in_graph_mode(many, mode, largest, said):
    network = {"device": None, "top_ops": [{"name": largest}], "ops_per_step": many}
    assert step._cause(network, "host_gap", mode) == said


@pytest.mark.parametrize(
    ("waiting", "said"),
    [
        (0.1, "10 % of the step time is waiting for another rank, 40 % transfer."),
        (0.6, "50 % of the step time is waiting for another rank, 0 % transfer."),
        (0.0, ""),
        (None, ""),
    ],
)
def test_waiting_and_transfer_are_the_communication_of_the_same_ranks(waiting, said):
    network = {"limit_share": 0.5, "waiting_share": 0.3, "limit_waiting_share": waiting}
    assert step._cause(network, "communication") == said


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.049, " The data is ready in time (the training waits for it 4.9 % of the time)."),
        (0.05, " The training waits for its data only now and then (5.0 % of the time)."),
    ],
)
def test_data_that_is_waited_for_is_not_called_ready(share, said):
    diagnosis = {"verdict": "consumer_bound", "data_wait_share": share, "network": {"steps": 90}}
    assert step._data({"diagnosis": diagnosis, "pipeline": {"made_ahead": False}}) == said


@pytest.mark.parametrize(
    ("devices", "idle"),
    [
        ([], "no operator runs, only Python and framework code"),
        (["", "CPU", "host"], "no operator runs, only Python and framework code"),
        (["AI_CORE", "AI_CPU", "host"], "no operator runs on the device"),
    ],
)
def test_where_operators_ran_on_a_device_alone_nothing_is_said_of_the_host(devices, idle):
    """Ascend's files list what ran on the device: what the host did meanwhile is not in them."""
    device = shape.on_device({"op_devices": [{"device": name} for name in devices]})
    network = {"limit": "host_gap", "limit_share": 0.6, "device": None, "stalled_share": 0.0, "slowest_rank": None}
    assert step.limited(network, device=device) == f"Host-bound: during 60 % of the step time {idle}."


@pytest.mark.parametrize(
    ("most", "of_one_mode", "said"),
    [
        (2.0, False, "{half}, a step would run 1.33 times as fast; at most 2 times"),
        (2.0, True, "{half}, a step like those recorded would run 1.33 times as fast"),
        (1e6, False, "A step would run possibly more than 100 times as fast"),
    ],
)
def test_a_bound_stands_beside_what_half_of_the_part_brings(most, of_one_mode, said):
    half = "If this part (50 % of the step) took half as long"
    assert step._halved(most, step._part({}), of_one_mode=of_one_mode) == said.format(half=half)


def test_the_part_that_gets_cheaper_is_named():
    op = {"site": "/home/me/train.py(12): Net.construct"}
    assert step._part({"largest": op}) == "what `train.py:12` computes"
    assert step._part({"largest": op, "in_function": True, "type": "Conv2D"}) == "all Conv2D with their gradients"


@pytest.mark.parametrize(
    ("site", "place", "lines"),
    [
        ("train.py(54): train_step", "train.py:54" + step.UNKNOWN_LINES, True),
        ("train.py(56)", "train.py:56", False),
    ],
)
def test_of_a_compiled_function_the_next_command_records_lines_unless_they_were(site, place, lines):
    op = {"name": "MatMul-op0", "type": "MatMul", "phase": "backward", "in_shapes": "x", "share": 0.5, "site": site,
          "site_share": 0.9}  # fmt: skip
    facts = {"type": "MatMul", "phase": "other", "count_per_step": 9, "share": 0.5, "largest": op, "in_function": True}
    network = {
        "limit": "compute", "limit_share": 0.9, "device": None, "slowest_rank": None, "confidence": "medium",
        "doubt_facts": [], "steps": 3, "top_types": [], "top_ops": [], "weights": {"compute": 0.9}, "shares": None,
        "actions": [{"code": "fewer_of_type", "share": 0.5, "facts": facts, "action": "use fewer MatMul"}],
    }  # fmt: skip
    run = {"fingerprint": {}, "path": "r", "command": ["python", "t.py"], "workdir": None, "git": None,
           "source": "collect"}  # fmt: skip
    diagnosis = {"network": network, "data_wait_share": None, "verdict": "not_measured"}
    content = {"diagnosis": diagnosis, "run": run, "steps": {"passes": {}}, "op_devices": []}
    lead = Cause("compute", advice=Advice("fewer_of_type", gain=Gain("bound", high=2.0)))
    given = step.answer(content, lead)
    assert given.place == place
    assert ("--graph-lines" in given.next_command) is lines
