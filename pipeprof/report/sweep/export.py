"""A recommended option set in a form that can be used: variables, or words for the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.escape import command, line, shell_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def export(content: Mapping[str, Any], form: str) -> str:
    """The recommendation of a sweep's result; what the form cannot hold follows as comments.

    env: `export NAME=value` lines for a shell. args: one line of words (comments before it). Without a recommendation,
    or when it is the base: only a comment.
    """
    best = content["recommendation"] or {"name": "base", "options": {}, "reason": "there is no recommendation"}
    reason = f": {best['reason']}" if best.get("reason") else ""
    head = _comments([f"{best['name']}{reason}"])
    options = usable(best)
    env = [f"export {name}={shell_word(str(value))}" for name, value in sorted((options.get("env") or {}).items())]
    args = [command(options["args"])] if options.get("args") else []
    shown, rest = (env, args) if form == "env" else (args, env)
    left = _comments([*rest, *sentences({**options, "env": {}, "args": ()})])
    return "\n".join([*head, *left, *shown]) + "\n"


def usable(best: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a recommendation, with the folder of what was prepared for it in place of `{artefacts}`."""
    folder = best.get("artefacts")
    return dict(best["options"] if folder is None else _placed(best["options"], folder))


def _placed(value: Any, folder: str) -> Any:
    if isinstance(value, str):
        return value.replace("{artefacts}", folder)
    if isinstance(value, dict):
        return {name: _placed(one, folder) for name, one in value.items()}
    return [_placed(one, folder) for one in value] if isinstance(value, (list, tuple)) else value


def _comments(texts: Iterable[str]) -> list[str]:
    """Lines that a shell leaves alone, whatever the texts hold: they may be of several lines."""
    return [f"# {line(part)}" for text in texts for part in text.splitlines() or [""]]


def sentences(options: Mapping[str, Any]) -> list[str]:
    """What to set, a line for each kind."""
    lines = []
    lines += [f"first run {command(words)}" for words in options.get("prepare") or ()]
    if options.get("command"):
        lines.append(f"run {command(options['command'])}")
    if options.get("env"):
        lines.append("set " + " ".join(f"{name}={shell_word(str(value))}" for name, value in options["env"].items()))
    if options.get("args"):
        lines.append(f"add {command(options['args'])}")
    change = options.get("dataset")
    if change:
        names = {"workers": "num_parallel_workers", "prefetch": "prefetch size", "processes": "python_multiprocessing"}
        settings = ", ".join(f"{name} = {change[key]}" for key, name in names.items() if key in change)
        lines.append(f"in the script: {change['op']} number {change.get('nth', 1)}: {settings}")
    context = options.get("context")
    if context:
        settings = ", ".join(f"{name} = {value}" for name, value in context.items())
        lines.append(f"in the script, in MindSpore's context: {settings}")
    return lines
