"""What must not become more is counted, and a limit is only lowered."""

import json

import pytest
from action_steps import load_tool


@pytest.fixture
def tool():
    """tools/ratchet.py"""
    return load_tool("ratchet")


def test_subscripts_by_a_text_are_counted(tool):
    assert tool.subscripts('a["x"] + a["y"]["z"] + a[0] + a[name] + a.get("x")') == 3
    assert tool.subscripts('kind: Literal["a", "b"] | Literal["c"]\ndel a["x"]\na["x"] = 1') == 2


def test_a_limit_is_only_lowered(tool, tmp_path, capsys):
    package, limits = tmp_path / "package", tmp_path / "limits.json"
    (package / "room").mkdir(parents=True)
    package.joinpath("top.py").write_text('a["x"]\n')
    package.joinpath("room", "one.py").write_text('a["x"]["y"]\n')
    package.joinpath("room", "two.py").write_text('a["x"]\n')
    limits.write_text(json.dumps({".": 1, "room": 4, "gone": 2}))
    assert tool.main([], package, limits) == 0
    assert capsys.readouterr().out.startswith("3 fewer")
    assert tool.main(["--write"], package, limits) == 0
    assert json.loads(limits.read_text()) == {".": 1, "room": 3}
    assert capsys.readouterr().out == ""
    package.joinpath("room", "two.py").write_text('a["x"] + a["z"]\n')
    assert tool.main([], package, limits) == 1
    assert "room/ has 4 subscripts by a text, at most 3" in capsys.readouterr().err
    assert tool.main(["--write"], package, limits) == 1
    assert json.loads(limits.read_text()) == {".": 1, "room": 3}
