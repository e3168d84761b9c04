"""A batch is written in front of the maps that feed it, where the calls stand in a row: in one chain, or one a line.

`data = data.map(f, ["image"])` and `data = data.batch(32)` below it change places, and so do `.map(f)` and `.batch(32)`
in one chain without comments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst
from libcst import matchers, metadata

from pipeprof.experiment.tune.arguments import call_at
from pipeprof.experiment.tune.source import UnclearError

if TYPE_CHECKING:
    from collections.abc import Sequence

BATCH, MAP = "batch", "map"


def batch_first(text: str, place: str, maps: int) -> str:
    """The text with the batch at a place (file:line) in front of so many maps.

    Raises UnclearError where they do not stand in a row, libcst.ParserSyntaxError for what is no Python.
    """
    wrapper = metadata.MetadataWrapper(libcst.parse_module(text))
    batch = call_at(wrapper, place, {BATCH})
    chain = _chain(batch, maps)
    changed = wrapper.module.deep_replace(batch, _rotated(chain)) if chain else _lines_moved(wrapper, batch, maps)
    if not isinstance(changed, libcst.Module):
        raise UnclearError("order")
    return changed.code


def _called(call: libcst.Call) -> str:
    return str(call.func.attr.value) if isinstance(call.func, libcst.Attribute) else ""


def _chain(batch: libcst.Call, maps: int) -> list[libcst.Call]:
    """The batch's call and those of the maps that it is called on, the last first; empty when there are fewer."""
    calls = [batch]
    while len(calls) <= maps:
        func = calls[-1].func
        inner = func.value if isinstance(func, libcst.Attribute) else None
        if not isinstance(inner, libcst.Call) or _called(inner) != MAP or _has_comment(calls[-1]):
            return []
        calls.append(inner)
    return calls


def _has_comment(call: libcst.Call) -> bool:
    """Whether a comment stands in front of the dot of a call, where it would be taken for that of another."""
    func = call.func
    space = func.dot.whitespace_before if isinstance(func, libcst.Attribute) else None
    return isinstance(space, libcst.ParenthesizedWhitespace) and (
        space.first_line.comment is not None or any(line.comment for line in space.empty_lines)
    )


def _rotated(chain: Sequence[libcst.Call]) -> libcst.Call:
    """The same calls, the first of the list at the innermost place. What stands around the dots stays in its place."""
    last, batch = chain[-1].func, chain[0]
    value = last.value if isinstance(last, libcst.Attribute) else last
    inner = batch.with_changes(lpar=[], rpar=[])  # the brackets stay around all
    # Innermost first: the batch, then the maps in their order; each takes the place, with its dot, of another call.
    for slot, call in zip(reversed(chain), [inner, *reversed(chain[1:])], strict=True):
        dotted, own = slot.func, call.func
        if not (isinstance(dotted, libcst.Attribute) and isinstance(own, libcst.Attribute)):
            raise TypeError("not a call of a method")
        value = call.with_changes(func=dotted.with_changes(value=value, attr=own.attr))
    if not isinstance(value, libcst.Call):
        raise TypeError("not a call")
    return value.with_changes(lpar=[*batch.lpar, *value.lpar], rpar=[*value.rpar, *batch.rpar])


def _lines_moved(wrapper: metadata.MetadataWrapper, batch: libcst.Call, maps: int) -> libcst.CSTNode | None:
    """The module with the line of the batch in front of those of the maps; None where other lines are in between."""
    parents = wrapper.resolve(metadata.ParentNodeProvider)
    node: libcst.CSTNode = batch
    while not isinstance(node, libcst.SimpleStatementLine):
        if node not in parents:
            return None
        node = parents[node]
    block = parents[node]
    if not isinstance(block, libcst.Module | libcst.IndentedBlock):
        return None
    lines = list(block.body)
    at = next(number for number, line in enumerate(lines) if line is node)
    name = _changes_itself(node, BATCH)
    before = lines[at - maps : at] if at >= maps else []
    if not name or not before or any(_changes_itself(line, MAP) != name for line in before):
        return None
    moved = [*lines[: at - maps], node, *before, *lines[at + 1 :]]
    return wrapper.module.deep_replace(block, block.with_changes(body=moved))


def _changes_itself(line: libcst.CSTNode, method: str) -> str:
    """The name of a line such as `data = data.map(...)`; "" for any other."""
    if not isinstance(line, libcst.SimpleStatementLine) or len(line.body) != 1:
        return ""
    only = line.body[0]
    if not isinstance(only, libcst.Assign) or len(only.targets) != 1:
        return ""
    target, call = only.targets[0].target, only.value
    if not isinstance(target, libcst.Name) or not isinstance(call, libcst.Call) or _called(call) != method:
        return ""
    if any(matchers.findall(argument, matchers.Name(target.value)) for argument in call.args):
        return ""  # it may be something else in another place
    on = call.func.value if isinstance(call.func, libcst.Attribute) else None
    return target.value if isinstance(on, libcst.Name) and on.value == target.value else ""
