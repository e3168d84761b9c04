"""The result of `pipeprof tune` for people: what is proven, what was tried, and the paragraph for a pull request."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from pipeprof import escape
from pipeprof.report.wrap import wrap_text
from pipeprof.units import NS_PER_S, format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Content = Mapping[str, Any]

WIDTH = 80
MOST_NOT_WORTH = 8
ENDS = {
    "loop_limits": "the training itself limits now: its data pipeline is fast enough",
    "nothing_left": "no other setting is predicted to bring 2 %, or was not tried yet",
    "budget": "the time was over: a longer --budget may find more",
}
TRIALS = {
    "accepted": "faster, accepted",
    "slower": "slower",
    "no_gain": "no gain",
    "undecided": "the pairs do not decide",
    "other_data": "other batches: it changes what the network sees",
    "unchecked": "faster, but its batches cannot be compared",
    "failed": "failed",
}
BATCHES = {
    "same": "the first batches are the same, in the same order",
    "other": "the first batches are not the same",
    "not_reproducible": "two unchanged runs hand out different batches, so changed ones cannot be compared",
    "not_seen": "no batches were seen, so they cannot be compared",
}
BY_HAND = {
    "same_line": "one line makes several operators",
    "outside": "its file is not below the working directory",
    "no_libcst": "the package libcst is missing: pip install 'pipeprof[tune]'",
    "unreadable": "its file cannot be read",
    "moves_lines": "the edit would move other lines",
    "no_call": "no such call was found there",
    "several_calls": "several calls stand there",
    "stars": "the call takes * or ** arguments",
    "positional": "the argument may be given by its place",
    "expression": "the argument is computed",
    "global": "it holds for every dataset that is made after it",
    "environment": "a variable of the command",
    "order": "the calls are not one after the other",
}


def text(content: Content, written: Sequence[str] = (), folder: str = "") -> str:
    """The result, at most 80 columns wide."""
    lines = [*_answer(content), "", *_trials(content), *_not_worth(content), *_handed_over(content, written, folder)]
    return "".join(f"{part}\n" for line in lines for part in wrap_text(escape.line(line), WIDTH))


def pull_request(content: Content) -> str:
    """A paragraph with figures for who reviews the change, as Markdown; "" when nothing is proven."""
    if content["verdict"] != "proven":
        return ""
    final, trials = content["final"], [one for one in content["trials"] if one["verdict"] == "accepted"]
    changes = "\n".join(f"- {_code(_what(item))}" for one in trials for item in one["what"])
    steps = f"{_mean(final['a']):.1f} to {_mean(final['b']):.1f} steps/s"
    command = _code(shlex.join(content["command"]))
    checked = BATCHES[final["batches"]]
    pairs = format_count(len(final["a"]), "pair")
    return (
        f"Settings of the data pipeline: x{final['ratio']:.2f} the speed ({final['low']:.2f} to {final['high']:.2f} "
        f"with 95 % confidence).\n\n{changes}\n\n"
        f"Measured by `pipeprof tune` with {pairs} of interleaved runs of {command}: {steps}; "
        f"p = {_p_value(final)}. Of each run {checked}.\n"
    )


def _answer(content: Content) -> list[str]:
    final, verdict = content["final"], content["verdict"]
    took = format_ns(content["spent_s"] * NS_PER_S)
    ended = f"  {ENDS.get(content['ended'], '')} ({took})"
    if verdict == "nothing_to_gain":
        return ["nothing to gain: no change of the data pipeline's settings makes this training faster", ended]
    if final is None:
        return ["undecided: nothing was proven in the time", ended]
    told = _figure(final)
    pairs = f"  {format_count(len(final['a']), 'pair')} of runs, in turn: {_rates(final)}"
    if verdict == "proven":
        head = f"proven: {told} the speed of the original"
    elif verdict == "not_faster":
        head = f"not faster: {told} the speed of the original; nothing is recommended"
    elif verdict == "not_judged":
        why = final["error"] or BATCHES[final["batches"]]
        head = f"not judged: {why}; nothing is recommended"
    else:
        head = f"undecided: {told} the speed of the original is not proven; nothing is recommended"
    return [head, pairs, f"  {BATCHES[final['batches']]}", ended]


def _figure(final: Mapping[str, Any]) -> str:
    if final["ratio"] is None:
        return "no figure for"
    between = "" if final["low"] is None else f" ({final['low']:.2f} to {final['high']:.2f})"
    return f"x{final['ratio']:.2f}{between}"


def _rates(final: Mapping[str, Any]) -> str:
    if not final["a"] or not final["b"]:
        return "none"
    return f"{_mean(final['a']):.1f} -> {_mean(final['b']):.1f} steps/s"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _p_value(final: Mapping[str, Any]) -> str:
    """One-sided, of "better": the gate's is that of "worse"."""
    value = final["p_value"]
    return "-" if value is None else f"{max(1 - value, 1e-6):.2g}"


