"""The answers where a process that takes CPU, an interruption, slower steps, a rank or the step itself limits."""

import pytest
from run_verdicts import answered

from pipeprof.record.schema import BY_NAME
from pipeprof.report.answer import interruptions, shape, step
from pipeprof.report.answer.screen import height, lines
from pipeprof.report.sections.cpu import cpu_section
from pipeprof.report.sections.run import whole_run_section
from pipeprof.report.sections.stragglers import straggler_sentences
from pipeprof.report.words import training
from pipeprof.report.words.names import CPU_USERS
from pipeprof.verdict.cause import Advice, Cause, Gain
from pipeprof.verdict.run_account import ONCE, RECURRING
from tests.unit.report.conftest import MS, RUN

S = 1_000 * MS
FIRST = {"rep": 0, "rank": 0}


def fits(given):
    return height(lines(given, "r: 64 training steps.", "More: --full.")) <= 20


SPIN = FIRST | {
    "kind": "cpu_contention", "part": "child", "pid": 12, "processes": 1, "what": "WriterPool",
    "command": "python train.py", "site": "/w/train.py:9", "library": "/lib/mindspore/train/summary/_writer_pool.py:84",
    "cores": 0.9, "job_share": 0.45, "training_cores": 1.1, "wait_cores": 2.81, "available_cores": 2.0,
    "idle_share": 0.0, "other_cores": 0.0, "sampled_ns": 51 * S, "doubts": [], "confidence": "high", "leads": True,
}  # fmt: skip


def of_process(**more):
    diagnosis = {"process": SPIN | more, "verdict": "consumer_bound", "network": None, "data_wait_share": 0.0,
                 "confidence": "high"}  # fmt: skip
    return answered({"run": RUN, "diagnosis": diagnosis})


def test_a_process_that_takes_the_cpu_is_named_with_its_origin_share_place_and_gain():
    given = of_process()
    assert given.sentence == (
        "Short of CPU: the process `WriterPool`, started at /w/train.py:9, takes 45 % of the job's CPU, "
        "and no core is idle."
    )
    assert given.cause == (
        "During the steady steps the process `WriterPool` used 0.9 and the training 1.1 of 2 cores; on average 2.8 "
        "threads of the training were ready to run and had no core."
    )
    assert given.place == "/w/train.py:9; made by /lib/mindspore/train/summary/_writer_pool.py:84"
    assert given.gain == "That frees 0.9 cores for the training, which now has 1.1 of 2 cores"
    assert given.confidence_reason == "it was sampled for 51.0 s of steady training"
    assert given.next_command == "pipeprof collect -o r-changed -- python train.py"
    assert fits(given)
    others = of_process(other_cores=0.5, wait_cores=None, doubts=[{"code": "short", "ns": 3 * S}])
    assert others.cause.endswith("1.1 of 2 cores, other programs 0.5.")
    assert others.confidence_reason == "only 3.00 s of steady training was sampled"


@pytest.mark.parametrize(("library", "word"), [(SPIN["library"], "SummaryCollector"), ("", "block=False")])
def test_the_action_is_that_of_the_library_where_it_is_known(library, word):
    assert word in of_process(library=library).action


@pytest.mark.parametrize(("more", "begin"), [
    ({"what": "", "site": ""}, "the process `python train.py` takes 45 %"),
    ({"what": "", "site": "", "command": ""}, "the process `12` takes"),
    ({"what": "", "command": "/usr/bin/spin --a /b"}, "the process `spin --a /b`, started at"),
    ({"what": "", "command": "x" * 99}, f"the process `{'x' * 37}...`, started at"),
    ({"processes": 4, "what": "worker"}, "4 processes `worker`, started at /w/train.py:9, take 45 %"),
])  # fmt: skip
def test_names_where_less_is_known(more, begin):
    assert of_process(**more).sentence.startswith(f"Short of CPU: {begin}")


def test_a_process_that_may_feed_the_pipeline_is_not_the_answer():
    diagnosis = {"process": SPIN | {"leads": False}, "verdict": "consumer_bound", "data_wait_share": 0.01,
                 "network": {"limit": "not_measured", "actions": []}, "confidence": "low", "doubt_facts": [],
                 "suggestions": []}  # fmt: skip
    content = {"run": RUN, "diagnosis": diagnosis, "ranks": {"straggler": {"found": []}}, "steps": {"summary": []},
               "ops": [], "op_totals": []}  # fmt: skip
    assert not answered(content).sentence.startswith("Short of CPU")


