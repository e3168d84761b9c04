"""The dataset graph as the report draws it: each operator below what consumes its rows, whatever its number."""

import pytest

from pipeprof.report import html, markdown
from pipeprof.report.build import build
from pipeprof.report.sections.of_run import sections
from pipeprof.report.sections.pipeline import below_consumers

KEY = {"pipeline_id": 0}
ZIP = {0: "BatchOp", 1: "ZipOp", 2: "MapOp", 3: "MapOp", 4: "GeneratorOp", 5: "GeneratorOp"}
ZIP_EDGES = [(1, 0), (2, 1), (3, 1), (4, 2), (5, 3)]  # by breadth, as MindSpore numbers: 4 belongs to 2, not to 3
DIAMOND = {0: "ZipOp", 1: "MapOp", 2: "MapOp", 3: "BatchOp", 4: "GeneratorOp"}
DIAMOND_EDGES = [(1, 0), (2, 0), (3, 1), (3, 2), (4, 3)]


@pytest.fixture
def content(make_run):
    """`content(types, edges)`: the report of a run with that dataset graph."""

    def made(types, edges):
        tables = {
            "pipeline": [KEY | {"pipeline_key": "a", "role": "train", "site": "train.py:1"}],
            "pipeline_op": [KEY | {"op_id": n, "op_type": kind, "workers": 1} for n, kind in types.items()],
            "pipeline_edge": [KEY | {"producer_id": up, "consumer_id": down} for up, down in edges],
        }
        return build(make_run(tables))

    return made


def drawn(content):
    section = next(section for section in sections(content) if section.title == "Data pipeline")
    return [row[0] for row in section.blocks[0].rows]


def test_the_branches_of_a_zip_stand_below_it_one_after_the_other(content):
    assert drawn(content(ZIP, ZIP_EDGES)) == [
        "BatchOp 0",
        "  ZipOp 1",
        "    MapOp 2",
        "      GeneratorOp 4",
        "    MapOp 3",
        "      GeneratorOp 5",
    ]


def test_a_branch_of_a_concat_is_below_it_though_its_number_is_lower(content):
    types = {0: "GeneratorOp", 1: "MapOp", 2: "GeneratorOp", 3: "ConcatOp"}
    assert drawn(content(types, [(0, 1), (1, 3), (2, 3)])) == [
        "ConcatOp 3",
        "  MapOp 1",
        "    GeneratorOp 0",
        "  GeneratorOp 2",
    ]


def test_an_operator_with_two_consumers_is_shown_whole_below_the_first_and_named_below_the_second(content):
    assert drawn(content(DIAMOND, DIAMOND_EDGES)) == [
        "ZipOp 0",
        "  MapOp 1",
        "    BatchOp 3",
        "      GeneratorOp 4",
        "  MapOp 2",
        "    BatchOp 3, see above",
    ]


def test_what_was_shown_before_states_no_number_again(content):
    section = next(s for s in sections(content(DIAMOND, DIAMOND_EDGES)) if s.title == "Data pipeline")
    assert set(section.blocks[0].rows[-1][1:]) == {"", "-"}
    assert section.blocks[0].rows[2][2] == "1"


def test_operators_in_a_circle_all_appear_once():
    ops = [{"op_id": n, "consumers": [(n + 1) % 3]} for n in range(3)]
    shown = [op["op_id"] for op, _, before in below_consumers(ops) if not before]
    assert sorted(shown) == [0, 1, 2]


def test_html_and_markdown_draw_the_same_tree(content):
    found = content(DIAMOND, DIAMOND_EDGES)
    page, text = html.text(found), markdown.text(found)
    for label in drawn(found):
        assert f">{label}</td>" in page
        assert f"| {label.replace('  ', '&nbsp;&nbsp;')} |" in text


def test_the_json_report_names_all_consumers(content):
    (pipeline,) = content(DIAMOND, DIAMOND_EDGES)["pipeline"]["pipelines"]
    assert {op["op_id"]: op["consumers"] for op in pipeline["ops"]} == {0: [], 1: [0], 2: [0], 3: [1, 2], 4: [3]}
