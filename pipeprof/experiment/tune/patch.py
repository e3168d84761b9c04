"""The accepted settings as a change of the user's source: a unified diff, and what is left to change by hand.

A call is only edited where there is no doubt which one is meant: the only one of its kind at the recorded line, with
the keyword absent or a plain number or truth value. Everything but these keywords stays as it was written.
"""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeprof.collect.probe.describe import READERS
from pipeprof.errors import PipeprofError
from pipeprof.units import format_bytes, format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    import libcst

    from pipeprof.record.settings_file import OperatorSetting, Settings

MOST_BYTES = 4 << 20
BOM = "\ufeff"
WORKERS, PROCESSES, ROWSIZE = "num_parallel_workers", "python_multiprocessing", "max_rowsize"
CALLS = {"MapOp": "map", "BatchOp": "batch", "MindRecordOp": "MindDataset"}  # what is no class of the operator's name
METHODS = frozenset({"map", "batch"})
# How many positional arguments come before those that are written.
BEFORE = {"MapOp": 3, "BatchOp": 2, "GeneratorOp": 5, "TFReaderOp": 4, "CelebAOp": 1, "CifarOp": 3}
READER = 2  # of any other reader of MindSpore's: none takes its workers before its third argument
LIBRARIES = frozenset({"site-packages", "dist-packages"})  # folders of what is installed, maybe below the script's


def calls_of(op_type: str) -> frozenset[str]:
    """Names of the calls that make an operator of that type."""
    if op_type in CALLS:
        return frozenset({CALLS[op_type]})
    made = [name for name, executed in READERS.items() if executed == op_type] or [op_type]
    return frozenset(f"{name.removesuffix('Op')}Dataset" for name in made)


@dataclass(frozen=True)
class ByHand:
    """A change that was not written into the source: where, what, and why not, as a code."""

    place: str
    what: str
    why: str


@dataclass(frozen=True)
class Patch:
    """A unified diff with paths from the working directory, "" for none, and what it leaves out.

    `shared`: places that are changed and make operators of other pipelines, too.
    """

    diff: str
    by_hand: tuple[ByHand, ...]
    shared: tuple[str, ...] = ()


def patch_of(
    settings: Settings, workdir: Path, other_sites: Collection[str] = (), operators: Sequence[Mapping[str, Any]] = ()
) -> Patch:
    """The settings as a patch of the files below `workdir`.

    `operators`: all of the pipeline (`site`, `op_type`): a line that makes several of a kind is left alone.
    """
    by_hand: list[ByHand] = []
    texts: dict[str, str] = {}
    changed = Counter((one.place, one.op_type) for one in settings.operators)
    made = Counter((row["site"], row["op_type"]) for row in operators)
    done = []
    for one, what, edit in _edits(settings):
        kind = one.place, one.op_type
        why = "same_line" if max(changed[kind], made[kind]) > 1 else _edit(texts, workdir, one.place, edit)
        if why:
            by_hand.append(ByHand(one.place, what, why))
        else:
            done.append(one.place)
    by_hand += _around(settings)
    diffs = [_diff(name, _read(workdir / name), text) for name, text in sorted(texts.items())]
    return Patch("".join(diffs), tuple(by_hand), tuple(place for place in dict.fromkeys(done) if place in other_sites))


def _edits(settings: Settings) -> Iterator[tuple[OperatorSetting, str, Callable[[str, int], str]]]:
    """What is to be written at the place of each operator, in words and as an edit; the last ones move lines."""
    for one in settings.operators:
        if _arguments(one):
            yield one, ", ".join(_arguments(one)), partial(_with_settings, one=one)
    for one in settings.operators:
        if one.maps_after is not None:
            what = f".batch() in front of {format_count(one.maps_after, 'map')}"
            yield one, what, partial(_with_batch_first, maps=one.maps_after)


def _around(settings: Settings) -> list[ByHand]:
    """What is no argument of a call: caches, what holds for all datasets, and what the command runs in."""
    by_hand: list[ByHand] = []
    for one in settings.operators:
        if one.cache is not None:
            what = f"keep the rows behind it in memory ({format_bytes(one.cache)} at most)"
            by_hand.append(ByHand(one.place, what, "cache"))
    if settings.prefetch is not None:
        what = f"mindspore.dataset.config.set_prefetch_size({settings.prefetch})"
        by_hand.append(ByHand(settings.site or "", what, "global"))
    by_hand += [ByHand("", f"{name}={value}", "environment") for name, value in sorted(settings.environment.items())]
    if settings.runtime_threads is not None:
        what = f"mindspore.set_context(runtime_num_threads={settings.runtime_threads})"
        by_hand.append(ByHand("", what, "context"))
    if settings.cpus is not None:
        by_hand.append(ByHand("", f"taskset -c {settings.cpus}", "command"))
    return by_hand


def _arguments(one: OperatorSetting) -> list[str]:
    given = {WORKERS: one.workers, PROCESSES: one.processes, ROWSIZE: one.max_rowsize}
    return [f"{name}={value}" for name, value in given.items() if value is not None]


def _edit(texts: dict[str, str], workdir: Path, place: str, edit: Callable[[str, int], str]) -> str:
    """Edit the text of the file that a place is in; returns why not, "" when it was done."""
    path, _, line = place.rpartition(":")
    try:
        name = _own_name(path, workdir)
    except ValueError:
        return "outside"
    try:
        import libcst  # noqa: PLC0415 - an extra
    except ImportError:
        return "no_libcst"
    try:
        text = texts.get(name) or _read(workdir / name)
        body = text.removeprefix(BOM)  # which libcst would drop
        texts[name] = text[: len(text) - len(body)] + edit(body, int(line) if line.isdigit() else 0)
    except UnclearError as error:
        return error.why
    except (OSError, ValueError, RecursionError, PipeprofError, libcst.ParserSyntaxError):
        return "unreadable"
    return ""