def used(part, cpu, share, **more):
    return FIRST | {"phase": "steady", "part": part, "what": "", "site": "", "library": "", "command": "", "pid": None,
                    "processes": 0, "cpu_ns": cpu, "cores": cpu / 4, "wait_cores": None, "job_share": share,
                    } | more  # fmt: skip


def test_the_section_on_cpu_shows_who_used_most_first_and_what_was_left_in_the_order_of_time():
    writer = used("child", 3, 0.75, what="Writer", site="t.py:9", processes=1, pid=12)
    parts = [used("neighbour", 9, None), used("main", 1, 0.25), writer]
    section = cpu_section({"cpu_account": {"parts": parts, "room": [], "contention": SPIN}}, (0, 0))
    (block,) = section.blocks
    assert [cells[0] for cells in block.rows] == [
        "other process: Writer", "main thread of the training", "other programs of the machine",
    ]  # fmt: skip
    assert block.head == ["CPU, steady", "cores", "of the job", "started at, or is"]
    assert section.strong == [
        "The process `WriterPool` (started at /w/train.py:9) takes 45.0 % of the job's CPU; no core is idle"
    ]
    left = FIRST | {"cores": 2.0, "idle_share": 0.25, "job_cores": 1.5, "neighbour_cores": None,
                    "pressure_share": None, "throttled_share": 0.0, "steal_cores": 0.0}  # fmt: skip
    room = [left | {"phase": phase} for phase in ("ending", "set_up")]
    (block,) = cpu_section({"cpu_account": {"parts": [], "room": room, "contention": None}}, (0, 0)).blocks
    assert [row[:4] for row in block.rows] == [[when, "2.00", "25.0 %", "1.50"] for when in ("set-up", "after")]


def test_every_part_has_a_name_and_a_word_in_the_schema():
    doc = next(column.doc for column in BY_NAME["cpu_use"].columns if column.name == "part")
    assert [part for part in CPU_USERS if part not in doc] == []


PART = FIRST | {"part": "checkpoint", "detail": "", "cause": "", "count": 5, "dur_ns": 4 * S, "share": 0.2,
                "loop_share": 0.4, "loop_ns": 10 * S}  # fmt: skip
LATE = FIRST | {"verdict": "step", "steps": 100, "at_step": 50, "at_ns": 7 * S, "late_steps": 50, "before_ns": 1e7,
                "after_ns": 3e7, "phase": "work", "causes": ["neighbour"], "cost_share": 0.5}  # fmt: skip
EVALUATION = PART | {"part": "evaluation"}
CALLBACK = PART | {"part": "callback", "detail": "Watcher"}
RECOMPILE = PART | {"part": "recompile", "detail": "Net", "cause": "short_batch"}
TRAIN, VALID = {"role": "train", "site": "train.py:5"}, {"role": "eval", "site": "train.py:9"}


def of_part(part=PART, late=None, pipelines=(), **found):
    account = {"parts": [], "large": [part] if part else [], "leading": part, "slower": late}
    diagnosis = {"process": None, "verdict": "not_measured", "network": None, "data_wait_share": None, **found}
    pipeline = {"pipelines": list(pipelines)}
    return answered({"run": RUN, "diagnosis": diagnosis, "run_account": account, "pipeline": pipeline})


@pytest.mark.parametrize(("part", "begin"), [
    (PART, "Writing checkpoints takes 40 % of the training loop's time (steps and interruptions)."),
    (EVALUATION, "Evaluation takes 40 %"), (CALLBACK, "The callback `Watcher` takes 40 %"),
    (PART | {"part": "epoch_gap"}, "The gaps between epochs take 40 %"),
    (RECOMPILE, ("Graphs are compiled again in the middle of the training, because the last batch is shorter: that "
     "takes 40 % of the training loop's time (steps and interruptions).")),
])  # fmt: skip
def test_the_first_sentence_names_the_part_and_its_share(part, begin):
    assert of_part(part).sentence.startswith(begin)


