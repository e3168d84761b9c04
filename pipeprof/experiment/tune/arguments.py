"""The argument that a setting of an operator comes from: maybe one of a call that the user makes of a library.

mindcv's `create_loader(rows, num_parallel_workers=1)` makes its maps with `num_parallel_workers=num_parallel_workers`:
from the map's call over the parameter of the function around it to the user's own argument, along the recorded lines.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import libcst
from libcst import matchers, metadata

from pipeprof.errors import PipeprofError
from pipeprof.experiment.tune.source import (
    BOM,
    KEYWORDS,
    Argument,
    UnclearError,
    keywords_of,
    own_argument,
    read_source,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    Together = dict[tuple[int, str], frozenset[int]]

METHODS = frozenset({"map", "batch"})
TELLS = frozenset({"print", "debug", "info", "warning"})  # functions that do nothing else with what they get


@dataclass
class Sources:
    """Python files, each of which is parsed once."""

    parsed: dict[str, metadata.MetadataWrapper] = field(default_factory=dict)

    def argument(self, row: Mapping[str, Any], setting: str) -> tuple[Argument, str]:
        """The argument that a setting of a recorded operator (`site`, `callers`, `op_type`) comes from.

        With why it cannot be told, which is "" where it is written out or left out there; else it is what led so far.
        """
        argument = own_argument(row["site"] or "", row["op_type"], setting)
        callers = [one for one in (row.get("callers") or "").split("\n") if one]
        as_it_is = True
        try:
            while (value := self._value(argument)) is not None and not is_plain(value):
                argument, unchanged = self._given_by(argument, value, callers.pop(0) if callers else "")
                as_it_is = as_it_is and unchanged
                higher = [argument, *(replace(argument, place=place) for place in callers)]
                passed = len(list(itertools.takewhile(self._hands_all_on, higher)))  # of decorators in between
                if passed < len(higher) and self._is_called(higher[passed]):
                    argument = higher[passed]
                    del callers[:passed]
        except UnclearError as error:
            return argument, error.why
        except RecursionError:
            return argument, "unreadable"
        if not as_it_is:
            return argument, "on_the_way"
        return argument, "shared_argument" if argument.does_more else ""

    def may_set(self, argument: Argument, row: Mapping[str, Any], setting: str) -> bool:
        """Whether an argument of the user's sets that of an operator, or may: what led there is not all clear."""
        other, why = self.argument(row, setting)
        led = argument.place in (row.get("callers") or "").splitlines()
        is_unclear = led and bool(why) and other.place != argument.place and self._is_local(other)
        return other == argument or is_unclear

    def _is_local(self, argument: Argument) -> bool:
        """Whether what an argument is given may come from the function around it: no name of that is in a constant."""
        try:
            value = self._value(argument)
        except (UnclearError, RecursionError):
            return True
        scopes = self._wrapper(argument.place).resolve(metadata.ScopeProvider)
        names = [] if value is None else matchers.findall(value, matchers.Name())
        known = [(scope, one.value) for one in names if isinstance(one, libcst.Name) and (scope := scopes.get(one))]
        return any(isinstance(made.scope, metadata.FunctionScope) for scope, name in known for made in scope[name])

    def written(self, argument: Argument) -> str:
        """What an argument is given in its call, in one line; "" where that is not clear."""
        try:
            value = self._value(argument)
            return "" if value is None else " ".join(self._wrapper(argument.place).module.code_for_node(value).split())
        except (UnclearError, RecursionError):
            return ""

    def _wrapper(self, place: str) -> metadata.MetadataWrapper:
        path = place.rpartition(":")[0]
        try:
            if path not in self.parsed:
                module = libcst.parse_module(read_source(Path(path)).removeprefix(BOM))
                self.parsed[path] = metadata.MetadataWrapper(module)
        except (OSError, ValueError, RecursionError, PipeprofError, libcst.ParserSyntaxError) as error:
            raise UnclearError("unreadable") from error
        return self.parsed[path]

    def _call(self, argument: Argument) -> libcst.Call:
        return call_at(self._wrapper(argument.place), argument.place, argument.names)

    def _is_called(self, argument: Argument) -> bool:
        try:
            self._call(argument)
        except UnclearError as error:
            return error.why != "no_call"
        return True

    def _hands_all_on(self, argument: Argument) -> bool:
        """Whether something else is called there, with * or **, as decorators do."""
        if self._is_called(argument):
            return False
        return any(one.star for call in calls_on(self._wrapper(argument.place), argument.place) for one in call.args)

    def _value(self, argument: Argument) -> libcst.BaseExpression | None:
        found = argument_at(self._call(argument), argument)
        return None if found is None else found.value

    def _given_by(self, argument: Argument, value: libcst.BaseExpression, caller: str) -> tuple[Argument, bool]:
        """The argument of the call at a caller's line that a value is made of, and whether it is the very same."""
        wrapper = self._wrapper(argument.place)
        parents = wrapper.resolve(metadata.ParentNodeProvider)
        parameter, made = _parameter(wrapper, value)
        function = parents[parents[parameter]]
        if not caller or not isinstance(function, libcst.FunctionDef):
            raise UnclearError("expression")
        by_place = [*function.params.posonly_params, *function.params.params]
        number = next((at for at, one in enumerate(by_place) if one is parameter), None)
        names, owner = {function.name.value}, parents.get(parents[function])
        decorators = {wrapper.module.code_for_node(one.decorator) for one in function.decorators}
        if isinstance(owner, libcst.ClassDef):
            names = {owner.name.value} if function.name.value == "__init__" else names
            number = number if number is None or "staticmethod" in decorators else number - 1
        if parameter in function.params.posonly_params:
            raise UnclearError("positional")
        read = [one for made_at in made for one in made_at.references]
        led = (value, *matchers.findall(value, matchers.Name()))
        does_more = any(
            one.scope is not made[0].scope or not (one.node in led or _is_handed_on(wrapper, one.node)) for one in read
        )
        given = Argument(
            caller, frozenset(names), parameter.name.value, number, argument.steps + 1, argument.does_more or does_more
        )
        if isinstance(owner, libcst.ClassDef) and not decorators & {"staticmethod", "classmethod"}:
            self._refuse_on_class(given, owner.name.value)
        return given, len(made) == 1 and isinstance(value, libcst.Name)

    def _refuse_on_class(self, given: Argument, name: str) -> None:
        """Raises UnclearError where a method is called on its class: the object is among the arguments there."""
        if self._is_called(given):
            on = getattr(self._call(given).func, "value", None)
            if isinstance(on, libcst.Name) and on.value == name:
                raise UnclearError("positional")


