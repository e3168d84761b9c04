"""Sections of a report: what was run and its warnings, the diagnosis, the pipeline's graph, and reading and caches."""

from dataclasses import asdict

import pytest
from cache_points import cache_point
from run_verdicts import with_verdict
from typed_rows import of_dicts

from pipeprof.query.engine import Engine
from pipeprof.report import html, markdown
from pipeprof.report.answer import data
from pipeprof.report.build import build
from pipeprof.report.diagnosis import NOTHING_IMPORTED, OPERATORS_ALONE, judged
from pipeprof.report.sections.diagnosis import diagnosis_section
from pipeprof.report.sections.of_run import sections
from pipeprof.report.sections.pipeline import below_consumers
from pipeprof.report.sections.run import run_section
from pipeprof.report.sections.storage import storage_section
from pipeprof.report.words import evidence
from pipeprof.verdict import pipeline
from tests.unit.report.conftest import RUN, trained

FIRST = (0, 0)


def notes_of(ranks, warnings=(), hooks=()):
    """What is noted of a run with these ranks in each repetition; a warning is its message and where it is of."""
    warned = [{"code": "x", "message": message, **place} for message, place in warnings]
    reps = [{"rep": rep, "ranks": [{"rank": rank} for rank in here]} for rep, here in enumerate(ranks)]
    for row, used in zip(reps[0]["ranks"], hooks, strict=False):
        row["hooks"] = used
    run = RUN | {"command": [], "warnings": warned, "reps": reps}
    return run_section({"run": run, "steps": {"summary": []}}, FIRST).notes


LATE = [("late", {"rep": 0, "rank": rank}) for rank in range(20)]


@pytest.mark.parametrize(("ranks", "warnings", "expected"), [
    ([[0]], [LATE[2], LATE[0]], ["late"]), ([[0, 1, 2]], [LATE[2], LATE[0]], ["late (ranks 0, 2)"]),
    ([[0], [0]], [LATE[2], LATE[0]], ["late (repetition 0)"]),
    ([[0, 2], [0, 2]], [LATE[2], LATE[0]], ["late (repetition 0; ranks 0, 2)"]),
    ([[0, 1]], [("late", {}), ("other", {"rep": 0, "rank": 1})], ["late", "other (rank 1)"]),
    ([list(range(20))], LATE, ["late (ranks 0, 1, 2, 3, 4, 5, 6, 7, ...)"]), ([[0]], [], []),
])  # fmt: skip
def test_a_warning_of_several_ranks_is_said_once_and_names_the_first(ranks, warnings, expected):
    assert notes_of(ranks, warnings) == [f"warning: {said}" for said in expected]


@pytest.mark.parametrize(("used", "said"), [
    (["compiled"], ["hooks in C"]), (["python", "compiled", None], ["hooks in C, hooks in Python"]), (["else"], []),
])  # fmt: skip
def test_which_hooks_were_used_is_said(used, said):
    assert notes_of([range(len(used))], hooks=used) == said


def diagnosed(verdict="input_bound", rule="utilisation", share=0.6, **more):
    named = {"op_id": 1, "op_type": "MapOp", "op_name": "f", "kind": "gil" if rule == "gil" else None, "rule": rule}
    found = of_dicts(pipeline.diagnose)([], [], []) | {"verdict": verdict, "data_wait_share": share, "compatible": {}}
    found |= {"doubt_facts": [], "evidence": evidence.worded(found["evidence"])}
    found |= named if verdict != "consumer_bound" else {}
    if rule == "shared_cpu":
        facts = (("freed", 1.5, 1.1), ("pipeline_share", 0.3, 0.1))
        found["rule_facts"] = [
            {"fact": fact, "value": value, "relation": "at_least", "bound": bound} for fact, value, bound in facts
        ]
    ranks = {"straggler": {"verdict": "even", "found": []}}
    return with_verdict({"diagnosis": found | more, "ranks": ranks, "run": RUN, "op_devices": []})


@pytest.mark.parametrize(("verdict", "rule", "share", "label"), [
    ("input_bound", "utilisation", 0.12, "Input-bound: "), ("balanced", "utilisation", 0.12, "Balanced: "),
    ("consumer_bound", "consumer", 0.049, "Not input-bound: "),
    ("consumer_bound", "consumer", None, "Probably not input-bound: "),
    ("balanced", "gil", 0.02, "The data is ready in time, "),
    ("balanced", "gil", 0.12, "The training waits for its data only now and then, "),
    ("balanced", "shared_cpu", 0.12, "Short of CPU: "),
])  # fmt: skip
def test_the_first_line_of_the_diagnosis_is_that_of_the_first_screen(verdict, rule, share, label):
    found = diagnosed(verdict, rule, share)
    first = diagnosis_section(found).strong[0]
    assert first.startswith(label)
    assert f"{first}." == data.sentence(found)