def test_between_epochs_the_workers_of_a_loader_are_let_live_on_where_that_is_advised():
    gains = {"gain": 2.5, "gain_low": 2.0, "gain_high": 3.0}
    advice = [{"code": "loader_persistent", "action": "let the workers live on", "place": "train.py:7", **gains}]
    given = of_part(PART | {"part": "epoch_gap"}, suggestions=advice)
    assert (given.action, given.place) == ("Let the workers live on.", "train.py:7")
    assert given.gain.startswith("The training would run about 2.5 times as fast (2.00 to 3.00)")
    assert of_part(PART | {"part": "epoch_gap"}).action.startswith("Make one iterator")
    assert "checkpoints" in of_part(suggestions=advice).action


ON_END = {"name": "Watcher.on_train_step_end", "where": "outside", "site": None, "code": None}
AT_36 = CALLBACK | {"site": "train.py:36"}


@pytest.mark.parametrize(("part", "pipelines", "calls", "place"), [
    (PART | {"site": "/home/me/train.py:31"}, [], [], "/home/me/train.py:31"), (PART, [], [], ""),
    (EVALUATION, [TRAIN, VALID], [], "its data: train.py:9"),  # in a loop of one's own
    (EVALUATION, [TRAIN, VALID, VALID | {"site": "train.py:12"}], [], ""),
    (EVALUATION | {"site": "train.py:40"}, [VALID], [], "train.py:40"),
    (AT_36, [], [ON_END], "train.py:36"), (AT_36, [], [ON_END | {"code": "train.py:40"}], "at `train.py:40`"),
])  # fmt: skip
def test_the_place_of_a_part_is_where_it_is_called_or_the_line_of_its_data_or_class(part, pipelines, calls, place):
    found = of_part(part, pipelines=pipelines, **({"loop_calls": calls} if calls else {})).place
    assert found.endswith(place)
    assert place.startswith("at ") or found == place


@pytest.mark.parametrize(("part", "gain"), [
    (RECOMPILE | {"count": 1}, "The training would run about 1.67 times as fast if this took no time"),
    (PART | {"count": 4},
     "Half as often, the training would run about 1.25 times as fast; without it about 1.67 times as fast"),
    (PART | {"count": 1}, "The training would run about 1.67 times as fast if this took no time"),
])  # fmt: skip
def test_what_can_be_done_less_often_brings_half_of_it_first(part, gain):
    assert of_part(part).gain == gain


@pytest.mark.parametrize(("code", "cause", "count", "action"), [
    ("recompile", "short_batch", 1, "drop_remainder=True"), ("compile_eval", "", 1, "It is compiled only once"),
    ("compile_eval", "", 2, "one network object and one batch size"),
])  # fmt: skip
def test_a_graph_that_is_compiled_once_is_not_advised_to_be_compiled_once(code, cause, count, action):
    given = of_part(PART | {"part": code, "detail": "Net", "cause": cause, "count": count})
    assert action in given.action
    assert given.action.startswith("It is compiled") == action.startswith("It is compiled")
    assert fits(given)


def test_numbers_of_a_part_are_its_cause():
    said = "Graphs compiled again (the last batch is shorter) `Net`: 1 time, 4.00 s in all, of 10.0 s."
    assert of_part(RECOMPILE | {"count": 1}).cause == said


def test_slower_steps_are_the_answer_with_what_changed():
    given = of_part(None, LATE)
    assert given.sentence.startswith("The training gets slower as it runs: the steps become slower at about step 50, ")
    assert "other programs take more CPU" in given.sentence
    assert (given.confidence, of_part(None, LATE | {"causes": []}).confidence) == ("medium", "low")
    assert of_part(PART, LATE | {"cost_share": 0.6}).sentence == given.sentence
    assert of_part(PART, LATE).sentence.startswith("Writing checkpoints")  # which is as long, and surer


def test_every_part_has_words():
    assert {*ONCE, *RECURRING, "training", "not_recorded"} == set(training.PARTS)
    for part in (*RECURRING, "ending"):
        assert training.sentence(PART | {"part": part}, "40 %")
        assert training.advice(PART | {"part": part})


def test_the_section_lists_the_parts_in_order_and_their_sum():
    rows = [PART | {"part": "training", "start_ns": 5}, PART | {"part": "import", "start_ns": 1}]
    account = {"parts": rows, "large": [PART], "leading": None, "slower": None}
    section = whole_run_section({"run": {}, "run_account": account}, (0, 0))
    *_, whole = found = section.blocks[0].rows
    assert [row[0] for row in found] == ["import of the framework", "training steps", "the whole run"]
    assert whole[2] == "8.00 s"
    said = "Checkpoints: 20.0 % of the run (5 times, 4.00 s in all, 800 ms on average). Write"
    assert section.notes[0].startswith(said)