def _is_handed_on(wrapper: metadata.MetadataWrapper, name: libcst.CSTNode) -> bool:
    """Whether a parameter is a setting of an operator there, is given to a function of the same file, or only told."""
    parents = wrapper.resolve(metadata.ParentNodeProvider)
    part = parents.get(name)
    if not isinstance(part, libcst.Arg):
        return isinstance(part, libcst.FormattedStringExpression)
    func = getattr(parents.get(part), "func", None)
    own = {one.name.value for one in wrapper.module.body if isinstance(one, libcst.FunctionDef)}
    known = own | TELLS if isinstance(func, libcst.Name) else TELLS
    called = getattr(getattr(func, "attr", func), "value", "")
    return called in known or (part.keyword is not None and part.keyword.value in KEYWORDS)


def _parameter(
    wrapper: metadata.MetadataWrapper, value: libcst.BaseExpression
) -> tuple[libcst.Param, list[metadata.Assignment]]:
    """The only parameter of the function around it that a value holds, as in `min(8, workers)`, and where it is set.

    Raises UnclearError for none, for several, and for parts of one (`options.workers`).
    """
    scopes = wrapper.resolve(metadata.ScopeProvider)
    held: dict[libcst.Param, list[metadata.Assignment]] = {}
    for name in matchers.findall(value, matchers.Name()):
        scope = scopes.get(name)
        text = name.value if isinstance(name, libcst.Name) else ""
        found = list(scope.assignments[text]) if isinstance(scope, metadata.FunctionScope) else []
        made = [one for one in found if isinstance(one, metadata.Assignment)]
        held |= {one.node: made for one in made if isinstance(one.node, libcst.Param)}
    if len(held) != 1 or matchers.findall(value, matchers.Attribute() | matchers.Subscript()):
        raise UnclearError("expression")
    [(parameter, made)] = held.items()
    return parameter, made


def argument_at(call: libcst.Call, argument: Argument) -> libcst.Arg | None:
    """The argument as it stands in its call; None where it is left out. Raises UnclearError where * or ** may be it."""
    named = next((one for one in call.args if one.keyword and one.keyword.value == argument.keyword), None)
    if named is not None:
        return named
    if any(one.star for one in call.args):
        raise UnclearError("stars")
    by_place = [one for one in call.args if one.keyword is None]
    return by_place[argument.number] if argument.number is not None and argument.number < len(by_place) else None


def calls_on(wrapper: metadata.MetadataWrapper, place: str) -> list[libcst.Call]:
    """The calls whose name stands at the line of a place (file:line)."""
    line = place.rpartition(":")[2]
    positions = wrapper.resolve(metadata.PositionProvider)
    calls = [node for node in positions if isinstance(node, libcst.Call)]
    return [one for one in calls if line == str(positions[_named(one)].start.line)]


def call_at(wrapper: metadata.MetadataWrapper, place: str, names: Collection[str]) -> libcst.Call:
    """The only call of one of these names at the line of a place (file:line). Raises UnclearError."""
    calls = [one for one in calls_on(wrapper, place) if _name_of(one) in names]
    if len(calls) != 1:
        raise UnclearError("several_calls" if calls else "no_call")
    return calls[0]


def _named(call: libcst.Call) -> libcst.CSTNode:
    """The name of what is called, whose line is that of the call in a traceback."""
    return call.func.attr if isinstance(call.func, libcst.Attribute) else call.func


def _name_of(call: libcst.Call) -> str:
    """What is called; "" for a function that has the name of a method of a dataset, such as `map`."""
    named = _named(call)
    name = str(named.value) if isinstance(named, libcst.Name) else ""
    return "" if named is call.func and name in METHODS else name


def is_plain(value: libcst.BaseExpression) -> bool:
    """Whether a value is written out: a number, a truth value or None."""
    return isinstance(value, libcst.Integer) or (
        isinstance(value, libcst.Name) and value.value in ("True", "False", "None")
    )


def set_together(rows: Iterable[Mapping[str, Any]]) -> Together:
    """By op_id and setting: the operators, itself included, that one argument of the user's sets over a function."""
    sources, given = Sources(), defaultdict[tuple[str, Argument], set[int]](set)
    for row in rows:
        for setting in keywords_of(str(row.get("op_type"))):
            argument, why = sources.argument(row, setting)
            if argument.steps and not why:
                given[setting, argument].add(row["op_id"])
    return {
        (op_id, setting): frozenset(op_ids)
        for (setting, _), op_ids in given.items()
        for op_id in op_ids
        if len(op_ids) > 1
    }