def _trials(content: Content) -> list[str]:
    """Each trial: what, what was predicted, what came out."""
    lines = ["Tried, in this order"] if content["trials"] else ["Nothing was tried"]
    for one in content["trials"]:
        lines.append(f"  {'; '.join(_what(item) for item in one['what'])}")
        wrong = ", outside the prediction" if one["predicted_wrong"] else ""
        lines.append(f"    predicted {_predicted(one['prediction'])}; measured {_measured(one)}{wrong}")
        lines.append(f"    {TRIALS[one['verdict']]}{': ' + one['error'] if one['error'] else ''}")
    return lines


def _what(item: Mapping[str, Any]) -> str:
    changes = ", ".join(f"{name} {_value(old)} -> {_value(new)}" for name, (old, new) in item["change"].items())
    named = f" `{item['name']}`" if item["name"] else ""
    moved = item["change"].get("maps_after")
    if moved is not None:
        changes = (
            "in front of the map that feeds it" if moved[1] == 1 else f"in front of the {moved[1]} maps that feed it"
        )
    return f"{item['op']}{named}: {changes}"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "unset" if value is None else str(value)


def _predicted(prediction: Mapping[str, Any]) -> str:
    if prediction["low"] is None or prediction["high"] is None:
        return "nothing"
    return f"x{prediction['low']:.2f} to x{prediction['high']:.2f}"


def _measured(one: Mapping[str, Any]) -> str:
    if one["ratio"] is None:
        return "nothing"
    between = "" if one["interval"] is None else f" ({one['interval'][0]:.2f} to {one['interval'][1]:.2f})"
    return f"x{one['ratio']:.2f}{between} in {format_count(len(one['a']), 'pair')}"


def _not_worth(content: Content) -> list[str]:
    """What the last recording says is not worth a trial."""
    found = content["seen"][-1]["not_worth"] if content["seen"] else []
    if not found:
        return []
    lines = ["", "Not tried: predicted to bring less than 2 %"]
    for one in found[:MOST_NOT_WORTH]:
        figure = "" if one["ratio"] is None else f" (x{one['ratio']:.2f})"
        lines.append(f"  {'; '.join(_what(item) for item in one['what'])}{figure}")
    more = len(found) - MOST_NOT_WORTH
    return [*lines, f"  and {more} more: --format json"] if more > 0 else lines


def _handed_over(content: Content, written: Sequence[str], folder: str) -> list[str]:
    patch = content["patch"]
    if patch is None:
        return []
    lines = ["", "Change"]
    lines += [f"  {line}" for line in patch["diff"].splitlines()] or ["  no line could be changed safely"]
    if patch["by_hand"]:
        lines += ["", "To change by hand"]
        for one in patch["by_hand"]:
            place = f"{one['place']}: " if one["place"] else ""
            lines.append(f"  {place}{one['what']} ({BY_HAND[one['why']]})")
    lines += [f"note: {place} makes operators of other pipelines, too" for place in patch["shared"]]
    if written:
        lines += ["", f"Written into {folder}: {', '.join(written)}"]
    return lines


def _code(words: str) -> str:
    """Text as Markdown code, whatever is in it."""
    plain = " ".join(words.split()).replace("`", "'")
    return f"`{plain}`"