def test_a_call_brings_about_its_share_and_at_most_what_chance_may_hide():
    assert interruptions._without(0.39, 1.83) == "about 1.64 times as fast without it, at most 1.83 times"
    assert interruptions._without(0.96, 67.6) == "at most 67.6 times as fast without it"


def slow_rank(kind, rank=5, **more):
    """A straggler of 5 ms for a step of 100."""
    return {"rank": rank, "kind": kind, "excess_ns": 5 * MS, "share": 0.05, "steps": 200, "held_up_steps": 20,
            "phase": "forward", "confidence": "high", "doubts": [], "doubt_facts": [],
            "suggestions": ["rank 5: look at it"]} | more  # fmt: skip


@pytest.mark.parametrize(("found", "sentence", "cause"), [
    (slow_rank("sometimes", phase=None), ("in 20 of 200 steps it takes on average 50.0 ms longer than the other ranks "
     "(5.0 % of the time of all steps), and they wait for it."), ""),  # late by what it is late then
    (slow_rank("steady"), "it takes 5.00 ms (5.0 %) longer for a step than the other ranks, and they wait for it.",
     "Most of the difference is in the forward pass."),
])  # fmt: skip
def test_a_rank_is_late_by_what_it_is_late_then_or_in_each_step_and_in_a_phase(found, sentence, cause):
    given = step.of_straggler({"run": {"path": "r"}, "ranks": {"straggler": {"found": [found]}}}, Cause("straggler"))
    assert given.sentence == f"Rank 5 is a straggler: {sentence}"
    assert (given.cause or "") == cause


def test_stragglers_have_a_sentence_each_and_those_beyond_are_counted():
    (said,) = straggler_sentences({"verdict": "straggler", "found": [slow_rank("sometimes", phase=None)]})
    assert said == (
        "Rank 5 is a straggler: 5.00 ms per step (5.0 %) longer than the others on average, all of it in 20 of 200 "
        "steps (high confidence)"
    )
    for ranks, rest in ((8, []), (9, ["and 1 more rank"]), (10, ["and 2 more ranks"])):
        found = {"verdict": "straggler", "found": [slow_rank("steady", rank) for rank in range(ranks)]}
        assert straggler_sentences(found)[8:] == rest


def kind(name, share, phase="forward", count=10.0):
    return {"type": name, "phase": phase, "share": share, "count_per_step": count}


MATMUL = {"device": None, "top_ops": [{"name": "MatMul"}], "ops_per_step": 512.4}
JIT = MATMUL | {"top_ops": [{"name": "Gradients/Default/net-Net/MatMul-op0"}]}
SPLIT = {"limit_share": 0.5, "waiting_share": 0.3, "limit_waiting_share": None}
LAUNCHED = "Python and framework code launch about 512 operators per step, one by one."


@pytest.mark.parametrize(("found", "limit", "mode", "said"), [
    # Operators of its computing alone, and side by side no larger than it.
    ({"limit_share": 0.4, "top_types": [kind("Adam", 0.38, "optimizer"), kind("AllReduce", 0.2, "communication"),
                                        kind("MatMul", 0.25)]}, "compute", None,
     "Most of it: 10 MatMul per step (25 %, forward)."),
    ({"limit_share": 0.4, "top_types": [kind("MatMul", 0.9), kind("ReLU", 0.1, "other", 1.0), kind("Cast", 0.04)]},
     "compute", None, "Most of it: 10 MatMul per step (40 %, forward) and `ReLU` (10 %)."),
    # Launches are of all operators, not of the largest types, and not in graph mode.
    (MATMUL, "host_gap", "pynative", LAUNCHED), (MATMUL, "host_gap", "graph", ""), (JIT, "host_gap", "pynative", ""),
    (MATMUL, "host_gap", None, LAUNCHED),  # of a recording that did not note it
    (MATMUL | {"ops_per_step": 1.0}, "host_gap", "pynative", ""),
    (MATMUL | {"ops_per_step": None}, "host_gap", "pynative", ""),
    # Waiting and transfer are the communication of the same ranks.
    (SPLIT | {"limit_waiting_share": 0.1}, "communication", None,
     "10 % of the step time is waiting for another rank, 40 % transfer."),
    (SPLIT | {"limit_waiting_share": 0.6}, "communication", None,
     "50 % of the step time is waiting for another rank, 0 % transfer."),
    (SPLIT | {"limit_waiting_share": 0.0}, "communication", None, ""), (SPLIT, "communication", None, ""),
])  # fmt: skip
def test_the_cause_of_a_step_that_limits(found, limit, mode, said):
    assert step._cause(found, limit, mode) == said


