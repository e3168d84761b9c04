"""The answer that a report opens with, from rows."""

import re
import shlex
from itertools import pairwise

import pytest
from run_verdicts import answered

from pipeprof.query.engine import Engine
from pipeprof.report.answer import LEAST_BYTES, command, data, leaking, shape, unknown
from pipeprof.report.answer.doubts import WORDS, clauses, reason
from pipeprof.report.answer.ended import _frames
from pipeprof.report.answer.screen import command_lines, height, lines
from pipeprof.report.answer.shape import Answer, limit_label, measured, op_label
from pipeprof.report.diagnosis import in_words, judged
from pipeprof.report.ranks import rank_verdicts, ranks_of
from pipeprof.report.sections import storage
from pipeprof.report.words import causes as words
from pipeprof.verdict import rules
from pipeprof.verdict.calls import OWN, WORKERS
from pipeprof.verdict.cause import Cause
from pipeprof.verdict.data_cause import by_not_waiting, data_cause, is_little, nearly_equal
from pipeprof.verdict.replay import causes
from tests.unit.report.conftest import RUN, trained

MIB = 1 << 20
AUGMENT = {"op_id": 2, "op_type": "MapOp", "name": "augment"}
LOOP = {"op_id": -1, "op_type": "consumer", "name": None}
SOURCE = {"op_id": 3, "op_type": "GeneratorOp", "name": "Source"}
NAMED = AUGMENT | {"op_name": "augment", "rule": "utilisation", "verdict": "input_bound"}
OTHERS = {"code": "other_load", "other_cores": 1.7, "cores": 2.0}


def close(op=SOURCE, busy=0.74, **named):
    return {"code": "close", "op": op, "utilisation": busy, **named}


@pytest.mark.parametrize(("doubts", "said"), [
    ([{"code": "not_busy", "op": AUGMENT, "utilisation": 0.79}, close(),
      {"code": "indirect", "op": AUGMENT, "rule": "weak"}, {"code": "none_busy"}],
     "`augment` was busy 79 % of the time and `Source` is nearly as slow (busy 74 %)"),
    ([close(LOOP, 0.3, named_utilisation=None)], "the training itself was busy 30 %"),
    ([close(named_utilisation=0.62)], "`Source` was even busier (74 %)"),
    ([close(named_utilisation=0.9)], "`Source` is nearly as slow (busy 74 %)"),
    ([{"code": code} for code in ("no_queues", "no_pipeline", "varies")] + [OTHERS],
     ("other programs used 1.7 of 2 cores, and almost no core was idle; the queues between the operators were not "
     "sampled; and 2 more doubts (--section diagnosis)")),
])  # fmt: skip
def test_doubts_are_one_sentence_with_names_and_numbers(doubts, said):
    assert reason(doubts) == said
    assert len(clauses(doubts)) == len(doubts)


def test_where_other_programs_ran_the_first_thing_to_do_is_to_measure_without_them():
    given = Answer("Sentence.", action="Use a larger batch.")
    shape.measure_first(given, RUN, [{"code": "varies"}])
    assert given.action == "Use a larger batch."
    shape.measure_first(given, RUN, [OTHERS])
    assert given.action == "Measure again while no other program runs. If it says the same: use a larger batch."
    assert given.next_command == "pipeprof collect -o r-quiet -- python train.py"


@pytest.mark.parametrize(("op_id", "doubts", "said"), [
    (3, [close(busy=0.87, named_utilisation=0.95), {"code": "queues_elsewhere", "op": SOURCE}],
     "the training itself was even busier (95 %)"),  # a balanced answer does not doubt its operator by itself
    (4, [close(busy=0.95, named_utilisation=0.97)], "`Source (3)` is nearly as slow (busy 95 %)"),
    (2, [close(busy=0.87, named_utilisation=0.95)], "`Source (3)` is nearly as slow (busy 87 %)"),
])  # fmt: skip
def test_an_operator_that_is_a_doubt_about_another_one_is_told_apart_from_it(op_id, doubts, said):
    found = {"op_id": op_id, "op_name": "Source", "doubt_facts": doubts, "facts": {}}
    assert data._reason({"diagnosis": found}) == said


