"""The diff puts a batch in front of its maps, and leaves everything else as it was."""

import pytest

from pipeprof.experiment.tune.patch import patch_of
from pipeprof.record.settings_file import OperatorSetting, Settings

LINES = """data = make()
data = data.map(f, ["x"])  # scale
data = data.map(g, ["x"])
data = data.batch(32, drop_remainder=True)  # whole ones
train(data)
"""
CHAIN = """data = (
    make()
    .map(f, ["x"])
    .map(g,
         ["x"])
    .batch(32)
    .repeat(2)
)
"""


def after(folder, text, line, maps, **more):
    """The added and removed lines of the patch, and what is left to do by hand."""
    path = folder / "train.py"
    path.write_text(text, encoding="utf-8")
    one = OperatorSetting(node=0, op_type="BatchOp", place=f"{path}:{line}", maps_after=maps, **more)
    found = patch_of(Settings(operators=(one,)), folder)
    changed = [row for row in found.diff.splitlines()[2:] if row[:1] in "+-"]
    return changed, [(one.what, one.why) for one in found.by_hand]


def test_the_line_goes_up(tmp_path):
    line = "data = data.batch(32, drop_remainder=True)  # whole ones"
    assert after(tmp_path, LINES, 4, 2) == ([f"+{line}", f"-{line}"], [])


def test_calls_of_a_chain_change_places(tmp_path):
    changed, by_hand = after(tmp_path, CHAIN, 6, 2)
    assert changed == ["+    .batch(32)", "-    .batch(32)"]
    assert by_hand == []


@pytest.mark.parametrize("maps", [1, 2])
def test_a_chain_in_brackets_may_end_with_the_batch(tmp_path, maps):
    text = CHAIN.replace("    .repeat(2)\n", "")
    changed, by_hand = after(tmp_path, text, 6, maps)
    assert changed == ["+    .batch(32)", "-    .batch(32)"]
    assert by_hand == []


def test_only_the_nearest_map(tmp_path):
    changed, _ = after(tmp_path, "data = make().map(f).map(g).batch(4)\n", 1, 1)
    assert changed == ["-data = make().map(f).map(g).batch(4)", "+data = make().map(f).batch(4).map(g)"]


def test_workers_of_the_same_batch_are_written_too(tmp_path):
    changed, by_hand = after(tmp_path, "data = make().map(f).batch(4)\n", 1, 1, workers=2)
    assert changed[1] == "+data = make().batch(4, num_parallel_workers=2).map(f)"
    assert by_hand == []


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("data = make().map(f)\nprint(data)\ndata = data.batch(4)\n", 3, "order"),
        ("data = make().map(f).shuffle(9).batch(4)\n", 1, "order"),
        ("data = (\n    make()\n    .map(f)  # scale\n    .batch(4)\n)\n", 4, "order"),
        ("other = data.map(f)\ndata = other.batch(4)\n", 2, "order"),
        ("data = data.map(f)\ndata = data.batch(part_of(data))\n", 2, "order"),
        ("data = data.map(f, data.get_col_names())\ndata = data.batch(4)\n", 2, "order"),
        ("data = make().map(f).batch(4)\n", 2, "no_call"),
        ("data = make(.map(f).batch(4)\n", 1, "unreadable"),
    ],
)
def test_where_they_are_not_in_a_row_the_line_is_named(tmp_path, text, line, why):
    assert after(tmp_path, text, line, 1) == ([], [(".batch() in front of 1 map", why)])


def test_a_shuffle_that_goes_along_is_named(tmp_path):
    (tmp_path / "train.py").write_text("data = make().map(f).shuffle(9).batch(4)\n")
    one = OperatorSetting(node=0, op_type="BatchOp", place=f"{tmp_path}/train.py:1", maps_after=1)
    kinds = ("BatchOp", "ShuffleOp", "MapOp", "ShuffleOp", "GeneratorOp")
    for more, what in ((0, ".shuffle() and behind it .batch() in front of 1 map"), (1, ".batch() in front of 1 map")):
        between = [*kinds[:1], *kinds[1 + more :]]  # a shuffle behind the map stays where it is
        rows = [{"node": node, "op_type": kind, "site": "train.py:1"} for node, kind in enumerate(between)]
        assert [entry.what for entry in patch_of(Settings(operators=(one,)), tmp_path, operators=rows).by_hand] == [
            what
        ]


def test_a_batch_beside_another_one_on_its_line_is_left_alone(tmp_path):
    text = "train, test = one.map(f).batch(4), other.map(f).batch(8)\n"
    assert after(tmp_path, text, 1, 1) == ([], [(".batch() in front of 1 map", "several_calls")])


def test_a_batch_in_a_file_of_others_is_said_to_be_there(tmp_path):
    (tmp_path / "lib.py").write_text("data = data.map(f).batch(4)\n")
    (tmp_path / "mine").mkdir()
    one = OperatorSetting(node=0, op_type="BatchOp", place=f"{tmp_path / 'lib.py'}:1", maps_after=1)
    found = patch_of(Settings(operators=(one,)), tmp_path / "mine")
    assert (found.diff, [entry.why for entry in found.by_hand]) == ("", ["outside"])