@pytest.mark.parametrize(("share", "said"), [
    (0.049, " The data is ready in time (the training waits for it 4.9 % of the time)."),
    (0.05, " The training waits for its data only now and then (5.0 % of the time)."),
])  # fmt: skip
def test_data_that_is_waited_for_is_not_called_ready(share, said):
    diagnosis = {"verdict": "consumer_bound", "data_wait_share": share, "network": {"steps": 90}}
    assert step._data({"diagnosis": diagnosis, "pipeline": {"made_ahead": False}}) == said


@pytest.mark.parametrize(("devices", "idle"), [
    ([], ", only Python and framework code"), (["", "CPU", "host"], ", only Python and framework code"),
    (["AI_CORE", "AI_CPU", "host"], " on the device"),
])  # fmt: skip
def test_where_operators_ran_on_a_device_alone_nothing_is_said_of_the_host(devices, idle):
    """Ascend's files list what ran on the device: what the host did meanwhile is not in them."""
    device = shape.on_device({"op_devices": [{"device": name} for name in devices]})
    network = {"limit": "host_gap", "limit_share": 0.6, "device": None, "stalled_share": 0.0, "slowest_rank": None}
    said = f"Host-bound: during 60 % of the step time no operator runs{idle}."
    assert step.limited(network, device=device) == said


HALF = "If this part (50 % of the step) took half as long"


@pytest.mark.parametrize(("most", "of_one_mode", "said"), [
    (2.0, False, f"{HALF}, a step would run 1.33 times as fast; at most 2 times"),
    (2.0, True, f"{HALF}, a step like those recorded would run 1.33 times as fast"),
    (1e6, False, "A step would run possibly more than 100 times as fast"),
])  # fmt: skip
def test_a_bound_stands_beside_what_half_of_the_part_brings(most, of_one_mode, said):
    assert step._halved(most, step._part({}), of_one_mode=of_one_mode) == said


def test_the_part_that_gets_cheaper_is_named():
    op = {"site": "/home/me/train.py(12): Net.construct"}
    assert step._part({"largest": op}) == "what `train.py:12` computes"
    assert step._part({"largest": op, "in_function": True, "type": "Conv2D"}) == "all Conv2D with their gradients"


@pytest.mark.parametrize(("site", "place", "lines"), [
    ("train.py(54): train_step", "train.py:54" + step.UNKNOWN_LINES, True), ("train.py(56)", "train.py:56", False),
])  # fmt: skip
def test_of_a_compiled_function_the_next_command_records_lines_unless_they_were(site, place, lines):
    op = {"name": "MatMul-op0", "type": "MatMul", "phase": "backward", "in_shapes": "x", "share": 0.5, "site": site,
          "site_share": 0.9}  # fmt: skip
    facts = {"type": "MatMul", "phase": "other", "count_per_step": 9, "share": 0.5, "largest": op, "in_function": True}
    network = {
        "limit": "compute", "limit_share": 0.9, "device": None, "slowest_rank": None, "confidence": "medium",
        "doubt_facts": [], "steps": 3, "top_types": [], "top_ops": [], "weights": {"compute": 0.9}, "shares": None,
        "actions": [{"code": "fewer_of_type", "share": 0.5, "facts": facts, "action": "use fewer MatMul"}],
    }  # fmt: skip
    diagnosis = {"network": network, "data_wait_share": None, "verdict": "not_measured"}
    content = {"diagnosis": diagnosis, "run": RUN, "steps": {"passes": {}}, "op_devices": []}
    given = step.answer(content, Cause("compute", advice=Advice("fewer_of_type", gain=Gain("bound", high=2.0))))
    assert given.place == place
    assert ("--graph-lines" in given.next_command) is lines