@pytest.mark.parametrize(("rule", "said"), [("utilisation", True), ("shared_cpu", False)])
def test_the_pace_of_a_stage_that_takes_cpu_from_the_training_bounds_nothing(rule, said):
    """Seen: "at most 3.95 times as fast", where its CPU was worth 1.04 times."""
    bound = {"code": "bound", "parameter": None, "text": "no more than 3.95 times", "place": None, "not_when": None,
             "verify": None, "gain_high": 3.95, "op_id": 1}  # fmt: skip
    found = diagnosed("balanced", rule, 0.02, suggestions=[bound])
    assert any("3.95" in text for text in diagnosis_section(found).notes) == said


def test_the_rule_and_the_facts_behind_it_are_said_where_there_is_one():
    busy, cores = ("busy", 0.98, "at_least", 0.8), ("python_cores", 0.913, "at_most", 1.3)
    facts = [busy, ("gil_share", None, "unknown", None), cores]
    rows = [dict(zip(("fact", "value", "relation", "bound"), fact, strict=True)) for fact in facts]
    found = diagnosed(rule_name="busier_than_loop", rule_facts=rows)
    assert diagnosis_section(found).notes[0] == (
        "Rule `busier_than_loop`: this stage is busy, and busier than the training loop (utilisation of the busiest "
        "operator: 98.0 %, needs at least 80 %; time that the interpreter's lock (GIL) is held: not measured; CPU of "
        "Python code inside the process: 0.91 cores, needs at most 1.3 cores)"
    )
    none = diagnosed(rule=None, rule_name=None, rule_facts=[])
    assert not any("Rule" in note for note in diagnosis_section(none).notes)


EXECUTED = {"op_id": 0, "start_ns": 10, "dur_ns": 50, "track": "0"}
IN_A_STEP = {"step": trained(100, in_window=True), "op_info": [{"op_id": 0, "phase": "forward"}],
             "op": [EXECUTED | {"step": 0}]}  # fmt: skip


@pytest.mark.parametrize(("source", "tables", "advice"), [
    ("import:any", {}, [NOTHING_IMPORTED]), ("import:any", {"op": [EXECUTED]}, [OPERATORS_ALONE]),
    ("import:any", IN_A_STEP, None), ("collect", {"op": [EXECUTED]}, None),
])  # fmt: skip
def test_only_an_import_without_the_parts_of_a_step_is_told_to_import_more(make_run, source, tables, advice):
    run = make_run(tables, source=source)
    with Engine.open(run) as engine:
        found = judged(engine, run, [], [])["network"]
    if advice:
        assert (found["actions"], found["suggestions"]) == ([], advice)
    else:
        assert not {NOTHING_IMPORTED, OPERATORS_ALONE} & set(found["suggestions"])
        assert found["suggestions"] or found["actions"]


KEY = {"pipeline_id": 0}
ZIP = {0: "BatchOp", 1: "ZipOp", 2: "MapOp", 3: "MapOp", 4: "GeneratorOp", 5: "GeneratorOp"}
ZIP_EDGES = [(1, 0), (2, 1), (3, 1), (4, 2), (5, 3)]  # by breadth, as MindSpore numbers: 4 belongs to 2, not to 3
CONCAT = {0: "GeneratorOp", 1: "MapOp", 2: "GeneratorOp", 3: "ConcatOp"}  # its branch has a lower number than itself
DIAMOND = {0: "ZipOp", 1: "MapOp", 2: "MapOp", 3: "BatchOp", 4: "GeneratorOp"}  # shown whole below the first consumer
DIAMOND_EDGES = [(1, 0), (2, 0), (3, 1), (3, 2), (4, 3)]


@pytest.mark.parametrize(("types", "edges", "labels"), [
    (ZIP, ZIP_EDGES, ["BatchOp 0", "  ZipOp 1", "    MapOp 2", "      GeneratorOp 4", "    MapOp 3",
                      "      GeneratorOp 5"]),
    (CONCAT, [(0, 1), (1, 3), (2, 3)], ["ConcatOp 3", "  MapOp 1", "    GeneratorOp 0", "  GeneratorOp 2"]),
    (DIAMOND, DIAMOND_EDGES, ["ZipOp 0", "  MapOp 1", "    BatchOp 3", "      GeneratorOp 4", "  MapOp 2",
                              "    BatchOp 3, see above"]),
])  # fmt: skip
def test_each_operator_stands_below_what_consumes_its_rows_in_every_format(make_run, types, edges, labels):
    found = build(make_run({
        "pipeline": [KEY | {"pipeline_key": "a", "role": "train", "site": "train.py:1"}],
        "pipeline_op": [KEY | {"op_id": n, "op_type": kind, "workers": 1} for n, kind in types.items()],
        "pipeline_edge": [KEY | {"producer_id": up, "consumer_id": down} for up, down in edges],
    }))  # fmt: skip
    rows = next(section for section in sections(found) if section.title == "Data pipeline").blocks[0].rows
    assert [row[0] for row in rows] == labels
    page, text = html.text(found), markdown.text(found)
    assert [label for label in labels if f">{label}</td>" not in page] == []
    assert [label for label in labels if f"| {label.replace('  ', '&nbsp;&nbsp;')} |" not in text] == []
    (made,) = found["pipeline"]["pipelines"]
    consumers = {n: [down for up, down in edges if up == n] for n in types}
    assert {op["op_id"]: op["consumers"] for op in made["ops"]} == consumers
    if "see above" in labels[-1]:
        assert set(rows[-1][1:]) == {"", "-"}  # what was shown before states no number again
        assert rows[2][2] == "1"