def _own_name(path: str, workdir: Path) -> str:
    """A file's path from the working directory. Raises ValueError for one outside, and for an installed library's."""
    name = Path(path).resolve().relative_to(workdir.resolve())
    if LIBRARIES & {*name.parts}:
        raise ValueError(path)
    return name.as_posix()


def _read(path: Path) -> str:
    from pipeprof.record.plain_file import read_file  # noqa: PLC0415

    return read_file(path, MOST_BYTES).decode("utf-8")


class UnclearError(Exception):
    """It is not clear which call is meant, or what it is given."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def _with_batch_first(text: str, line: int, maps: int) -> str:
    from pipeprof.experiment.tune.order import batch_first  # noqa: PLC0415 - an extra

    return batch_first(text, line, maps)


def _with_settings(text: str, line: int, one: OperatorSetting) -> str:
    """The text with the settings in the call at a line. Raises UnclearError, also where other lines would move."""
    import libcst  # noqa: PLC0415
    from libcst import metadata  # noqa: PLC0415

    wrapper = metadata.MetadataWrapper(libcst.parse_module(text))
    call = call_at(wrapper, line, calls_of(one.op_type))
    changed = wrapper.module.deep_replace(call, _with_arguments(call, one))
    after = changed.code if isinstance(changed, libcst.Module) else text
    if text.count("\n") != after.count("\n"):  # recorded places of other calls would no longer hold
        raise UnclearError("moves_lines")
    return after


def call_at(wrapper: libcst.metadata.MetadataWrapper, line: int, names: Collection[str]) -> libcst.Call:
    """The only call of one of these names at a line. Raises UnclearError."""
    import libcst  # noqa: PLC0415
    from libcst import metadata  # noqa: PLC0415

    positions = wrapper.resolve(metadata.PositionProvider)
    calls = [
        node
        for node in positions
        if isinstance(node, libcst.Call) and _name_of(node) in names and line == positions[_named(node)].start.line
    ]
    if len(calls) != 1:
        raise UnclearError("several_calls" if calls else "no_call")
    return calls[0]


def _named(call: libcst.Call) -> libcst.CSTNode:
    """The name of what is called, whose line is that of the call in a traceback."""
    import libcst  # noqa: PLC0415

    return call.func.attr if isinstance(call.func, libcst.Attribute) else call.func


def _name_of(call: libcst.Call) -> str:
    """What is called; "" for a function that has the name of a method of a dataset, such as `map`."""
    import libcst  # noqa: PLC0415

    named = _named(call)
    name = str(named.value) if isinstance(named, libcst.Name) else ""
    return "" if named is call.func and name in METHODS else name


def _with_arguments(call: libcst.Call, one: OperatorSetting) -> libcst.Call:
    """The call with the settings as keyword arguments, changed in their place or added behind the last."""
    if any(argument.star for argument in call.args):
        raise UnclearError("stars")
    positional = sum(argument.keyword is None for argument in call.args)
    if positional > BEFORE.get(one.op_type, READER):
        raise UnclearError("positional")
    for name, value in ((WORKERS, one.workers), (PROCESSES, one.processes), (ROWSIZE, one.max_rowsize)):
        if value is not None:
            call = _with_argument(call, name, value)
    return call


def _with_argument(call: libcst.Call, name: str, value: int) -> libcst.Call:
    import libcst  # noqa: PLC0415

    new = libcst.Name(str(value)) if isinstance(value, bool) else libcst.Integer(str(value))
    for at, argument in enumerate(call.args):
        if argument.keyword is None or argument.keyword.value != name:
            continue
        if not _is_plain(argument.value):
            raise UnclearError("expression")
        changed = argument.with_changes(value=new)
        return call.with_changes(args=[*call.args[:at], changed, *call.args[at + 1 :]])
    return call.with_changes(args=_appended(call.args, name, new))


def _is_plain(value: libcst.BaseExpression) -> bool:
    import libcst  # noqa: PLC0415

    return isinstance(value, libcst.Integer) or (
        isinstance(value, libcst.Name) and value.value in ("True", "False", "None")
    )


def _appended(arguments: Sequence[libcst.Arg], name: str, value: Any) -> list[libcst.Arg]:
    """The arguments and one more, behind the last on its line; a comma at the end, and what follows it, stay last."""
    import libcst  # noqa: PLC0415

    equal = libcst.AssignEqual(libcst.SimpleWhitespace(""), libcst.SimpleWhitespace(""))
    new = libcst.Arg(value, libcst.Name(name), equal=equal)
    if not arguments:
        return [new]
    last = arguments[-1]
    # What stands between the last argument and the closing bracket stays there.
    end = {"comma": last.comma, "whitespace_after_arg": last.whitespace_after_arg}
    comma = libcst.Comma(whitespace_after=libcst.SimpleWhitespace(" "))
    before = last.with_changes(comma=comma, whitespace_after_arg=libcst.SimpleWhitespace(""))
    return [*arguments[:-1], before, new.with_changes(**end)]


def _diff(name: str, before: str, after: str) -> str:
    """A unified diff that `git apply` and `patch -p1` take."""
    name += "\t" if " " in name else ""  # as git writes it: `patch` takes a name to end at a blank otherwise
    lines = difflib.unified_diff(_lines(before), _lines(after), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    """Lines as git counts them; Python's own would also end at a form feed."""
    *complete, rest = text.split("\n")
    return [f"{line}\n" for line in complete] + ([rest] if rest else [])
