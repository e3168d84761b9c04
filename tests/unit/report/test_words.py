"""Every code that a verdict gives has words, and every word a code; the sentences read as they should."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from every import every
from msgspec.structs import replace

import pipeprof.experiment
import pipeprof.report
import pipeprof.verdict
from pipeprof.cli.ops import ops
from pipeprof.record import note as stored
from pipeprof.report.words import (
    busy,
    causes,
    comparison,
    evidence,
    experiments,
    gate,
    names,
    network,
    speedup,
    suggestions,
)
from pipeprof.report.words.evidence import FACTS
from pipeprof.report.words.training import data_wait, length_difference
from pipeprof.units import format_ratio
from pipeprof.verdict import rules, verdict_from_queues
from pipeprof.verdict.modes import Mode, TwoModes
from tests.unit.report.conftest import trained

OP = {"op_id": 3, "op_type": "MapOp", "name": "decode"}
VERDICT = Path(pipeprof.verdict.__file__).parent
REPORT = Path(pipeprof.report.__file__).parent
EXPERIMENT = Path(pipeprof.experiment.__file__).parent
OUTCOMES = (*rules.VERDICTS, *rules.DOUBTS, *rules.KINDS, *rules.UNTIMED_KINDS, *rules.SINK_STAGES)
CLAUSES = [clause for entry in (*rules.RULES, *OUTCOMES) for clause in entry.when] + list(rules.SATURATED)


def codes(*callers: str, room: Path = VERDICT) -> set[str]:
    """First arguments of calls by these names in a room, as far as they are written out there."""
    calls = [node for path in room.rglob("*.py") for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    named = [
        node
        for node in calls
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute) and node.args
        if (node.func.id if isinstance(node.func, ast.Name) else node.func.attr) in callers
    ]
    return {code for call in named for code in written(call.args[0])}


def written(node: ast.expr) -> set[str]:
    """The strings that an argument can be."""
    if isinstance(node, ast.IfExp):
        return written(node.body) | written(node.orelse)
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()


@pytest.mark.parametrize(("words", "callers"), [
    (suggestions.WORDS, ("_of", "_of_loader", "_moved", "Suggestion")), (network.WORDS, ("Advice",)),
    (evidence.WHAT, ("evidence",)), (evidence.BASIS, ("on",)), (speedup.WORDS, ("because",)), (gate.WORDS, ("note",)),
])  # fmt: skip
def test_every_code_of_the_verdicts_has_words_and_every_word_a_code(words, callers):
    assert codes(*callers) == set(words)


def test_every_code_of_experiments_rules_and_facts_has_words_and_every_word_a_code():
    of_records = set(stored.WORDS)  # what a repetition notes about itself is stored with it
    assert codes("note", room=EXPERIMENT) - of_records == set(experiments.WORDS)
    assert set(evidence.RULES) == {verdict_from_queues.RULE, *(rule.name for rule in rules.RULES)}
    assert set(evidence.CHOICES) == {rule.chooses for rule in rules.RULES}
    assert set(evidence.FACTS) == {clause.fact for clause in CLAUSES}


@every(CLAUSES)
def test_every_condition_can_be_said(clause):
    assert evidence.condition(clause.fact, clause.relation, clause.bound).startswith(evidence.FACTS[clause.fact][0])


@pytest.mark.parametrize(("fact", "relation", "bound", "text"), [
    ("wait_share", "at_most", 0.2, "the training's wait for data: at most 20 %"),
    ("python_cores", "at_least", 0.85, "CPU of Python code inside the process: at least 0.85 cores"),
    ("batches", "short_of", 20, "batches of the steady state: less than 20 or not known"),
    ("gil_share", "unknown", None, "time that the interpreter's lock (GIL) is held: not measured"),
])  # fmt: skip
def test_conditions_have_their_units(fact, relation, bound, text):
    assert evidence.condition(fact, relation, bound) == text


@pytest.mark.parametrize(("steady", "whole", "said"), [
    (0.32, 0.38, "32 % of the time, 38 % with the first quarter of each epoch"), (0.30, 0.26, "about 30 % of the time"),
    (0.32, 0.32, "32 % of the time"), (0.32, None, "32 % of the time"), (0.82, 0.829, "about 82 % of the time"),
    (0.105, 0.098, "about 10 % of the time"), (0.0, 0.001, "less than 1 % of the time"),
    (0.009, None, "less than 1 % of the time"), (0.009, 0.012, "less than 2 % of the time"),
    (0.025, 0.028, "less than 3 % of the time"), (0.043, 0.0499, "less than 5 % of the time"),
    (0.043, 0.05, "about 4.3 % of the time"), (0.021, 0.021, "2.1 % of the time"),
    (0.0, 0.03, "less than 4 % of the time"),
])  # fmt: skip
def test_shares_of_waiting(steady, whole, said):
    assert data_wait({"data_wait_share": steady, "data_wait_share_all_steps": whole}) == said


@pytest.mark.parametrize(("steady", "whole", "said"), [(0.0251, 0.0284, "2.5"), (0.8214, 0.8291, "82.1")])
def test_shares_of_waiting_have_their_digits_in_tables(steady, whole, said):
    found = {"data_wait_share": steady, "data_wait_share_all_steps": whole}
    assert data_wait(found, format_ratio) == f"about {said} % of the time"


BUSY = {"device": "GPU", "steps": 12, "busy_share": 0.448, "least_share": 0.301, "least_step": 7, "most_share": 0.51}
WHOLE = dict.fromkeys(BUSY) | {"device": "AI_CPU", "busy_share": 1.0}


@pytest.mark.parametrize(("row", "expected"), [
    (BUSY, "GPU is busy 44.8 % of the time in 12 steps with recorded operators (least 30.1 %, in step 7; most 51.0 %)"),
    (BUSY | {"device": "CPU", "steps": 1, "least_share": 0.448, "most_share": 0.448},
     "Operators run 44.8 % of the time in 1 step with recorded operators"),
    (WHOLE, "AI_CPU is busy 100.0 % of the time from the first operator to the last"),
])  # fmt: skip
def test_how_busy_a_device_is(row, expected):
    assert busy.sentence(row) == expected


def test_a_device_that_ran_in_no_step_is_not_compared_with_one_that_did():
    assert busy.telling([BUSY, WHOLE]) == [BUSY]
    assert busy.telling([WHOLE]) == [WHOLE]


def test_the_summary_of_a_run_says_how_busy_it_was(make_run):
    run = make_run({
        "step": trained(100),
        "op": [{"op_id": 1, "step": 0, "start_ns": 10, "dur_ns": 25, "self_ns": 25, "track": "stream 1"}],
        "op_info": [{"op_id": 1, "name": "a", "type": "A", "device": "AI_CORE"}],
    })  # fmt: skip
    result = CliRunner().invoke(ops, [str(run.path), "--print-only", "summary"])
    assert "AI_CORE is busy 25.0 % of the time in 1 step" in result.output


def stage(name, change):
    return {"kind": "structure", "name": f"stage {name}", "shown": name, "change": change, "base": "MapOp",
            "new": "MapOp", "ratio": None, "share": None, "proven": True}  # fmt: skip


def test_a_new_stage_is_named_with_the_one_that_it_replaced_unless_there_are_several():
    entries = [stage("fast", "vanished"), stage("slow", "appeared")]
    for found in entries:
        assert comparison._text(comparison._replacement(found, entries)) == "stage `slow` took the place of `fast`"
    entries = [stage("a", "vanished"), stage("b", "vanished"), stage("c", "appeared")]
    assert comparison._replacement(entries[0], entries) is None
    assert comparison._replacement(entries[2], [entries[2]]) is None
    assert comparison._replacement(stage("d", "changed"), entries[1:]) is None


def test_sessions_and_sweeps_say_what_happened():
    old = [{"verdict": "regressed", "repetitions": 3}, {"verdict": None, "repetitions": 1}]
    assert experiments.sentence({"code": "earlier_sessions", "earlier": old}) == (
        "session 3 of this comparison; the earlier ones ended regressed after 3 repetitions per side, undecided after "
        "1 repetitions per side"
    )
    assert experiments.sentence({"code": "repeated", "failures": ["a died"]}) == "repeated: 1 failed run: a died"
    assert experiments.sentence({"code": "session_continued", "times": 2}).endswith("continued 2 times")
    assert experiments.reasoned(None) == {"reason": "", "reason_facts": None}
    assert experiments.noted([{"code": "same_batch"}])["note_facts"] == [{"code": "same_batch"}]


def said(code, op=OP, workers=2, not_when=None, **facts):
    item = {"code": code, "facts": {"op": op, "workers": workers, **facts}, "basis": [], "not_when": not_when}
    return suggestions.worded(item)


def gains(ratio, low, high, reason=None):
    return {"ratio": ratio, "low": low, "high": high, "reason": reason, "trial": None}


def test_a_suggestion_is_an_action_its_reason_and_its_gain():
    why = {"code": "polls", "rows_per_second": 320.0}
    found = said("workers", new_workers=1, why=why, prediction=gains(2.0, 1.9, 2.1))
    assert found["action"] == "set num_parallel_workers of `decode` to 1 (now 2)"
    assert found["text"].startswith(f"{found['action']}: with several workers a source sleeps 100 ms")
    assert found["text"].endswith("to 320 rows/s: about 2 times as fast (1.90 to 2.10)")
    wide = said("to_processes", new_workers=2, prediction=gains(1.4, 1.2, 1.7))
    assert wide["text"].endswith("(GIL): about 1.4 times as fast (1.20 to 1.70)")


@pytest.mark.parametrize(("code", "op", "begin"), [
    ("cheaper_rows", {}, "make the rows of `decode` cheaper: a faster algorithm"),
    ("cheaper_rows", {"op_type": "Collate", "name": "default_collate"}, "have the dataset hand out whole batches ("),
    ("cheaper_rows", {"op_type": "Sampler"}, "make `decode` cheaper: a faster algorithm, operations of a library"),
])  # fmt: skip
def test_an_action_that_says_nothing_without_its_reason_has_it(code, op, begin):
    assert said(code, op=OP | op)["action"].startswith(begin)
    assert "in C++" not in said("cheaper_operations")["action"]


def test_a_gain_that_is_not_known_says_why():
    refused = gains(None, None, None, {"code": "stall_not_known"})
    found = said("workers", new_workers=1, why=None, prediction=refused)
    assert "the gain cannot be predicted (it is not known how long its stalls are" in found["text"]
    assert found["facts"]["prediction"]["reason_facts"] == {"code": "stall_not_known"}


@pytest.mark.parametrize(("following", "words"), [(None, "the training itself"), (OP, "`decode`")])
def test_a_bound_names_what_limits_next(following, words):
    found = said("bound", times=1.5, next=following)
    assert found["text"] == (
        f"no change of `decode` makes the training more than 1.50 times as fast: after that, {words} is the bottleneck"
    )
    assert found["basis"]


def test_limits_of_workers_count_right_and_counter_indications_are_kept():
    most = said("most_workers_wait", workers=1, cpus=1)["text"]
    assert "has 1 worker, and MindSpore allows at most one per CPU (1 " in most
    found = said("cheaper_reading", not_when={"code": "fewer_cpus", "cpus": 4})
    assert found["not_when"] == "the machine has fewer than 4 CPUs"
    assert found["not_when_facts"]["cpus"] == 4


def advised(code, kind, count, share=0.5, phase="backward", largest=None, **more):
    """The text of the advice on all operators of a type."""
    facts = {"type": kind, "phase": phase, "count_per_step": count, "share": share, "largest": largest} | more
    _, (text,) = network.worded([{"code": code, "share": share, "facts": facts}])
    return text


def test_advice_on_the_step_ends_with_its_bound():
    text = advised("fewer_of_type", "Mul", 843.0)
    assert "843 Mul per step take 50.0 % of the step, backward" in text
    assert text.endswith("; a step would run at most 2.00 times as fast")
    assert advised("cheaper_type", "Mul", 1.0).startswith("make `Mul` cheaper: 50.0 % of the step")


@pytest.mark.parametrize(("count", "code"), [(24.0, "fewer_of_type"), (1.0, "cheaper_type")])
def test_advice_on_an_operator_is_about_the_line_that_issued_it(count, code):
    largest = {"name": "Sub", "type": "Sub", "phase": "backward", "share": 0.3, "in_shapes": "[2000, 2000]",
               "site": "/home/me/model.py(214): Net.construct", "site_share": 0.7}  # fmt: skip
    text = advised(code, "Sub", count, largest=largest)
    assert "`model.py:214`" in text
    assert "its gradient Sub on [2000, 2000]" in text
    assert ("all 24 Sub 50.0 %" in text) is (count > 1)
    assert "all that this line computes 70.0 %" in text
    assert "fused" not in text


@pytest.mark.parametrize(("kind", "how"), [
    ("Conv2DBackpropFilter", " (smaller images"), ("aten::cudnn_convolution", " (smaller images"),
    ("aten::mm", " (smaller layers"), ("BatchMatMulExt", " (smaller layers"), ("LayerNormGrad", " (smaller inputs"),
    ("FlashAttentionScore", " (shorter sequences"), ("EmbeddingDenseBackward", " (fewer rows"), ("Sub", ""),
    (None, ""), ("CommonThing", ""), ("BroadcastTo", ""), ("StandardNormal", ""), ("Cast", " (tensors kept"),
])  # fmt: skip
def test_how_operators_of_a_kind_become_cheaper(kind, how):
    said = network.cheaper_by(kind)
    assert said.startswith(how)
    assert bool(said) == bool(how)


def test_of_a_compiled_function_a_type_is_told_with_its_gradients_and_without_a_count():
    text = advised("fewer_of_type", "GeLU", 8.0, 0.47, "other", in_function=True)
    assert text.startswith("use fewer or cheaper GeLU operators (a cheaper activation")
    assert ": with their gradients they take 47.0 % of the step; " in text


def test_copies_are_not_to_be_fused():
    text = advised("fewer_copies", "Memcpy", 120.0, 0.3, "other")
    assert text.startswith("copy memory less: keep tensors on the device")
    assert "120 Memcpy per step take 30.0 % of the step; a step would run at most 1.43 times as fast" in text
    assert "fused" not in text
    assert "`Memcpy` takes 30.0 % of the step" in advised("fewer_copies", "Memcpy", 1.0, 0.3, "other")


@pytest.mark.parametrize(("share", "words"), [(0.4, "a step would run at most 1.67"), (1.0, "it is the whole step")])
def test_the_bound_of_a_part(share, words):
    assert network.bound(share).startswith(words)


def test_one_operator_is_said_once_and_its_many_inputs_are_counted():
    op = {"name": "net/LSTMGrad-op0", "type": "LSTMGrad", "phase": "backward", "share": 0.675,
          "in_shapes": "[128, 32, 64]; [1, 32, 64]; [1, 32, 64]; [33024, 1, 1]"}  # fmt: skip
    text = advised("cheaper_type", "LSTMGrad", 1.0, 0.675, largest=op)
    assert text.startswith(
        "make LSTMGrad `net/LSTMGrad-op0` on [128, 32, 64]; [1, 32, 64] and 2 other inputs cheaper (shorter sequences, "
        "a smaller hidden state, one call for the whole sequence): 67.5 % of the step, backward; "
    )
    assert text.count("67.5 %") == 1
    plain = {"name": "net/MatMul-op0", "type": "MatMul", "phase": "forward", "in_shapes": "[64, 8]", "share": 0.5}
    assert network.described(plain) == "MatMul `net/MatMul-op0` on [64, 8] (forward, 50.0 % of the step)"


@pytest.mark.parametrize(("shapes", "words"), [(1, "its input shapes stay the same"), (3, "seen with 3 input shapes")])
def test_growth_names_a_cause_by_the_shapes(shapes, words):
    op = {"name": "a", "shapes": shapes, "slope_ns": 1e6, "slope_low_ns": 9e5, "slope_high_ns": 2e6}
    assert words in network.WORDS["operator_grows"](op)


@pytest.mark.parametrize("code", ["input", "host", "device", "rare"])
def test_a_slow_rank_is_named_in_its_advice(code):
    assert causes.rank_advice({"code": code, "rank": 3}).startswith("rank 3: ")


def test_evidence_keeps_its_code_beside_its_words():
    basis = {"code": "step_shares", "steps": 1, "recorded": True, "ranks": 2, "slow_rank": None}
    part = {"code": "step_part", "value": 0.7, "unit": "share", "source": "q", "facts": {"limit": "compute"}}
    idle = part | {"code": "idle", "facts": {}, "measured_on": {"code": "host_samples"}}
    found, cores = evidence.worded([part | {"measured_on": basis}, idle])
    assert (found["what"], found["code"]) == ("computing", "step_part")
    assert found["basis"] == "1 step with recorded operators, 2 ranks"
    assert (cores["what"], cores["basis"]) == (
        "idle part of the cores that the training may use",
        "samples of CPU use",
    )
    assert cores["what"] == FACTS["idle_share"][0]  # of the same cores in the evidence and in the rules
    all_steps = evidence.BASIS["all_steps"]({})  # step/data_wait, `steps`
    assert all_steps == "all steps but warm-up; those with recorded operators only if there are no others"


def test_a_prediction_says_what_it_rests_on_and_keeps_its_codes():
    basis = [
        {"code": "in_proportion", "op_type": "MapOp", "old": 1, "new": 4},
        {"code": "others_not_timed", "op_types": ["MindRecordOp", "TFReaderOp"]},
        {"code": "others_not_timed", "op_types": ["TFReaderOp"]}, {"code": "polled", "workers": 2, "least_ns": 3.125e6},
    ]  # fmt: skip
    found = speedup.worded({"ratio": 4.0, "basis": basis, "reason": None})
    assert found["basis"][:3] == [
        "maximum throughput of MapOp in proportion to its workers (1 -> 4)",
        "MindRecordOp and TFReaderOp are not timed: the gain is as stated only if they keep up",
        "TFReaderOp is not timed: the gain is as stated only if it keeps up",
    ]
    assert found["basis"][3].startswith("with 2 workers at least 3.12 ms pass between two rows")
    assert (found["basis_facts"], found["reason"], found["reason_facts"]) == (basis, None, None)


UNTIL = {"until": "2026-12-31", "reason": "r", "reference": ""}


@pytest.mark.parametrize(("code", "facts", "words"), [
    ("few_jobs", {"jobs": 1, "needed": 8, "limit": 0.3},
     ("the sides are not known to share a job, and base has 1 of the 8 that are needed to compare across jobs: with "
     "fewer only changes above 30 % count")),
    ("other_speed", {"ratio": 1.5, "limit": 0.95}, ("the calibration loop took 1.50x as long as in the jobs of base, so "
     "the machines differ in speed: only changes above 95 % count")),
    ("other_speed_left_out", {"jobs": 1}, "1 job of base on machines of another speed is left out"),
    ("other_jobs_left_out", {"left_out": 1}, "1 repetition of other CI jobs is left out"),
    ("other_jobs_left_out", {"left_out": 8}, "8 repetitions of other CI jobs are left out"),
    ("share", {"prefix": "op/", "ratio": 0.8}, "relative to all `op/` metrics together: -20.0 %"),
    ("too_small", {"change": 0.0004, "needed": 0.02}, "it changed for certain, but by only 0.04 %: 2 % is the"),
    ("only_in_new", {"metrics": list("abcd")}, "measured only in new, so not judged: `a`, `b`, `c` and 1 more"),
    ("acknowledgement_outgrown", {"metric": "m", "reason": "r", "max_ratio": 1.1, "ratio": 1.12},
     "the acknowledgement of `m` (r) covers a ratio of up to 1.1, and the ratio is 1.12"),
    ("acknowledged", UNTIL | {"reference": "#12"}, "acknowledged until 2026-12-31: r (#12)"),
    ("acknowledged", UNTIL, "acknowledged until 2026-12-31: r"),
    ("two_points", {"writes": 1}, "two single measurements, 1 write apart: not tested"),
])  # fmt: skip
def test_the_gate_says_why(code, facts, words):
    assert gate.sentence({"code": code, **facts}).startswith(words)


ERRORS_OF_INPUT = {"gate/policy.py", "gate/samples.py"}  # refuse what a user gave
UNITS = {"share of the step time", "share of the time in training steps"}


def sentences(path):
    """Strings of four words or more that stand in a file, apart from docstrings and what is raised."""
    tree = ast.parse(path.read_text("utf-8"))
    spoken = [node for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    spoken += [node for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    aside = {id(inner) for node in spoken for inner in ast.walk(node)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in aside
        if re.search(r"[a-z]{2,}( [a-z]{2,}){3}", node.value)
    ]


def test_the_room_of_verdicts_speaks_no_english():
    files = [path for path in VERDICT.rglob("*.py") if path.relative_to(VERDICT).as_posix() not in ERRORS_OF_INPUT]
    assert {text for path in files for text in sentences(path)} - UNITS == set()


@pytest.mark.parametrize(("item", "said"), [
    ({"code": "host_gap", "cost": 0.2}, "host gaps cost most"),
    ({"code": "slow_link", "cost": 0.2, "link": "g", "ranks": [1, 2], "ratio": 2.0}, "slow link costs most"),
])  # fmt: skip
def test_what_costs_most_next(item, said):
    assert causes.as_next(item) == said


OTHER_CODES = {  # tables whose keys are codes of something else that happen to be spelled alike
    "report/timeline/counters.py:_FLOW", "report/tune_text.py:BATCHES", "report/words/causes.py:NAMES",
    "report/words/verdict.py:PHRASES",  # the verdict that such a part holds a run up
}  # fmt: skip


def name_tables():
    """(table, code, wording) of every name that a module's table gives to a code: no sentence, pattern or colour."""
    for path in sorted(REPORT.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            value = getattr(node, "value", None)
            if not isinstance(node, (ast.Assign, ast.AnnAssign)) or not isinstance(value, ast.Dict):
                continue
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            table = f"{path.relative_to(REPORT.parent)}:{getattr(target, 'id', '')}"
            for key, said in zip(value.keys, value.values, strict=True):
                words = [
                    one.value for one in (key, said) if isinstance(one, ast.Constant) and isinstance(one.value, str)
                ]
                if len(words) == 2 and not re.search(r"[{.:#]", words[1]):
                    yield table, *words


def test_a_part_of_a_step_is_named_in_one_file_alone():
    parts = {*names.PHASES, *names.INTERVALS}
    tables = {(table, code) for table, code, _ in name_tables() if code in parts and table not in OTHER_CODES}
    assert ("report/words/names.py:PHASES", "data_wait") in tables
    assert {one for one in tables if "words/names.py" not in one[0]} == set()


def test_no_two_tables_name_one_metric_differently():
    said = {}
    for _, code, words in name_tables():
        said.setdefault(code, set()).add(words)
    assert {code: said[code] for code in comparison.METRICS if len(said.get(code, ())) > 1} == {
        "data_wait": {names.INTERVALS["data_wait"], names.PHASES["data_wait"]}  # the phase, and the wait in it
    }


def test_the_long_steps_of_larger_batches_are_said_to_have_them():
    short = Mode(70, 0.7, 1e6, None, None, 1.0, None, 0.0, input_bytes=65_536.0)
    modes = TwoModes(0, 0, short, replace(short, input_bytes=819_200.0), ["input"])
    assert length_difference(modes) == "The long steps have larger batches (800 KiB instead of 64.0 KiB of data)."
