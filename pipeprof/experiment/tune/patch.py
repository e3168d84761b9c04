"""The accepted settings as a change of the user's source: a unified diff, and what is left to change by hand.

An argument is only edited where there is no doubt which one is meant: that of the only call of its kind at the recorded
line, absent or a plain number or truth value there. Where the operator's own call is a library's, or is handed its
value by a function, that is the argument of the user's call of that function. Everything else stays as it was written.

What a tuning found, as its JSON has it, and the files that are handed over.
"""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.errors import MeasureError, PipeprofError
from pipeprof.experiment.runs import json_text, write_json
from pipeprof.experiment.tune.goal import ENOUGH, lacks_time, seconds_for
from pipeprof.experiment.tune.source import (
    BOM,
    Argument,
    UnclearError,
    calls_of,
    keywords_of,
    own_argument,
    read_source,
)
from pipeprof.experiment.tune.trial import is_proven
from pipeprof.units import format_bytes, format_count
from pipeprof.verdict.loader import STAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    import libcst

    from pipeprof.experiment.tune.state import TuneState
    from pipeprof.record.settings_file import OperatorSetting, Settings


# How many positional arguments come before those that are written.
BEFORE = {"MapOp": 3, "BatchOp": 2, "GeneratorOp": 5, "TFReaderOp": 4, "CelebAOp": 1, "CifarOp": 3}
READER = 2  # of any other reader of MindSpore's: none takes its workers before its third argument
LIBRARIES = frozenset({"site-packages", "dist-packages"})  # folders of what is installed, maybe below the script's


@dataclass(frozen=True)
class ByHand:
    """A change that was not written into the source: where, what, and why not, as a code.

    `detail`: what is written there now (expression), or the operator that is meant (same_line); "" for none.
    """

    place: str
    what: str
    why: str
    detail: str = ""


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

    `operators`: all of the pipeline (`node`, `site`, `callers`, `op_type`): a line that makes several of a kind is left
    alone. `other_sites`: lines that make operators of other pipelines, or lead there.
    """
    made = _Edits(settings, workdir, operators)
    for one in settings.operators:
        made.set_arguments(one)
    for one in settings.operators:  # these move lines
        if one.maps_after is not None:
            made.put_batch_first(one, one.maps_after)
    diffs = [_diff(name, read_source(workdir / name), text) for name, text in sorted(made.texts.items())]
    shared = tuple(place for place in dict.fromkeys(made.done) if place in other_sites)
    return Patch("".join(diffs), tuple(dict.fromkeys([*made.by_hand, *_around(settings)])), shared)


def _is_installed(place: str) -> bool:
    return not LIBRARIES.isdisjoint(Path(place).parts)


class _Edits:
    """Texts of files with the settings that could be written into them, the places, and what is left."""

    def __init__(self, settings: Settings, workdir: Path, operators: Sequence[Mapping[str, Any]]) -> None:
        try:
            import libcst  # noqa: F401, PLC0415 - an extra

            from pipeprof.experiment.tune.arguments import Sources  # noqa: PLC0415
        except ImportError:
            self.sources = None
        else:
            self.sources = Sources()
        self.workdir, self.wanted = workdir, {one.node: one for one in settings.operators}
        self.rows = {row["node"]: row for row in operators if row.get("node") is not None}
        for one in settings.operators:
            if one.of_loader:  # it stands for the others
                self.rows = {node: row for node, row in self.rows.items() if node == one.node}
        changed = Counter((one.place, one.op_type) for one in settings.operators)
        self.at_line = changed | Counter((row["site"], row["op_type"]) for row in operators)
        self.texts: dict[str, str] = {}
        self.by_hand: list[ByHand] = []
        self.done: list[str] = []

    def set_arguments(self, one: OperatorSetting) -> None:
        """Write all arguments of an operator, or none."""
        before, tried = dict(self.texts), []
        for setting, keyword in keywords_of(one.op_type).items():
            value = getattr(one, setting)
            if value is not None:
                argument, why = self._argument(one, setting)
                if self.sources is not None and self.sources.written(argument) == str(value):
                    continue
                if argument.steps and not why and self._sets_others(argument, setting, value):
                    why = "shared_argument"
                why = why or self._edit(argument.place, partial(_with_value, argument, one.op_type, value))
                tried.append((argument, f"{argument.keyword if argument.steps else keyword}={value}", why))
        if not any(why for *_, why in tried):
            self.done += [argument.place for argument, *_ in tried]
            return
        self.texts = before
        calls: dict[Argument, list[tuple[Argument, str, str]]] = {}
        for one_of in tried:
            calls.setdefault(replace(one_of[0], keyword="", number=None), []).append(one_of)
        for in_call in calls.values():
            argument, _, why = next((each for each in in_call if each[2]), (in_call[0][0], "", "rest"))
            self.by_hand.append(self._left(one, argument, ", ".join(what for _, what, _ in in_call), why))

    def put_batch_first(self, one: OperatorSetting, maps: int) -> None:
        """Write a batch in front of so many maps."""
        why = "same_line" if self.at_line[one.place, one.op_type] > 1 else ""
        why = why or self._edit(one.place, partial(_with_batch_first, place=one.place, maps=maps))
        if why:
            argument = Argument(one.place, calls_of(one.op_type), "")
            shuffle = ".shuffle() and behind it " if self._shuffles(one.node, maps) else ""
            what = f"{shuffle}.batch() in front of {format_count(maps, 'map')}"
            self.by_hand.append(self._left(one, argument, what, why))
        else:
            self.done.append(one.place)

    def _shuffles(self, node: int, maps: int) -> bool:
        """Whether a shuffle stands between a batch and the maps that it goes in front of: it moves along."""
        behind = [self.rows[number]["op_type"] for number in sorted(self.rows) if number > node]
        ends = [number for number, kind in enumerate(behind) if kind == "MapOp"][:maps]
        return bool(ends) and "ShuffleOp" in behind[: ends[-1]]

    def _argument(self, one: OperatorSetting, setting: str) -> tuple[Argument, str]:
        """The argument that sets it, and why it cannot be written, "" where it can."""
        argument, why = own_argument(one.place, one.op_type, setting), "no_libcst"
        if self.sources is not None:
            row = {**self.rows.get(one.node, {}), "site": one.place, "op_type": one.op_type}
            argument, why = self.sources.argument(row, setting)
        if not argument.steps and self.at_line[one.place, one.op_type] > 1:
            return argument, "same_line"
        return argument, why if _own_name(argument.place, self.workdir) else _not_own(argument.place)

    def _sets_others(self, argument: Argument, setting: str, value: object) -> bool:
        """Whether an argument sets operators, too, that are not to have that value."""
        return self.sources is not None and any(
            getattr(self.wanted.get(node), setting, None) != value
            for node, row in self.rows.items()
            if self.sources.may_set(argument, row, setting)
        )

    def _left(self, one: OperatorSetting, argument: Argument, what: str, why: str) -> ByHand:
        """What is to be done by hand, at the line of the user's that is nearest to an argument."""
        lines = [argument.place, *(self.rows.get(one.node, {}).get("callers") or "").splitlines()]
        own = [line for line in lines if _own_name(line, self.workdir)]
        place = next(iter(own or [line for line in lines if not _is_installed(line)]), argument.place)
        if place != argument.place:
            return ByHand(place, f"{what} in the call that leads to {argument.place}", why)
        detail = one.name if why == "same_line" else ""
        if why == "expression" and self.sources is not None:
            detail = self.sources.written(argument)
        return ByHand(place, f"{min(argument.names)}({what})" if argument.steps else what, why, detail)

    def _edit(self, place: str, edit: Callable[[str], str]) -> str:
        """Edit the text of the file that a place is in; returns why not, "" when it was done."""
        name = _own_name(place, self.workdir)
        if not name or self.sources is None:
            return "no_libcst" if name else _not_own(place)
        import libcst  # noqa: PLC0415

        try:
            text = self.texts.get(name) or read_source(self.workdir / name)
            body = text.removeprefix(BOM)  # which libcst would drop
            self.texts[name] = text[: len(text) - len(body)] + edit(body)
        except UnclearError as error:
            return error.why
        except (OSError, ValueError, RecursionError, PipeprofError, libcst.ParserSyntaxError):
            return "unreadable"
        return ""