@pytest.mark.parametrize(("gain", "low", "little"), [
    (1.03, 0.83, True), (1.03, 1.01, False), (1.3, 0.9, False), (None, None, False),
])  # fmt: skip
def test_a_gain_that_is_next_to_nothing_and_perhaps_a_loss_is_not_the_first_advice(gain, low, little):
    assert is_little({"gain": gain, "gain_low": low}) is little


def test_a_run_whose_name_begins_as_an_option_does_is_none_in_a_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = RUN | {"path": "-x"}
    assert command.own(run, "report") == "pipeprof report ./-x"
    assert command.new_run(run, "-quiet") == "./-x-quiet"
    assert command.verification(run, "pipeprof whatif RUN --op 3").startswith("pipeprof whatif ./-x --op 3")
    assert command.own(run | {"path": "a-x"}, "report") == "pipeprof report a-x"


def codes_of(table):
    """The codes of the rows of a table in Markdown."""
    return set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))


def test_every_doubt_has_words_and_a_row_in_the_tables_that_say_what_to_do(request):
    page = (request.config.rootpath / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    answers, found, caches = page.partition("## Installation")[0].split("|---|---|---|")[1:]
    assert codes_of(answers) == set(WORDS)
    assert codes_of(found) == {one.code for one in causes.DOUBTS} == set(words.DOUBTS)
    assert codes_of(caches) == set(storage.DOUBTS)
    sources = [path.read_text(encoding="utf-8") for path in (request.config.rootpath / "pipeprof/verdict").glob("*.py")]
    uttered = re.findall(r'doubts"?\]?(?:: \[|\.append\(| = \[)\{"code": "(\w+)"', "\n".join(sources))
    assert len(uttered) > 10
    assert {*uttered, *(one.code for one in rules.DOUBTS)} <= set(WORDS)


def content(make_run, tables, **more):
    made = make_run(tables)
    with Engine.open(made) as engine:
        steps = {"summary": engine.rows("step/summary")}
        pipelines = engine.rows("queue/pipelines")
        diagnosis = in_words(engine, made, pipelines, judged(engine, made, engine.rows("step/data_wait"), pipelines))
        ranks = ranks_of(engine, {}, rank_verdicts(engine, several=False), top=10, several=False)
    return {"run": RUN | more, "steps": steps, "diagnosis": diagnosis, "ranks": ranks, "ops": [], "op_totals": [],
            "memory": [], "pipeline": {"pipelines": []}}  # fmt: skip


def steps(count, warm=0, wait=90):
    return {"step": trained(*[100] * count, warm=warm, fetch_wait_ns=wait)}


TRAINED = steps(31, 1)
FAILURE = {"pid": 1, "error": "ValueError: bad shape", "place": "/w/train.py:31", "code": "loss = step(x)",
           "lines": ['  File "/w/train.py", line 31', "    loss = step(x)", "ValueError: bad shape"]}  # fmt: skip


def ended(code=1, failure=FAILURE, rep=0):
    return {"rep": rep, "exit_code": code, "failure": failure, "ranks": []}


def test_a_command_that_failed_is_answered_with_its_error_and_place(make_run):
    answer = answered(content(make_run, {}, state="failed", workdir="/w", reps=[ended()]))
    assert answer.sentence == "The command failed before pipeprof saw a training step: it exited with code 1."
    assert (answer.cause, answer.place) == ("ValueError: bad shape", "train.py:31: loss = step(x)")
    assert answer.extra[-1] == "ValueError: bad shape"
    assert "Fix the error" in answer.action
    assert answer.next_command.endswith("-- python train.py")


def test_a_recording_that_failed_says_nothing_of_the_command(make_run):
    """It may have ended well."""
    answer = answered(content(make_run, {}, state="failed", reason="its folder was deleted while it was recorded"))
    assert answer.sentence == "The recording failed: its folder was deleted while it was recorded."
    assert (answer.action, answer.next_purpose) == ("Record it again.", "does that and replaces this run")


@pytest.mark.parametrize(("count", "warm", "reps", "when"), [
    (1, 1, [ended()], "during warm-up (1 training step was complete)"),
    (2, 2, [ended()], "during warm-up (2 training steps were complete)"),
    (2, 1, [ended()], "after 1 training step, median"),
    (30, 0, [ended(0, None), ended(rep=1)], "before pipeprof saw a training step"),  # in that repetition
])  # fmt: skip
def test_steps_that_were_complete_before_a_failure_are_not_denied(make_run, count, warm, reps, when):
    answer = answered(content(make_run, steps(count, warm), reps=reps))
    assert answer.sentence.startswith(f"The command failed {when}")


NUMPY = {"code": "numpy", "message": "pip install 'numpy<2': MindSpore 2.10.0 was compiled for NumPy 1"}
OPENMP = {"code": "openmp", "message": "install GNU OpenMP (apt install libgomp1)"}


@pytest.mark.parametrize(("end", "more", "said"), [
    (ended(-9, None), {}, "lack of memory"), (ended(137, None), {}, "lack of memory"),
    (ended(-11, None), {}, "native code crashed"), (ended(2, None), {}, "output of the"),
    (ended(failure=FAILURE | {"error": "SystemError: returned a result"}),
     {"fingerprint": {"numpy": "2.4.0"}, "warnings": [NUMPY]}, "pip install 'numpy<2'"),
    (ended(failure=FAILURE | {"error": "ImportError: libgomp.so.1: cannot"}), {"warnings": [OPENMP]},
     "Install GNU OpenMP (apt install libgomp1)."),
])  # fmt: skip
def test_what_ended_the_command_says_where_to_look_or_has_its_cure(make_run, end, more, said):
    action = answered(content(make_run, {}, reps=[end], **more)).action
    assert said in action
    assert action == said or not said.startswith("Install")


@pytest.mark.parametrize(("code", "state"), [(-2, "partial"), (130, "failed"), (143, "failed"), (124, "failed")])
def test_a_training_that_somebody_stopped_still_has_its_verdict(make_run, code, state):
    answer = answered(content(make_run, TRAINED, state=state, reps=[ended(code, None)]))
    assert answer.sentence.startswith("Input-bound: ")


def test_warm_up_alone_is_not_measured_and_few_steps_are_said(make_run):
    answer = answered(content(make_run, steps(1, 1, wait=100)))
    assert answer.sentence == "Not measured: the only training step seen was warm-up."
    assert (answer.confidence, answer.gain) == (None, "")
    few = answered(content(make_run, steps(3, 1)))
    assert few.sentence == "Input-bound: the training waits for data 90 % of the time."
    assert "only 2 steps could be used" in few.confidence_reason


@pytest.mark.parametrize(("verdict", "found", "cause"), [
    ("consumer_bound", {"ops": [{}]}, "were recorded, but none in a training step after the warm-up."),
    ("consumer_bound", {"op_totals": [{}]}, "is unknown: operators were recorded, but none in a training step"),
    ("consumer_bound", {}, "is unknown: no operators were recorded."),
    ("not_measured", {"ops": [{}]}, "Its wait for data was not recorded; operators were recorded, but none in a "),
    ("not_measured", {}, "Another loader may have been used, whose wait is not known; no operators were recorded."),
])  # fmt: skip
def test_operators_of_no_step_are_not_denied(verdict, found, cause):
    row = {"kind": "train", "rep": 0, "rank": 0, "steps": 9, "median_ns": 3e6, "mean_ns": 3e6}
    facts = {"verdict": verdict, "data_wait_share": 0.0, "confidence": "high", "doubt_facts": [], "suggestions": [],
             "evidence": []}  # fmt: skip
    run = RUN | {"command": []}
    content = {"diagnosis": facts, "run": run, "steps": {"summary": [row]}, "ops": [], "op_totals": []}
    given = unknown.answer(content | found, Cause("in_time"))
    assert cause in given.cause
    assert (given.next_purpose == "lists the operators") is bool(found)


@pytest.mark.parametrize(("pipelines", "said"), [
    ([], "none of them came through an iterator"), ([{"role": "train", "ops": []}], "--section not-measured"),
])  # fmt: skip
def test_waiting_for_a_dataset_without_a_named_operator_says_what_was_seen_of_it(make_run, pipelines, said):
    given = content(make_run, TRAINED) | {"pipeline": {"pipelines": pipelines}}
    assert said in answered(given).action


@pytest.mark.parametrize("source", ["import:kineto", "import:dftracer"])
def test_the_loader_of_a_trace_is_no_mindspore_dataset(make_run, source):
    given = content(make_run, TRAINED, source=source, command=[])
    given["pipeline"]["pipelines"] = [{"role": "train", "ops": []}]
    answer = answered(given)
    assert answer.cause == "Which part of the DataLoader is slow was not recorded."
    assert answer.action.startswith("Give the DataLoader more workers (num_workers)")
    for loader, said in ((OWN, "num_workers=0"), (WORKERS, "worker processes are too slow")):
        given["diagnosis"]["fetch_call"] = {"name": None, "loader": loader}
        assert said in answered(given).cause


@pytest.mark.parametrize(("frame", "place"), [
    ("data/set.py(30): resize", "data/set.py:30"), ("NPZReader.open", ""), ("a b(3): c", ""),
])  # fmt: skip
def test_the_place_of_a_call_is_its_line_where_the_trace_has_one(frame, place):
    assert data.line_of(frame) == place


def sharing(part=0.09, freed=1.28, **more):
    """A pipeline that shares the cores with its training, without which that is at most 1.28 times as fast."""
    bound = {"code": "bound", "op_id": 2, "parameter": None, "gain": None, "gain_low": None, "gain_high": 1.28,
             "then": "consumer", "action": "at most 1.28 times as fast", "verify": None, "old": None,
             "new": None}  # fmt: skip
    facts = [{"fact": "pipeline_share", "value": part}, {"fact": "freed", "value": freed}]
    return {"verdict": "balanced", "rule": "shared_cpu", "rule_facts": facts, "data_wait_share": 0.03, "rank": None,
            "doubt_facts": [], "suggestions": [bound], "stage": None, "kind": None, "op_id": None,
            "confidence": "medium", "facts": None, **more}  # fmt: skip


def advised(found):
    """What is advised for a diagnosis of a map."""
    found = found | {"op_id": 2, "op_type": "MapOp", "process": None}
    given, lead = Answer(""), data_cause(found)
    data._advise(given, {"diagnosis": found, "run": RUN}, lead)
    return given, lead


@pytest.mark.parametrize(("part", "freed", "said"), [
    (0.44, 1.84, "the data pipeline takes 44 % of the job's CPU from the training, whose steps are slower for that."),
    (0.17, 1.21, "takes 17 % of the job's, which makes the steps slower by an estimated 21 %."),
])  # fmt: skip
def test_where_the_pipeline_has_few_of_the_cores_the_network_is_named_beside_it(part, freed, said):
    sentence = data.sentence({"diagnosis": sharing(part, freed)})
    assert sentence.startswith("Short of CPU: no core stays idle")
    assert sentence.endswith(f"{said} The data is ready in time (the training waits for it 3.0 % of the time).")


@pytest.mark.parametrize(("freed", "doubts", "equal"), [
    (1.19, [], True), (1.2, [], False), (1.19, [{"code": "other_load"}], False),
])  # fmt: skip
def test_where_removing_the_pipeline_may_bring_nothing_it_is_balanced_with_an_interval(freed, doubts, equal):
    found = sharing(freed=freed, doubt_facts=doubts)
    begin = "Balanced: the training and its data pipeline (9.0 % of the job's CPU) share"
    assert data.sentence({"diagnosis": found}).startswith(begin) is equal
    assert ("(1.0 to 1.28)" in data._bounded(found, 1.28, None)) is equal


@pytest.mark.parametrize(("share", "begin"), [
    (0.02, "The data is ready in time, but Python"), (0.12, "The training waits for its data only now and then, but"),
])  # fmt: skip
def test_a_lock_that_is_shared_beside_a_wait_for_data_does_not_deny_that(share, begin):
    found = sharing(rule="gil", rule_facts=[], data_wait_share=share)
    assert data.sentence({"diagnosis": found}).startswith(begin)


def test_the_interval_holds_the_estimate():
    """What is known to be the most is that of one operator, the estimate that of the whole pipeline."""
    found = sharing(0.14, 1.18)
    found["suggestions"][0]["gain_high"] = 1.06
    assert nearly_equal(found) == 1.18


@pytest.mark.parametrize(("stage", "hint"), [("consumer", True), ("MapOp", False)])
def test_a_loop_that_may_lose_cores_to_its_pipeline_is_told_how_to_measure_it(stage, hint):
    doubt = {"code": "shares_cpu", "op": {"op_id": 0, "op_type": stage, "name": None}, "share": 0.05, "times": 1.07}
    measures = "without it about 1.07 times as fast, by estimate; `pipeprof headspace` measures it"
    assert (measures in reason([doubt])) is hint
    assert ("estimated from CPU times, not measured" in reason([doubt])) is not hint


def test_where_it_may_bring_nothing_measuring_comes_before_either_action():
    found = sharing(freed=1.12, op_name="f", kind="cpu")
    cheaper = {"code": "cheaper_rows", "gain_high": None, "action": "make its rows cheaper"}
    verify = {"verify": "pipeprof whatif RUN --op 2 --workers 3"}
    found["suggestions"].insert(0, found["suggestions"][0] | cheaper | verify)
    given, _ = advised(found)
    assert given.action == (
        "Run the command below first, which decides. If it finds 5 % or more to gain: make its rows cheaper. If "
        "less: make the step itself cheaper (`collect --ops all` shows its operators)."
    )
    assert given.gain == (
        "Not known until it is measured; by estimate about 1.12 times as fast without the data pipeline (1.0 to 1.28)"
    )
    assert "headspace" in given.next_command


def test_what_cpu_times_say_of_the_advice_is_said_without_a_bound_by_pace_too():
    """Seen: "at most 1.01 times, if the training never waited" beside an estimate of 1.12 in the verdict."""
    busy = {"utilisation": 0.9, "cores": 0.2, "process_cores": 1.9, "gil_share": None}
    found = sharing(freed=1.73, op_name="f", kind="cpu", facts=busy)
    found["rule_facts"] = found["rule_facts"][1:]
    found["suggestions"] = [found["suggestions"][0] | {"code": "cheaper_rows", "gain_high": None, "trial": None}]
    given, lead = advised(found)
    gain = lead.advice.gain
    assert gain.origin == "estimated"
    assert given.gain.startswith(f"About {gain.times:.2f} times as fast by estimate, if the map `f` took no CPU")


def test_where_no_queue_outlasts_the_stalls_the_answer_and_the_next_command_are_the_same_change():
    waiting = {"verdict": "input_bound", "rule": "queue_edge", "data_wait_share": 0.3}
    found = sharing(rule_facts=[], op_name="slow", kind="burst") | waiting
    (bound,) = found["suggestions"]
    apart = {**bound, "code": "stalls_apart", "parameter": "python_multiprocessing", "gain_low": 1.0, "gain_high": 2.0,
             "trial": None, "action": "run `slow` in worker processes", "old": False, "new": True,
             "verify": "pipeprof whatif RUN --op 2 --workers 2 --processes"}  # fmt: skip
    rarer = {**bound, "code": "rarer_stalls", "gain_high": None, "action": "make the stalls rarer"}
    found["suggestions"] = [apart, rarer, bound]
    given, _ = advised(found)
    assert given.action == "Run `slow` in worker processes."
    assert given.gain == "The training would run at most 2 times as fast, perhaps not at all faster"
    assert given.next_command.endswith("--workers 2 --processes")
    assert given.next_purpose == "tries this change, without editing the script"


def test_a_number_is_not_parted_from_its_unit():
    for much in range(60, 80):
        said = lines(Answer("x" * much + " 12 % and 3 ms."), "state", "more")
        assert not [line for line in said if line.endswith(("12", "3"))]


def test_the_next_command_says_what_it_does_and_one_that_is_too_long_gives_way_to_a_short_one():
    answer = Answer("Input-bound.")
    answer.propose("pipeprof headspace -- python train.py", "measures it")
    shown = lines(answer, "state", "more")
    assert shown[shown.index("Next (measures it):") + 1] == "  pipeprof headspace -- python train.py"
    given = Answer("Sentence.", next_command="pipeprof headspace -- python " + "x" * 1500, next_purpose="measures")
    given.short_command, given.short_purpose = "pipeprof report r --full", "shows everything"
    shown = lines(given, "state", "more")
    assert shown[shown.index("Next (shows everything):") + 1] == "  pipeprof report r --full"


def test_whatever_is_said_fits_the_screen():
    long = "a long sentence with many words " * 30
    answer = Answer(long[:150], long, "train.py:1", long, long, "x limits", "low", long, "pipeprof " + "word " * 300,
                    "compares it", "pipeprof report r")  # fmt: skip
    shown = lines(answer, "state", "more")
    assert height(shown) <= 20
    assert "  pipeprof report r" in shown


def test_a_second_cause_gives_way_before_what_to_do_and_what_it_brings():
    long = "a sentence of some words " * 6
    done, brought = long + "done", long + "brought"
    answer = Answer(long[:70], long, "train.py:1", done, brought, "", "low", long, "pipeprof x", "tries it")
    answer.also = long + "also"
    shown = "\n".join(lines(answer, "state of some words " * 7, "more of some words " * 5))
    assert [said in shown for said in ("done", "brought.", "also")] == [True, True, False]


@pytest.mark.parametrize(("places", "counts", "medians", "mean", "said"), [
    ([(0, 0)], [86], [3.58e6], 49e6, "86 training steps, median 3.58 ms, mean 49.0 ms"),
    ([(0, 0)], [86], [3.58e6], 4e6, "86 training steps, median 3.58 ms"),
    ([(0, 0), (0, 1)], (15, 15), (3e6, 4e6), None, "15 training steps on each of 2 ranks, slowest median 4.00 ms"),
    ([(0, 0), (1, 0)], (15, 15), (3e6, 4e6), None, "15 training steps in each of 2 repetitions, mean median 3.46 ms"),
    ([(0, 0), (0, 1)], (15, 14), (3e6, 4e6), None, "29 training steps on 2 ranks, slowest median 4.00 ms"),
])  # fmt: skip
def test_steps_are_those_of_a_rank_and_a_mean_that_the_median_hides_is_said(places, counts, medians, mean, said):
    rows = [
        {"kind": "train", "rep": rep, "rank": rank, "steps": count, "median_ns": median, "mean_ns": mean or median}
        for (rep, rank), count, median in zip(places, counts, medians, strict=True)
    ]
    assert measured({"steps": {"summary": rows}}) == said


@pytest.mark.parametrize(("share", "times", "most"), [(0.38, 13.5, 1 / 0.62), (0.38, 1.7, None), (None, 13.5, None)])
def test_a_bound_beyond_what_waiting_explains_says_why(share, times, most):
    assert by_not_waiting({"data_wait_share": share}, times) == (most and pytest.approx(most))


AT = {"rep": 0, "rank": 0, "pipeline_key": "a", "op_id": 3}
LOAD = [AT | {"busy": 0.52}, AT | {"op_id": 4, "busy": 0.1}]  # of the fetches it has all, of the loop half


@pytest.mark.parametrize(("busy", "margin", "runner_up", "more", "load", "said"), [
    (0.99, 0.9, SOURCE, {"kind": "wait"}, [], "had a row under way 99 % of the time, mostly waiting"),
    (0.99, 0.9, SOURCE, {}, [], "busy 99 %"),
    (0.96, 0.78, LOOP, {}, [],
     "the source `Source` was busy 96 % of the time, the next busiest (the training itself) 18 %"),
    (0.96, 0.78, AUGMENT, {}, [],
     "the source `Source` was busy 96 % of the time, the next busiest (the map `augment`) 18 %"),
    (1.0, 0.51, LOOP, {"op_type": "Dataset", "op_name": "Signs"}, LOAD,
     "the dataset `Signs` was busy 52 % of the time, the next busiest (the training itself) 49 %"),
])  # fmt: skip
def test_how_busy_a_stage_was_stands_beside_the_next_busiest(busy, margin, runner_up, more, load, said):
    facts = {"utilisation": busy, "margin": margin, "runner_up": runner_up}
    found = AT | {"doubt_facts": [], "facts": facts, "op_type": "GeneratorOp", "op_name": "Source", "rule": "busiest",
                  "kind": "cpu"} | more  # fmt: skip
    given = data._reason({"diagnosis": found, "pipeline": {"load": load}})
    assert said in given
    assert given == said or busy == 0.99


WITHOUT_WORKERS = [{"code": "loader_workers", "old": 0}]


@pytest.mark.parametrize(("kind", "facts", "more", "end"), [
    ("wait", {"work_ns": 8e7, "workers": 4}, {}, "its 4 workers together spend 80.0 ms per batch, mostly waiting (s)."),
    ("wait", {"work_ns": 8e7, "workers": 1}, {}, "it takes 80.0 ms per batch (1 worker), mostly waiting (s)."),
    ("burst", {"longest_ns": 2e7, "max_row_ns": 2e8}, {},  # as long as the longest row, not as the usual one
     "limits the data pipeline: it stalls now and then, up to 200 ms for a row."),
])  # fmt: skip
def test_the_cause_has_the_time_of_all_workers_and_of_the_longest_stall(kind, facts, more, end):
    assert data._cause(NAMED | {"kind": kind, "facts": facts} | more, " (s)").endswith(end)


def test_of_a_loader_without_workers_no_worker_is_said():
    """Seen: "(1 worker)" beside "make the batches in 1 worker process"."""
    found = NAMED | {"kind": "cpu", "facts": {"work_ns": 8e7, "workers": 1}}
    said = data._cause(found | {"suggestions": WITHOUT_WORKERS}, "")
    assert "per batch in the training's own process, computing" in said
    assert "worker" in data._cause(found | {"suggestions": [WITHOUT_WORKERS[0] | {"old": 1}]}, "")


@pytest.mark.parametrize(("more", "most", "said"), [
    ({"data_wait_share": 0.98}, 200.0, "about 50 times as fast without the wait for data"),
    ({"data_wait_share": 0.993}, 200.0, "possibly more than 100 times as fast without the wait for data"),
    ({"data_wait_share": 0.9995}, 5000.0, "possibly more than 100 times as fast without the wait for data"),
    ({"data_wait_share": 0.083, "rule": "shared_cpu", "verdict": "balanced"}, 1.92,  # the wait is the least to gain
     "1.09 to 1.92 times as fast, if the map `augment` took no time"),
])  # fmt: skip
def test_what_not_waiting_brings_has_no_digits_from_100_times_on(more, most, said):
    assert data._bounded(NAMED | {"rule_facts": []} | more, most, None) == said


@pytest.mark.parametrize(("share", "more"), [(0.66, True), (0.1, False), (None, False)])
def test_the_lock_that_a_stage_holds_costs_more_than_its_cpu(share, more):
    said = data._estimated(NAMED | {"facts": {"lock_share": share}}, 1.98)
    assert said.startswith("about 1.98 times as fast by estimate, if the map `augment` took no CPU")
    assert ("or more, because the training also waits for the interpreter's lock" in said) is more


def test_an_operator_is_that_of_the_pipeline_that_is_diagnosed_and_told_by_what_it_is():
    """Of two that are read side by side: each has an operator 2."""
    pipelines = [
        {"role": "train", "pipeline_key": key, "ops": [AUGMENT | {"name": name}]} for key, name in ("am", "bo")
    ]
    found = {"diagnosis": {"pipeline_key": "a"}, "pipeline": {"pipelines": pipelines}}
    assert (limit_label(found, 2), limit_label(found, 3)) == ("`m`", "operator 3")
    assert op_label({"op_id": 1, "op_type": "BatchOp", "name": None}) == "the batch (BatchOp 1)"
    assert op_label({"op_id": 4, "op_type": "CifarOp", "name": None}) == "CifarOp 4"


def test_a_traceback_ends_with_the_error_and_has_no_rules_between():
    end = ["RuntimeError: Refer to", "-----", "[ERROR] no such file", "-----", "x.cc(5)"]
    shown = _frames({"error": "RuntimeError: no such file", "lines": ["  File 'a.py', line 3", "    ^^^^", *end]})
    assert shown == ["  File 'a.py', line 3", "RuntimeError: Refer to", "[ERROR] no such file"]


def test_the_check_of_an_import_has_room_for_the_command_that_it_does_not_know():
    check = "pipeprof whatif RUN --op 1 --workers 2"
    imported = RUN | {"source": "import:minddata", "command": []}
    assert command.verification(imported, check) == "pipeprof whatif r --op 1 --workers 2 -- python your_training.py"
    assert command.without_command(command.verification(imported, check)) == ""
    assert command.without_command(command.verification(RUN, check)) == "pipeprof whatif r --op 1 --workers 2"


def test_code_of_mindspores_own_sources_is_no_place_to_look_at():
    library = "/venv/lib/python3.11/site-packages/mindspore/dataset/engine/datasets_user_defined.py:1227"
    assert data._place({"place": {"call": "train.py:6", "code": library}}) == "train.py:6"
    assert data._place({"place": {"call": "train.py:6", "code": "rows.py:3"}}) == "rows.py:3 (used at train.py:6)"


@pytest.mark.parametrize(("source", "steps", "ops", "said"), [
    ("import:megengine", False, True, "Such a profile has no steps"),
    ("import:megengine", True, False, "Let load_and_run write its operators too"),
    ("import:ascend", False, True, "Import the profiler's whole output folder"),
    ("collect", False, False, "Profile a command that trains"),
])  # fmt: skip
def test_what_is_missing_is_asked_for_where_it_can_be_had(source, steps, ops, said):
    assert said in unknown._missing(source, steps=steps, ops=ops)


@pytest.mark.parametrize("given", [
    "pipeprof headspace -- python train.py later_concatenated_pynative_of_all --seconds 4.0",
    "pipeprof whatif runs/a-rather-long-name-of-a-run --op standardised --workers 2 -- python train.py --lr -1",
    "pipeprof collect -o " + "x" * 80 + " -- timeout 60 msrun --worker_num=2 --join True train.py ranks",
    "cd /somewhere/else && pipeprof ab --base-ref HEAD -- python -m package.of.the.training " + "--flag value " * 9,
    "pipeprof sweep -- python train.py " + " ".join(f"file{number}.mindrecord" for number in range(30)),
])  # fmt: skip
def test_a_long_command_is_broken_only_where_an_option_begins_or_words_without_options_follow(given):
    shown = command_lines(given)
    assert all(line.endswith(" \\") for line in shown[:-1])
    assert all(len(line) <= 80 or "xxx" in line for line in shown)
    words = [line.removesuffix(" \\").split() for line in shown]
    assert shlex.split(" ".join(" ".join(line) for line in words)) == shlex.split(given)
    for line, following in pairwise(words):
        assert not line[-1].startswith("-") or following[0].startswith("--"), shown
        assert line[-2:] != ["--", "python"], shown


def test_operators_without_steps_say_how_much_the_device_works_and_what_takes_most(make_run):
    given = content(make_run, {}, source="import:rocprof", command=[])
    given["ops"] = [{"type": "ncclDevKernel", "share": 0.9, "phase": "communication"}]
    given["op_busy"] = [{"device": "CPU", "busy_share": 1.0}, {"device": "GPU", "busy_share": 0.28}]
    answer = answered(given)
    assert "90 % of all, which is communication" in answer.cause
    assert "works 28 % of the time" in answer.cause
    assert "--step" in answer.action
    given["op_busy"][1]["busy_share"] = unknown.MOSTLY_BUSY
    assert "works" not in answered(given).cause


GROWS = {
    "rep": 0, "rank": 0, "device": "process", "name": "trainer", "pid": 7, "verdict": "growing",
    "first_bytes": 400 * MIB, "grown_bytes": 180.0 * MIB, "grown_low_bytes": 170.0 * MIB, "slope_bytes": 1.0 * MIB,
    "span_steps": 180,
}  # fmt: skip
LEAK = (
    "Memory grows by {} MiB per step, {} MiB in 180 steps: probably a leak (an estimated trend; "
    "`pipeprof memory 'my run'` shows its range)."
)


@pytest.mark.parametrize(("rows", "said"), [
    ([{}], LEAK.format("1.00", 180)),
    ([{}, {"grown_bytes": 360.0 * MIB, "slope_bytes": 2.0 * MIB, "rank": 1}], LEAK.format("2.00", 360)),  # the fastest
    ([{"verdict": "unclear"}], ""), ([{"device": "host"}], ""), ([{"name": "launcher"}], ""),
    ([{"grown_low_bytes": LEAST_BYTES - 1.0}], ""), ([{"first_bytes": 4000 * MIB}], ""),
])  # fmt: skip
def test_a_leak_is_said_before_anything_else_if_it_may_ever_matter(rows, said):
    run = RUN | {"path": "my run"}
    assert leaking({"run": run, "memory_growth": [GROWS | row for row in rows]}) == said
    assert leaking({"run": run}) == ""
