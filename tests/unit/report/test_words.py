"""Every code that a verdict gives has words, and every word a code; the sentences read as they should."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

import pipeprof.experiment
import pipeprof.report
import pipeprof.verdict
from pipeprof.record import note as stored
from pipeprof.report.words import causes, comparison, evidence, experiments, gate, names, network, speedup, suggestions
from pipeprof.report.words.evidence import FACTS
from pipeprof.report.words.training import length_difference
from pipeprof.verdict.modes import Mode, TwoModes

OP = {"op_id": 3, "op_type": "MapOp", "name": "decode"}
VERDICT = Path(pipeprof.verdict.__file__).parent
REPORT = Path(pipeprof.report.__file__).parent
EXPERIMENT = Path(pipeprof.experiment.__file__).parent


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


@pytest.mark.parametrize(
    ("words", "callers"),
    [
        (suggestions.WORDS, ("_of", "_of_loader", "_moved", "Suggestion")),
        (network.WORDS, ("Advice",)),
        (evidence.WHAT, ("evidence",)),
        (evidence.BASIS, ("on",)),
        (speedup.WORDS, ("because",)),
        (gate.WORDS, ("note",)),
    ],
)
def test_every_code_of_the_verdicts_has_words_and_every_word_a_code(words, callers):
    assert codes(*callers) == set(words)


def test_every_code_of_the_experiments_has_words_and_every_word_a_code():
    of_records = set(stored.WORDS)  # what a repetition notes about itself is stored with it
    assert codes("note", room=EXPERIMENT) - of_records == set(experiments.WORDS)


def test_sessions_and_sweeps_say_what_happened():
    old = [{"verdict": "regressed", "repetitions": 3}, {"verdict": None, "repetitions": 1}]
    assert experiments.sentence({"code": "earlier_sessions", "earlier": old}) == (
        "session 3 of this comparison; the earlier ones ended regressed after 3 repetitions per side, undecided after 1 "
        "repetitions per side"
    )
    assert experiments.sentence({"code": "repeated", "failures": ["new-002 died"]}) == (
        "repeated: 1 failed run: new-002 died"
    )
    assert experiments.sentence({"code": "session_continued", "times": 2}).endswith("continued 2 times")
    assert experiments.reasoned(None) == {"reason": "", "reason_facts": None}
    assert experiments.noted([{"code": "same_batch"}])["note_facts"] == [{"code": "same_batch"}]


def said(code, op=OP, workers=2, **facts):
    item = {"code": code, "facts": {"op": op, "workers": workers, **facts}, "basis": [], "not_when": None}
    return suggestions.worded(item)


def test_a_suggestion_is_an_action_its_reason_and_its_gain():
    prediction = {"ratio": 2.0, "low": 1.9, "high": 2.1, "reason": None, "trial": None}
    why = {"code": "polls", "rows_per_second": 320.0}
    found = said("workers", new_workers=1, why=why, prediction=prediction)
    assert found["action"] == "set num_parallel_workers of `decode` to 1 (now 2)"
    assert found["text"].startswith(f"{found['action']}: with several workers a source sleeps 100 ms")
    assert found["text"].endswith("to 320 rows/s: about 2 times as fast (1.90 to 2.10)")


def test_an_action_that_says_nothing_without_its_reason_has_it():
    assert said("cheaper_rows")["action"].startswith("make the rows of `decode` cheaper: a faster algorithm")
    assert "in C++" not in said("cheaper_operations")["action"]
    own = said("cheaper_rows", op=OP | {"op_type": "Collate", "name": "default_collate"})["action"]
    assert own.startswith("have the dataset hand out whole batches (`batch_size=None`")
    sampler = said("cheaper_rows", op=OP | {"op_type": "Sampler"})["action"]
    assert sampler.startswith("make `decode` cheaper: a faster algorithm, operations of a library")


def test_a_gain_that_is_not_known_says_why_and_a_wide_one_its_ends():
    refused = {"ratio": None, "low": None, "high": None, "reason": {"code": "stall_not_known"}, "trial": None}
    found = said("workers", new_workers=1, why=None, prediction=refused)
    assert "the gain cannot be predicted (it is not known how long its stalls are" in found["text"]
    assert found["facts"]["prediction"]["reason_facts"] == {"code": "stall_not_known"}
    wide = {"ratio": 1.4, "low": 1.2, "high": 1.7, "reason": None, "trial": None}
    assert said("to_processes", new_workers=2, prediction=wide)["text"].endswith(
        "(GIL): about 1.4 times as fast (1.20 to 1.70)"
    )


@pytest.mark.parametrize(
    ("following", "words"),
    [(None, "after that, the training itself is the bottleneck"), (OP, "after that, `decode` is the bottleneck")],
)
def test_a_bound_names_what_limits_next(following, words):
    found = said("bound", times=1.5, next=following)
    assert found["text"] == f"no change of `decode` makes the training more than 1.50 times as fast: {words}"
    assert found["basis"]


def test_limits_of_workers_count_right():
    assert (
        "has 1 worker, and MindSpore allows at most one per CPU (1 where this was recorded)"
        in said("most_workers_wait", workers=1, cpus=1)["text"]
    )


def test_counter_indications_are_worded_and_kept():
    item = {"code": "cheaper_reading", "facts": {"op": OP}, "basis": [], "not_when": {"code": "fewer_cpus", "cpus": 4}}
    found = suggestions.worded(item)
    assert found["not_when"] == "the machine has fewer than 4 CPUs"
    assert found["not_when_facts"]["cpus"] == 4


def test_advice_on_the_step_ends_with_its_bound():
    kind = {"type": "Mul", "phase": "backward", "count_per_step": 843.0, "share": 0.5, "largest": None}
    _, (text,) = network.worded([{"code": "fewer_of_type", "share": 0.5, "facts": kind}])
    assert "843 Mul per step take 50.0 % of the step, backward" in text
    assert text.endswith("; a step would run at most 2.00 times as fast")
    _, (text,) = network.worded([{"code": "cheaper_type", "share": 0.5, "facts": kind | {"count_per_step": 1.0}}])
    assert text.startswith("make `Mul` cheaper: 50.0 % of the step")


@pytest.mark.parametrize(("count", "code"), [(24.0, "fewer_of_type"), (1.0, "cheaper_type")])
def test_advice_on_an_operator_is_about_the_line_that_issued_it(count, code):
    largest = {"name": "Sub", "type": "Sub", "phase": "backward", "share": 0.3, "in_shapes": "[2000, 2000]",
               "site": "/home/me/model.py(214): Net.construct", "site_share": 0.7}  # fmt: skip
    kind = {"type": "Sub", "phase": "backward", "count_per_step": count, "share": 0.5, "largest": largest}
    _, (text,) = network.worded([{"code": code, "share": 0.5, "facts": kind}])
    assert "`model.py:214`" in text
    assert "its gradient Sub on [2000, 2000]" in text
    assert ("all 24 Sub 50.0 %" in text) is (count > 1)
    assert "all that this line computes 70.0 %" in text
    assert "fused" not in text


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        ("Conv2DBackpropFilter", " (smaller images"), ("aten::cudnn_convolution", " (smaller images"),
        ("aten::mm", " (smaller layers"), ("BatchMatMulExt", " (smaller layers"), ("LayerNormGrad", " (smaller inputs"),
        ("FlashAttentionScore", " (shorter sequences"), ("EmbeddingDenseBackward", " (fewer rows"), ("Sub", ""),
        (None, ""), ("CommonThing", ""), ("BroadcastTo", ""), ("StandardNormal", ""), ("Cast", " (tensors kept"),
    ],
)  # fmt: skip
def test_how_operators_of_a_kind_become_cheaper(kind, how):
    said = network.cheaper_by(kind)
    assert said.startswith(how)
    assert bool(said) == bool(how)


def test_of_a_compiled_function_a_type_is_told_with_its_gradients_and_without_a_count():
    kind = {
        "type": "GeLU",
        "phase": "other",
        "count_per_step": 8.0,
        "share": 0.47,
        "largest": None,
        "in_function": True,
    }
    _, (text,) = network.worded([{"code": "fewer_of_type", "share": 0.47, "facts": kind}])
    assert text.startswith("use fewer or cheaper GeLU operators (a cheaper activation")
    assert ": with their gradients they take 47.0 % of the step; " in text


def test_copies_are_not_to_be_fused():
    kind = {"type": "Memcpy", "phase": "other", "count_per_step": 120.0, "share": 0.3, "largest": None}
    _, (text,) = network.worded([{"code": "fewer_copies", "share": 0.3, "facts": kind}])
    assert text.startswith("copy memory less: keep tensors on the device")
    assert "120 Memcpy per step take 30.0 % of the step; a step would run at most 1.43 times as fast" in text
    assert "fused" not in text
    _, (text,) = network.worded([{"code": "fewer_copies", "share": 0.3, "facts": kind | {"count_per_step": 1.0}}])
    assert "`Memcpy` takes 30.0 % of the step" in text


@pytest.mark.parametrize(
    ("share", "words"), [(0.4, "a step would run at most 1.67 times"), (1.0, "it is the whole step")]
)
def test_the_bound_of_a_part(share, words):
    assert network.bound(share).startswith(words)


def test_one_operator_is_said_once_and_its_many_inputs_are_counted():
    op = {"name": "net/LSTMGrad-op0", "type": "LSTMGrad", "phase": "backward", "share": 0.675,
          "in_shapes": "[128, 32, 64]; [1, 32, 64]; [1, 32, 64]; [33024, 1, 1]"}  # fmt: skip
    kind = {"type": "LSTMGrad", "phase": "backward", "count_per_step": 1.0, "share": 0.675, "largest": op}
    _, (text,) = network.worded([{"code": "cheaper_type", "share": 0.675, "facts": kind}])
    assert text.startswith(
        "make LSTMGrad `net/LSTMGrad-op0` on [128, 32, 64]; [1, 32, 64] and 2 other inputs cheaper (shorter sequences, a "
        "smaller hidden state, one call for the whole sequence): 67.5 % of the step, backward; "
    )
    assert text.count("67.5 %") == 1


def test_an_operator_is_described_with_its_shapes():
    op = {"name": "net/MatMul-op0", "type": "MatMul", "phase": "forward", "in_shapes": "[64, 8]", "share": 0.5}
    assert network.described(op) == "MatMul `net/MatMul-op0` on [64, 8] (forward, 50.0 % of the step)"


def test_growth_names_a_cause_by_the_shapes():
    op = {"name": "a", "shapes": 1, "slope_ns": 1e6, "slope_low_ns": 9e5, "slope_high_ns": 2e6}
    assert "its input shapes stay the same" in network.WORDS["operator_grows"](op)
    assert "seen with 3 input shapes" in network.WORDS["operator_grows"](op | {"shapes": 3})


@pytest.mark.parametrize("code", ["input", "host", "device", "rare"])
def test_a_slow_rank_is_named_in_its_advice(code):
    assert causes.rank_advice({"code": code, "rank": 3}).startswith("rank 3: ")


def test_evidence_keeps_its_code_beside_its_words():
    one = {
        "code": "step_part", "value": 0.7, "unit": "share", "source": "q", "facts": {"limit": "compute"},
        "measured_on": {"code": "step_shares", "steps": 1, "recorded": True, "ranks": 2, "slow_rank": None},
    }  # fmt: skip
    (found,) = evidence.worded([one])
    assert found["what"] == "computing"
    assert found["basis"] == "1 step with recorded operators, 2 ranks"
    assert found["code"] == "step_part"


def test_a_prediction_says_what_it_rests_on_and_keeps_its_codes():
    basis = [
        {"code": "in_proportion", "op_type": "MapOp", "old": 1, "new": 4},
        {"code": "others_not_timed", "op_types": ["MindRecordOp", "TFReaderOp"]},
        {"code": "others_not_timed", "op_types": ["TFReaderOp"]},
        {"code": "polled", "workers": 2, "least_ns": 3.125e6},
    ]
    found = speedup.worded({"ratio": 4.0, "basis": basis, "reason": None})
    assert found["basis"][:3] == [
        "maximum throughput of MapOp in proportion to its workers (1 -> 4)",
        "MindRecordOp and TFReaderOp are not timed: the gain is as stated only if they keep up",
        "TFReaderOp is not timed: the gain is as stated only if it keeps up",
    ]
    assert found["basis"][3].startswith("with 2 workers at least 3.12 ms pass between two rows")
    assert (found["basis_facts"], found["reason"], found["reason_facts"]) == (basis, None, None)


@pytest.mark.parametrize(
    ("code", "facts", "words"),
    [
        ("few_jobs", {"jobs": 1, "needed": 8, "limit": 0.3}, "the sides are not known to share a job, and base has 1 of the 8 that are needed to compare across jobs: with fewer only changes above 30 % count"),
        ("other_speed", {"ratio": 1.5, "limit": 0.95}, "the calibration loop took 1.50x as long as in the jobs of base, so the machines differ in speed: only changes above 95 % count"),
        ("other_speed_left_out", {"jobs": 1}, "1 job of base on machines of another speed is left out"),
        ("other_jobs_left_out", {"left_out": 1}, "1 repetition of other CI jobs is left out"),
        ("other_jobs_left_out", {"left_out": 8}, "8 repetitions of other CI jobs are left out"),
        ("share", {"prefix": "op/", "ratio": 0.8}, "relative to all `op/` metrics together: -20.0 %"),
        ("too_small", {"change": 0.0004, "needed": 0.02}, "it changed for certain, but by only 0.04 %: 2 % is the"),
        ("only_in_new", {"metrics": list("abcd")}, "measured only in new, so not judged: `a`, `b`, `c` and 1 more"),
        (
            "acknowledgement_outgrown", {"metric": "m", "reason": "r", "max_ratio": 1.1, "ratio": 1.12},
            "the acknowledgement of `m` (r) covers a ratio of up to 1.1, and the ratio is 1.12",
        ),
        ("acknowledged", {"until": "2026-12-31", "reason": "r", "reference": "#12"}, "acknowledged until 2026-12-31: r (#12)"),
        ("acknowledged", {"until": "2026-12-31", "reason": "r", "reference": ""}, "acknowledged until 2026-12-31: r"),
        ("two_points", {"writes": 1}, "two single measurements, 1 write apart: not tested"),
    ],
)  # fmt: skip
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


def test_all_steps_are_those_that_the_query_counts():
    said = evidence.BASIS["all_steps"]({})  # step/data_wait, `steps`
    assert said == "all steps but warm-up; those with recorded operators only if there are no others"


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ({"code": "host_gap", "cost": 0.2}, "host gaps cost most"),
        ({"code": "slow_link", "cost": 0.2, "link": "g", "ranks": [1, 2], "ratio": 2.0}, "slow link costs most"),
    ],
)
def test_what_costs_most_next(item, said):
    assert causes.as_next(item) == said


def test_what_is_idle_is_so_of_the_same_cores_in_the_evidence_and_in_the_rules():
    given = {"code": "idle", "value": 0.05, "unit": "share", "source": "diagnose/load", "facts": {},
             "measured_on": {"code": "host_samples"}}  # fmt: skip
    (found,) = evidence.worded([given])
    assert (found["what"], found["basis"]) == ("idle part of the cores that the training may use", "samples of CPU use")
    assert found["what"] == FACTS["idle_share"][0]


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