def _around(settings: Settings) -> list[ByHand]:
    """What is no argument of a call: caches, what holds for all datasets, and what the command runs in."""
    by_hand: list[ByHand] = []
    for one in settings.operators:
        if one.cache is not None:
            what = f"keep the rows behind it in memory ({format_bytes(one.cache)} at most)"
            by_hand.append(ByHand(one.place, what, "cache"))
    if settings.prefetch is not None:
        what = f"mindspore.dataset.config.set_prefetch_size({settings.prefetch})"
        place = settings.site or ""  # a library's own loop is nothing to change
        by_hand.append(ByHand("" if _is_installed(place) else place, what, "global"))
    by_hand += [ByHand("", f"{name}={value}", "environment") for name, value in sorted(settings.environment.items())]
    if settings.runtime_threads is not None:
        what = f"mindspore.set_context(runtime_num_threads={settings.runtime_threads})"
        by_hand.append(ByHand("", what, "context"))
    if settings.cpus is not None:
        by_hand.append(ByHand("", f"taskset -c {settings.cpus}", "command"))
    return by_hand


def _own_name(place: str, workdir: Path) -> str:
    """The file of a place, from the working directory; "" for one outside, and for an installed library's."""
    path = Path(place.rpartition(":")[0]).resolve()
    if not path.is_relative_to(workdir.resolve()) or path == workdir.resolve():
        return ""
    name = path.relative_to(workdir.resolve())
    return "" if LIBRARIES & {*name.parts} else name.as_posix()


def _not_own(place: str) -> str:
    """Why a place is nothing that a patch can change."""
    return "library" if _is_installed(place) else "outside"


