"""The accepted settings as a change of the user's source: a unified diff, and what is left to change by hand.

A call is only edited where there is no doubt which one is meant: the only one of its kind at the recorded line, with
the keyword absent or a plain number or truth value. Everything but these keywords stays as it was written.
"""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeprof.collect.probe.describe import READERS
from pipeprof.errors import PipeprofError
from pipeprof.units import format_bytes, format_count

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import libcst

    from pipeprof.record.settings_file import OperatorSetting, Settings

MOST_BYTES = 4 << 20
WORKERS, PROCESSES, ROWSIZE = "num_parallel_workers", "python_multiprocessing", "max_rowsize"
CALLS = {"MapOp": "map", "BatchOp": "batch", "MindRecordOp": "MindDataset"}  # what is no class of the operator's name
# How many positional arguments come before those that are written.
BEFORE = {"MapOp": 3, "BatchOp": 2, "GeneratorOp": 5, "TFReaderOp": 4, "CelebAOp": 1, "CifarOp": 3}
READER = 2  # of any other reader of MindSpore's: none takes its workers before its third argument


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

    `operators`: all of the pipeline (`site`, `op_type`): a call that makes several of them is left alone.
    """
    by_hand: list[ByHand] = []
    texts: dict[str, str] = {}
    places = Counter(one.place for one in settings.operators)
    made = Counter((row["site"], row["op_type"]) for row in operators)
    several = {one.place for one in settings.operators if places[one.place] > 1 or made[one.place, one.op_type] > 1}
    done = []
    for one in settings.operators:
        path, line = _path_and_line(one.place)
        if not _arguments(one):
            continue
        why = "same_line" if one.place in several else _changed(texts, workdir, path, line, one)
        if why:
            by_hand.append(ByHand(one.place, ", ".join(_arguments(one)), why))
        else:
            done.append(one.place)
    for one in settings.operators:  # last: lines move
        if one.maps_after is None:
            continue
        if one.place in several or not _moved_up(texts, workdir, one):
            what = f".batch() in front of {format_count(one.maps_after, 'map')}"
            by_hand.append(ByHand(one.place, what, "same_line" if one.place in several else "order"))
        else:
            done.append(one.place)
    by_hand += _around(settings)
    diffs = [_diff(name, _read(workdir / name), text) for name, text in sorted(texts.items())]
    return Patch("".join(diffs), tuple(by_hand), tuple(place for place in dict.fromkeys(done) if place in other_sites))


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


def _moved_up(texts: dict[str, str], workdir: Path, one: OperatorSetting) -> bool:
    """Write a batch in front of its maps into the text of its file; False where that cannot be done safely."""
    path, line = _path_and_line(one.place)
    try:
        name = Path(path).resolve().relative_to(workdir.resolve()).as_posix()
        import libcst  # noqa: PLC0415 - an extra

        from pipeprof.experiment.tune.order import batch_first  # noqa: PLC0415

        text = texts.get(name) or _read(workdir / name)
        changed = batch_first(text, line, one.maps_after or 0)
    except (ImportError, OSError, ValueError, PipeprofError):
        return False
    except libcst.ParserSyntaxError:
        return False
    if changed is not None:
        texts[name] = changed
    return changed is not None


def _path_and_line(text: str) -> tuple[str, int]:
    path, _, line = text.rpartition(":")
    return path, int(line) if line.isdigit() else 0


def _arguments(one: OperatorSetting) -> list[str]:
    given = {WORKERS: one.workers, PROCESSES: one.processes, ROWSIZE: one.max_rowsize}
    return [f"{name}={value}" for name, value in given.items() if value is not None]


def _changed(texts: dict[str, str], workdir: Path, path: str, line: int, one: OperatorSetting) -> str:
    """Write one operator's settings into the text of its file; returns why not, "" when it was done.

    Lines of a call may move by an edit above it, so edits are made on a tree that keeps the first text's positions.
    """
    try:
        name = Path(path).resolve().relative_to(workdir.resolve()).as_posix()
    except ValueError:
        return "outside"
    try:
        import libcst  # noqa: F401, PLC0415 - an extra
    except ImportError:
        return "no_libcst"
    edited = texts.get(name)
    try:
        text = _read(workdir / name) if edited is None else edited
        texts_after = _edited(text, line, one)
    except _UnclearError as error:
        return error.why
    except (OSError, ValueError, PipeprofError):
        return "unreadable"
    if _moved(text, texts_after):
        return "moves_lines"
    texts[name] = texts_after
    return ""


def _read(path: Path) -> str:
    from pipeprof.record.plain_file import read_file  # noqa: PLC0415

    return read_file(path, MOST_BYTES).decode("utf-8")


def _moved(before: str, after: str) -> bool:
    """Whether an edit changed the number of lines, so that recorded line numbers of other calls no longer hold."""
    return before.count("\n") != after.count("\n")


class _UnclearError(Exception):
    """It is not clear which call is meant, or what it is given."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def _edited(text: str, line: int, one: OperatorSetting) -> str:
    """The text with the settings in the call at a line. Raises _UnclearError, ValueError for what is no Python."""
    import libcst  # noqa: PLC0415
    from libcst import metadata  # noqa: PLC0415

    try:
        wrapper = metadata.MetadataWrapper(libcst.parse_module(text))
    except libcst.ParserSyntaxError as error:
        raise ValueError(str(error)) from error
    call = _call_at(wrapper, line, calls_of(one.op_type))
    changed = wrapper.module.deep_replace(call, _with_arguments(call, one))
    return changed.code if isinstance(changed, libcst.Module) else text


def _call_at(wrapper: libcst.metadata.MetadataWrapper, line: int, names: Collection[str]) -> libcst.Call:
    """The only call of one of these names at a line."""
    import libcst  # noqa: PLC0415
    from libcst import metadata  # noqa: PLC0415

    positions = wrapper.resolve(metadata.PositionProvider)
    at, around = [], []
    for node, position in positions.items():
        if not isinstance(node, libcst.Call) or _name_of(node) not in names:
            continue
        named = node.func.attr if isinstance(node.func, libcst.Attribute) else node.func
        where = positions[named]
        if where.start.line == line:
            at.append(node)
        elif where.start.line <= line <= position.end.line:
            around.append(node)
    calls = at or around
    if len(calls) != 1:
        raise _UnclearError("several_calls" if calls else "no_call")
    return calls[0]


def _name_of(call: libcst.Call) -> str:
    import libcst  # noqa: PLC0415

    if isinstance(call.func, libcst.Attribute):
        return str(call.func.attr.value)
    return str(call.func.value) if isinstance(call.func, libcst.Name) else ""


def _with_arguments(call: libcst.Call, one: OperatorSetting) -> libcst.Call:
    """The call with the settings as keyword arguments, changed in their place or added behind the last."""
    if any(argument.star for argument in call.args):
        raise _UnclearError("stars")
    positional = sum(argument.keyword is None for argument in call.args)
    if positional > BEFORE.get(one.op_type, READER):
        raise _UnclearError("positional")
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
            raise _UnclearError("expression")
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
    lines = difflib.unified_diff(_lines(before), _lines(after), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    """Lines as git counts them; Python's own would also end at a form feed."""
    *complete, rest = text.split("\n")
    return [f"{line}\n" for line in complete] + ([rest] if rest else [])
