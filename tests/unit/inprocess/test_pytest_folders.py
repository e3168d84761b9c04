"""Where the pytest plugin puts the runs of a test."""

from types import SimpleNamespace

import pytest

from pipeprof.inprocess.pytest_plugin import folder_of


def folder(root, node):
    chosen = SimpleNamespace(getoption=lambda _name: None, getini=lambda _name: "runs", rootpath=root)
    return folder_of(SimpleNamespace(nodeid=node, config=chosen))


@pytest.mark.parametrize("word", ["training", "训练"])
def test_a_long_name_makes_a_folder_of_its_own(tmp_path, word):
    made = [folder(tmp_path, f"tests/test_it.py::test_{number}_{word * 60}") for number in range(2)]
    for path in made:
        path.mkdir(parents=True)
    assert word in made[0].name


def test_a_short_name_stays_as_it_is(tmp_path):
    assert folder(tmp_path, "tests/test_it.py::test_训练") == tmp_path / "runs" / "tests-test_it-test_训练"
