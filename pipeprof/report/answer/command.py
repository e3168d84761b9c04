"""Commands that are complete: the run's own path, and the recorded command where one is run again."""

from __future__ import annotations

import shlex
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from pipeprof import escape
from pipeprof.collect.probe.redact import LEFT_OUT

ANY_COMMAND = ("python", "your_training.py")  # stands for the user's own
MOST_COMMAND = 1 << 15  # characters; a longer one is not shown to be pasted


def own(run: dict[str, Any], verb: str, *words: str) -> str:
    """`pipeprof VERB RUN WORDS`."""
    return shlex.join(["pipeprof", verb, escape.as_argument(run["path"]), *words])


def again(run: dict[str, Any], words: list[str]) -> str:
    """The words, then the recorded command; first into the folder in which it was started, if that is another one."""
    text = shlex.join(["pipeprof", *words, "--", *run["command"]])
    return f"cd {shlex.quote(run['workdir'])} && {text}" if _elsewhere(run) else text


def after_change(run: dict[str, Any], *words: str) -> tuple[str, str]:
    """The same command again, beside the old code where the repository is known; `words` for a run without one.

    With what it does.
    """
    if not is_repeatable(run):
        return own(run, *words), "lists the operators" if words[0] == "ops" else "shows who used the CPU"
    if run["git"]:
        return again(run, ["ab", "--base-ref", "HEAD"]), "after the change: compares it with the committed code"
    command = again(run, ["collect", "-o", new_run(run, "-changed")])
    return command, "after the change: records it again, for `pipeprof compare`"


def with_lines(run: dict[str, Any], *words: str) -> tuple[str, str]:
    """The same command again with the lines of what it compiles; `words` as after_change. With what it does."""
    if not is_repeatable(run):
        return after_change(run, *words)
    command = again(run, ["collect", "--graph-lines", "-o", new_run(run, "-lines")])
    return command, "records the lines in it, as far as MindSpore knows them"


def on_a_quiet_machine(run: dict[str, Any]) -> tuple[str, str]:
    """The same command again, into a run of its own; with what it does."""
    return again(run, ["collect", "-o", new_run(run, "-quiet")]), "records it again, when nothing else runs"


def path_from_there(run: dict[str, Any], suffix: str = "") -> str:
    """The run's path, with something behind it, as it must be written in the folder of `again`; or its URL."""
    path: str = run["path"] + suffix
    return str(Path(path).resolve()) if _elsewhere(run) and "://" not in path else escape.as_argument(path)


def new_run(run: dict[str, Any], suffix: str = "") -> str:
    """As `path_from_there`, for a run to be recorded: one from a URL gives it its name, in the folder of `again`."""
    if "://" not in run["path"]:
        return path_from_there(run, suffix)
    return escape.as_argument((PurePosixPath(urlsplit(run["path"]).path).name or "run") + suffix)


def is_repeatable(run: dict[str, Any]) -> bool:
    """Whether there is a command that could be run again."""
    length = sum(map(len, run["command"]))
    return 0 < length <= MOST_COMMAND and run["source"] == "collect"


def verification(run: dict[str, Any], verify: str) -> str:
    """A suggestion's check (`pipeprof whatif RUN --op 3 --workers 4`) with the run and the command in it.

    An import knows no command, and what starts the training needs one: it gets one that says so.
    """
    words = [path_from_there(run) if word == "RUN" else word for word in shlex.split(verify)[1:]]
    own_command = [] if words[:1] != ["whatif"] else ["--", *ANY_COMMAND]
    return again(run, words) if is_repeatable(run) else shlex.join(["pipeprof", *words, *own_command])


def pasteable(command: str) -> list[str]:
    """The words of a command as a shell takes them, with nothing in them that cannot be seen."""
    words = shlex.split(command)
    chained = 2 if words[:1] == ["cd"] and words[2:3] == ["&&"] else -1
    return [word if at == chained else escape.shell_word(word) for at, word in enumerate(words)]


def pasted(command: str) -> list[str]:
    """The command on one line, and behind it what it lacks."""
    return [" ".join(pasteable(command)), *filter(None, [left_out(command)])]


def left_out(command: str) -> str:
    """A comment for the shell that names what was not recorded and must be put in again; empty when nothing is."""
    words = shlex.split(command)
    names = [_name(word, before) for before, word in pairwise(["", *words]) if LEFT_OUT in word]
    return f"# put in what was left out ({LEFT_OUT}): {', '.join(dict.fromkeys(names))}" if names else ""


def _name(word: str, before: str) -> str:
    """The option or variable whose value is left out; else the word itself."""
    if word == LEFT_OUT and before.startswith("-"):
        return before
    return word.partition("=")[0] if word.endswith(f"={LEFT_OUT}") else escape.line(word)


def without_command(command: str) -> str:
    """`pipeprof whatif` takes the recorded command by itself; other verbs need it."""
    is_recorded = "pipeprof whatif " in command and not command.endswith(shlex.join(["--", *ANY_COMMAND]))
    return command.partition(" -- ")[0] if is_recorded else ""


def _elsewhere(run: dict[str, Any]) -> bool:
    workdir = run["workdir"] or ""
    return bool(workdir) and Path(workdir).is_dir() and Path(workdir).resolve() != Path.cwd()
