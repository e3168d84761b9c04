"""What two modules share has a public name."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "pipeprof"


def private_imports(path):
    """Names with a leading underscore that a module takes from another one of ours."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "pipeprof":
            yield from (f"{path.name}: {alias.name}" for alias in node.names if is_private(alias.name))


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def test_no_module_imports_a_private_name_of_another():
    assert [found for path in sorted(PACKAGE.rglob("*.py")) for found in private_imports(path)] == []


def test_a_private_import_is_seen(tmp_path):
    module = tmp_path / "one.py"
    module.write_text("from pipeprof import __version__\nfrom pipeprof.read import _lines, rows\n")
    assert list(private_imports(module)) == ["one.py: _lines"]