def test_operators_in_a_circle_all_appear_once():
    ops = [{"op_id": n, "consumers": [(n + 1) % 3]} for n in range(3)]
    assert sorted(op["op_id"] for op, _, before in below_consumers(ops) if not before) == [0, 1, 2]


POINT = asdict(cache_point(op_id=2, site="train.py:9", rows=240.0, bytes=2**20, ratio=1.66, python=False))
UNKNOWN = {"wait": 0.42, "reading": None, "preparing": None, "hand_over": 0.01}


def storage(**more):
    found = {
        "rep": 0, "rank": 0, "split": {"wait": 0.42, "reading": 0.4, "preparing": 0.02, "hand_over": 0.0},
        "curve": [{"cached": share, "rate": 50 + 50 * share, "ratio": 1 + share} for share in (0.0, 1.0)], "best": 2,
        "points": [POINT, POINT | {"op_id": 1, "bytes": None, "rows": None, "disk_ratio": 0.5, "changes": "random"}],
        "readers": [3], "branches": False, "doubts": [],
    } | more  # fmt: skip
    return storage_section({"storage": [found]}, FIRST)


def test_the_wait_is_split_and_the_best_cache_named_and_what_is_not_known_is_said():
    found = storage()
    assert found.strong == [
        "In the steady state the loop waits for data 42.0 % of its time: 40.0 % for reading, 2.0 % for preparing",
        "Best cache: of 1.00 MiB, in memory, after MapOp 2 decode (train.py:9): predicted x1.66",
    ]
    assert "No cache that leaves the data as it is would bring 2 % or more" in storage(best=None).strong
    curve, points = found.blocks
    assert curve.rows == [["0.0 %", "50.0", "x1.00"], ["100.0 %", "100.0", "x2.00"]]
    assert points.rows[1][1:] == ["-", "-", "x1.66", "x0.50", "random: every epoch would get the same"]
    assert points.rows[0][4:] == ["-", "no sign of it"]
    assert storage_section({"storage": []}, FIRST).strong == []  # another rank has a section of its own


def test_without_a_timed_reader_there_is_no_curve():
    found = storage(readers=[], split=UNKNOWN)
    assert len(found.blocks) == 1
    assert any("not known" in note for note in found.notes)
    assert found.strong[0].endswith("waits for data 42.0 % of its time: 1.0 % for handing over")
    found = storage(readers=[], split=UNKNOWN | {"reading": 0.0, "preparing": 0.41})
    assert "No source waits for what it reads" in found.notes
    assert not any("not known" in note for note in found.notes)


@pytest.mark.parametrize(("more", "told"), [
    ({"branches": True, "points": []}, "several sources"), ({"doubts": ["lock"]}, "(GIL)"),
    ({"doubts": ["no_core"]}, "No core was idle"), ({"points": [POINT | {"python": True}]}, "Python of yours"),
])  # fmt: skip
def test_what_makes_it_doubtful_is_said(more, told):
    assert any(told in note for note in storage(**more).notes)


def test_several_pipelines_are_told_apart_by_their_places():
    one = {"rep": 0, "rank": 0, "pipeline_key": "a"}
    unknown = {"curve": [], "best": None, "readers": [], "branches": False, "doubts": []}
    advice = unknown | {"split": UNKNOWN | {"wait": 0.4, "hand_over": 0.0}, "points": [POINT]}
    made = [one | {"site": "train.py:7"}, one | {"pipeline_key": "b", "site": None}]
    stored = [one | advice, one | advice | {"pipeline_key": "b"}]
    found = storage_section({"storage": stored, "pipeline": {"pipelines": made}}, FIRST)
    places = ["Pipeline at train.py:7", "Pipeline at an unknown place"]
    assert [line.partition(" the ")[0] for line in found.strong[::2]] == [f"{place}: In" for place in places]
    assert [block.caption for block in found.blocks] == [(place,) for place in places]
    assert len(found.notes) == len({*found.notes}) == 3


def test_a_cache_that_was_measured_before_is_not_said_to_be_predicted():
    found = storage(points=[POINT | {"trial": "tune"}])
    assert "predicted" not in found.strong[-1]
    assert found.strong[-1].endswith("measured before, by `tune`: x1.66")
    assert found.blocks[-1].rows[0][3] == "x1.66 (measured)"