def _with_batch_first(text: str, place: str, maps: int) -> str:
    from pipeprof.experiment.tune.order import batch_first  # noqa: PLC0415 - an extra

    return batch_first(text, place, maps)


def _with_value(argument: Argument, op_type: str, value: int, text: str) -> str:
    """The text with an argument changed in its place or added behind the last.

    Raises UnclearError, also where other lines would move.
    """
    import libcst  # noqa: PLC0415
    from libcst import metadata  # noqa: PLC0415

    from pipeprof.experiment.tune.arguments import argument_at, call_at, is_plain  # noqa: PLC0415

    wrapper = metadata.MetadataWrapper(libcst.parse_module(text))
    call = call_at(wrapper, argument.place, argument.names)
    before = argument_at(call, argument)
    is_place_known = argument.steps or op_type in STAGES  # what else a DataLoader is given by its place is not changed
    if not is_place_known and sum(one.keyword is None for one in call.args) > BEFORE.get(op_type, READER):
        raise UnclearError("positional")
    new = libcst.Name(str(value)) if isinstance(value, bool) else libcst.Integer(str(value))
    if before is None:
        after = call.with_changes(args=_appended(call.args, argument.keyword, new))
    elif is_plain(before.value):
        after = call.with_deep_changes(before, value=new)
    else:
        raise UnclearError("expression")
    changed = wrapper.module.deep_replace(call, after)
    code = changed.code if isinstance(changed, libcst.Module) else text
    if text.count("\n") != code.count("\n"):  # recorded places of other calls would no longer hold
        raise UnclearError("moves_lines")
    return code


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


SCHEMA_VERSION = 1
RESULT, SETTINGS, PATCH, PARAGRAPH = "tune.json", "settings.json", "patch.diff", "pull_request.md"
READING_S = 10.0  # that a call which goes on takes before its first run
EXIT = {"proven": 0, "nothing_to_gain": 0, "not_faster": 0, "not_judged": 3, "undecided": 4}


def content_of(state: TuneState, workdir: Path, *, allow_unchecked: bool) -> dict[str, Any]:
    """The result."""
    verdict = _verdict(state, allow_unchecked=allow_unchecked)
    proven = verdict == "proven"
    content: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "verdict": verdict,
        "exit_code": EXIT[verdict],
        "tune": state.tune,
        "command": state.command,
        "goal": state.goal,
        "allow_order": state.allow_order,
        "allow_random": state.allow_random,
        "allow_unchecked": allow_unchecked,
        "stop_after": state.stop_after,
        "started_at": state.started_at,
        "spent_s": round(state.spent_s, 3),
        "ended": state.ended,
        "lacks_time": lacks_time(state) or bool(state.made_again(unchecked=allow_unchecked)),
        "next_budget_s": round(state.spent_s + seconds_for(state, ENOUGH) + READING_S, 3),
        "seen": state.seen,
        "trials": msgspec.to_builtins(state.trials),
        "failed_runs": msgspec.to_builtins(state.failed_runs),
        "rows": [msgspec.to_builtins(one) for one in state.original],
        "final": None if state.final is None else msgspec.to_builtins(state.final),
        "settings": msgspec.to_builtins(state.settings) if proven else None,
        "patch": None,
    }
    if proven:
        others = [site for seen in state.seen for site in seen["other_sites"]]
        operators = [row for seen in state.seen[:1] for row in seen.get("operators", ())]
        content["patch"] = asdict(patch_of(state.settings, workdir, others, operators))
    return content


def write_files(folder: Path, content: dict[str, Any], paragraph: str) -> list[str]:
    """Write the result, and of a proven one its settings, diff and paragraph; returns the names that were written."""
    texts: dict[str, str] = {}
    if content["settings"] is not None:
        texts[SETTINGS] = json_text(content["settings"])
        texts[PATCH] = content["patch"]["diff"]
        texts[PARAGRAPH] = paragraph
    written = [name for name, text in texts.items() if text]
    try:
        for name in (SETTINGS, PATCH, PARAGRAPH):
            (folder / name).unlink(missing_ok=True)
        for name in written:
            with (folder / name).open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
                file.write(texts[name])
    except OSError as error:
        raise MeasureError(f"cannot write into `{folder}`: {error.strerror}", "free some space") from error
    write_json(folder / RESULT, content)
    return written


def _verdict(state: TuneState, *, allow_unchecked: bool) -> str:
    if is_proven(state, allow_unchecked=allow_unchecked):
        return "proven"
    final = state.final
    if final is None:
        came = {trial.verdict for trial in state.trials}
        if state.ended == "budget" or "undecided" in came:
            return "undecided"
        return "not_judged" if "unchecked" in came or came == {"failed"} else "nothing_to_gain"
    so_far = final.verdict != "improved"  # what is no gain needs no comparison
    if final.error or not state.may_take(final.batches, so_far=so_far):
        return "not_judged"
    return "not_faster" if final.verdict in ("unchanged", "regressed") else "undecided"
