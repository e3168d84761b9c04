"""What one module of the probe asks of another one is there: the probe would catch the error, and lose what it records."""

import ast
from pathlib import Path

import pipeprof.collect.probe as package

PROBE = Path(package.__file__).parent
TREES = {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in PROBE.glob("*.py")}


def _defined(tree):
    """Names of a module: of its functions, classes and imports, and whatever is assigned outside of a class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Global):
            yield from node.names


def _asked(tree):
    """(module of the probe, name) of all that a module asks of others by `module.name`."""
    siblings = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module is None
        for alias in node.names
        if alias.name in TREES
    }
    own = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    for node in ast.walk(tree):
        of = getattr(node, "value", None) if isinstance(node, ast.Attribute) else None
        if isinstance(of, ast.Name) and of.id in siblings.keys() - own:
            yield siblings[of.id], node.attr


def test_what_modules_ask_of_each_other_is_there():
    names = {module: {*_defined(tree), "__file__", "__name__"} for module, tree in TREES.items()}
    asked = {(asking, module, name) for asking, tree in TREES.items() for module, name in _asked(tree)}
    assert len(asked) > 300
    assert [one for one in sorted(asked) if one[2] not in names[one[1]]] == []
