"""The result of `pipeprof tune` for people: what is proven, what was tried, and the paragraph for a pull request."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from pipeprof.escape import markdown_code
from pipeprof.report.answer import interruptions
from pipeprof.report.answer.shape import capital
from pipeprof.report.document import Document
from pipeprof.report.pictures.path import Step, path_of
from pipeprof.report.sections import Block, Section
from pipeprof.report.sections.storage import CHANGES, MEASURED_BEFORE, mindrecord, operator
from pipeprof.report.words import speedup, training
from pipeprof.units import NS_PER_S, format_above, format_bytes, format_count, format_ns, format_ratio
from pipeprof.verdict.account import Contention, contention_in
from pipeprof.verdict.storage import CACHE_BYTES

Content = Mapping[str, Any]

MOST_NOT_WORTH = 8
FAR = 10.0  # times its low end: an interval that says nothing
ENDS = {
    "loop_limits": "the training itself limits now: its data pipeline is fast enough",
    "other_iterator": "the training now waits longer for another of its iterators: apply the change, and tune again",
    "nothing_left": "every allowed setting that may help was tried",
    "trials": "as many changes were tried as in one tuning, and there are more",
    "unrecorded": "with what was accepted the training could not be recorded, so nothing more was tried",
    "budget": "the time left was too short for another trial and the proof",
}
NEEDS = {"memory": "memory", "cores": "CPU time of a step"}
SAVING = {
    "accepted": "needs less and is as fast, accepted",
    "no_gain": "needs no less",
    "hopeless": "more pairs could not show that it needs less and is as fast",
    "unchecked": "needs less, but its batches cannot be compared",
    "unproven": "needs less, but the whole set with it was not proven",
}
TRIALS = {
    "accepted": "faster, accepted",
    "slower": "slower",
    "no_gain": "no gain",
    "hopeless": "no gain, and more pairs could not show one",
    "undecided": "the pairs do not decide",
    "other_data": "other batches: it changes what the network sees",
    "unchecked": "faster, but its batches cannot be compared",
    "failed": "failed",
    "unproven": "faster, but the whole set with it was not proven",
}
REASONED = ("accepted", "other_data", "unchecked", "failed", "unproven")  # where what was found of the batches matters
NOTHING_PROVEN = {
    "lacks_time": "undecided: nothing was proven in the time",
    "undecided": "undecided: the runs vary too much to tell whether a change helps; nothing is recommended",
    "failed": "not judged: every change that was tried failed",
    "not_judged": "not judged: what may be better hands out batches that cannot be compared",
}
BATCHES = {
    "same": "the first batches are the same, in the same order",
    "permuted": "the rows of whole epochs are the same, in another order",
    "random": "random operations draw other numbers, and all else in the epochs is the same",
    "other": "the batches are not the same",
    "not_reproducible": "two unchanged runs hand out different batches, so changed ones cannot be compared",
    "not_seen": "too few batches were seen, so they cannot be compared",
}
BY_HAND = {
    "same_line": "one line makes several such operators",
    "outside": "its file is not below the working directory",
    "library": "an installed library makes it: `collect --apply` changes it all the same",
    "rest": "only together with the operator's other changes",
    "no_libcst": "the package libcst is missing: pip install 'pipeprof[tune]'",
    "unreadable": "its file cannot be read",
    "moves_lines": "the edit would move other lines",
    "no_call": "no such call was found there",
    "several_calls": "several calls stand there",
    "stars": "the call takes * or ** arguments",
    "positional": "the argument may be given by its place",
    "expression": "the argument is computed",
    "on_the_way": "what becomes of it is computed on the way: look at what the next recording says",
    "shared_argument": "the argument sets, or may set, more than that operator",
    "global": "it holds for every dataset that is made after it",
    "environment": "a variable of the command",
    "order": "the calls are not one after the other",
    "context": "in front of the first graph",
    "command": "in front of the command",
    "cache": "rows are kept by what makes them: a dict in the source, by index",
}
SAID = {"same_line": "; this one runs `{}`", "expression": ": `{}`"}  # of its detail


class Prediction(msgspec.Struct, frozen=True):
    """The interval that a change was predicted to bring, as ratios of speeds."""

    low: float | None = None
    high: float | None = None
    learned: bool = False


class Trial(msgspec.Struct, frozen=True):
    """A trial as the result has it."""

    what: list[dict[str, Any]]
    prediction: Prediction
    verdict: str
    a: list[float] = []
    saved: float | None = None
    interval: tuple[float, float] | None = None
    ratio: float | None = None
    batches: str = "not_seen"
    predicted_wrong: bool = False
    stopped: str | None = None
    error: str = ""


def trials_of(content: Content) -> list[Trial]:
    """In the order in which they were made."""
    return msgspec.convert(content["trials"], list[Trial])


def document(content: Content, written: Sequence[str] = (), folder: str = "") -> Document:
    """The result; `written` are the files that were put into the `folder`."""
    first, *more = _answer(content)
    failed = content.get("failed_runs", ())
    more += [f"{_failed(failed)} (the last: {failed[-1]['error']})"] if failed else []
    more.append(f"command: {shlex.join(content['command'])}")
    sections = [
        Section("", notes=more, picture=lambda: path_of(_path(content))),
        *_change(content),
        _trials(content),
        _permuting(content),
        _not_worth(content),
    ]
    by_hand = content["seen"][-1] if content["seen"] and content["goal"] == "time" else {}  # all of it is for speed
    draws = any(one.batches in ("random", "not_reproducible", "other") for one in trials_of(content))
    sections.append(_by_hand(by_hand, ended_early=bool(content.get("stop_after")), draws=draws))
    sections += [mindrecord(by_hand.get("small_files")), *_handed_over(content, written, folder)]
    if folder and content["seen"]:
        last = shlex.quote(f"{folder}/look-{len(content['seen']) - 1}")
        said = f"What limits now, also outside of the data pipeline: pipeprof report {last}"
        sections.append(Section("", notes=[said]))
    return Document(first, sections)


def pull_request(content: Content) -> str:
    """A paragraph with figures for who reviews the change, as Markdown; "" when nothing is proven."""
    if content["verdict"] != "proven":
        return ""
    final, trials = content["final"], _came(content, "accepted")
    changes = "\n".join(f"- {markdown_code(speedup.change(item))}" for item in _in_all(trials, content))
    steps = f"{_mean(final['a']):.1f} to {_mean(final['b']):.1f} steps/s"
    command = markdown_code(shlex.join(content["command"]))
    part = f", each ended after {content['stop_after']:,} training steps" if content.get("stop_after") else ""
    pairs = format_count(len(final["a"]), "pair")
    left = "\n".join(f"- {markdown_code(_place(one))}" for one in (content["patch"] or {}).get("by_hand", ()))
    rest = f"Not in the diff, but needed for that figure:\n\n{left}\n\n" if left else ""
    shared = ", ".join(map(markdown_code, (content["patch"] or {}).get("shared", ())))
    rest += f"The diff changes other pipelines, too, which were not compared: {shared}.\n\n" if shared else ""
    proof = ("final", len(trials))
    failed = _failed([one for one in content.get("failed_runs", ()) if (one["folder"], one["steps"]) == proof])
    return (
        f"Settings of the data pipeline: {_figure(content)} with 95 % confidence.\n\n{changes}\n\n{rest}"
        f"Measured by `pipeprof tune` with {pairs} of interleaved runs of {command}{part}: {steps}{_needs(content)}; "
        f"p = {_p_value(final)}. {capital(_checked(final))}.{f' {capital(failed)}.' if failed else ''}\n"
    )


def _failed(runs: Sequence[Content]) -> str:
    """`runs that failed: 1 unchanged, 2 changed`; "" for none."""
    if not runs:
        return ""
    sides = [one["side"] for one in runs]
    return f"runs that failed: {sides.count('a')} unchanged, {sides.count('b')} changed"


def _place(by_hand: Content) -> str:
    """`train.py:9: num_parallel_workers=2`; what has no place stands alone."""
    return f"{by_hand['place'] + ': ' if by_hand['place'] else ''}{by_hand['what']}"


def _in_all(trials: Sequence[Trial], content: Content) -> list[dict[str, Any]]:
    """What the accepted trials changed together, of the whole set: from the first value to the last."""
    changed: dict[Any, dict[str, Any]] = {}
    for item in (item for one in trials for item in one.what if _holds(item, content)):
        where = item["op"] if item["op_id"] is None else item.get("node")
        alone = {"maps_after", "cache"} & {*item["change"]}  # whose words leave no room for others
        own = changed.setdefault((where, *alone), {**item, "change": {}})["change"]
        for name, (old, new) in item["change"].items():
            everywhere = [one["change"] for one in changed.values() if name == "prefetch" and name in one["change"]]
            earlier = everywhere[0] if everywhere else own  # it is of all operators
            earlier[name] = [earlier.get(name, (old,))[0], new]
            if earlier[name][0] == new != old:  # it is as it was in the beginning
                del earlier[name]
    return [item for item in changed.values() if item["change"]]


def _holds(item: Mapping[str, Any], content: Content) -> bool:
    """Whether an accepted change is part of the whole set: what stands behind a cache accepted later is not."""
    if item["op_id"] is None or "prefetch" in item["change"]:
        return True
    return item.get("node") in {one["node"] for one in content["settings"]["operators"]}


def _answer(content: Content) -> list[str]:
    final, verdict, less = content["final"], content["verdict"], NEEDS.get(content["goal"])
    took = format_ns(content["spent_s"] * NS_PER_S)
    ended = f"{ENDS.get(content['ended'], '')} ({took})"
    if content.get("stop_after"):
        ended += f"; each run of a pair ended after {content['stop_after']:,} training steps"
    if content["lacks_time"]:
        ended += f"; the same command with --budget {math.ceil(content['next_budget_s'] / 60)}m or more goes on"
    if verdict == "nothing_to_gain":
        brings = f"saves {less} at the same speed" if less else "makes this training faster"
        brings += " with the same batches" if _came(content, "other_data") or _left_out(content) else ""
        return [f"nothing to {'save' if less else 'gain'}: no change of the data pipeline's settings {brings}", ended]
    if final is None or (verdict == "undecided" and not final["a"]):
        return [_nothing_proven(content), ended]
    gain = _figure(content)
    pairs = f"{format_count(len(final['a']), 'pair')} of runs, in turn: {_rates(final)}{_needs(content)}"
    if verdict == "proven":
        head = f"proven: {gain}"
    elif verdict == "not_faster":
        head = f"not {'better' if less else 'faster'}: {gain}; nothing is recommended"
    elif verdict == "not_judged":
        head = f"not judged: {final['error'] or _checked(final)}; nothing is recommended"
        unknown = final["batches"] in ("not_reproducible", "not_seen") and not final["error"]
        kept = any(_changes(one.what, "cache", "maps_after") for one in _came(content, "accepted"))
        head += "; --allow-unchecked takes it" if unknown and not kept and not content.get("allow_unchecked") else ""
    else:
        head = f"undecided: {gain} is not proven; nothing is recommended"
        if final["looks"] and final["p_value"] is not None and 1 - final["p_value"] > final["alpha"]:
            p_value, needed = format_above(1 - final["p_value"], final["alpha"])
            pairs += f"; p {'=' if p_value[0].isdigit() else 'is'} {p_value}, a proof needs {needed} or less"
    batches = "" if final["error"] or verdict == "not_judged" else _checked(final)
    return [head, *filter(None, [pairs if final["a"] else "", batches]), ended]


def _came(content: Content, verdict: str) -> list[Trial]:
    """The trials that came out so."""
    return [one for one in trials_of(content) if one.verdict == verdict]


def _nothing_proven(content: Content) -> str:
    """The first line where the whole set was not timed."""
    unchecked = _came(content, "unchecked")
    helped = [one for one in unchecked if not _changes(one.what, "cache", "maps_after")]
    helps = helped and not content.get("allow_unchecked")
    if content["verdict"] == "undecided":
        text = NOTHING_PROVEN["lacks_time" if content["lacks_time"] else "undecided"]
        return text + ("; --allow-unchecked takes what cannot be compared" if helps else "")
    if not unchecked and content["trials"]:
        return NOTHING_PROVEN["failed"]
    return NOTHING_PROVEN["not_judged"] + ("; --allow-unchecked takes it" if helps else "")


def _changes(what: Sequence[Mapping[str, Any]], *names: str) -> bool:
    """Whether one of these settings is among what a trial changes."""
    return any({*names} & {*item["change"]} for item in what)


def _checked(final: Mapping[str, Any]) -> str:
    """What is said of its batches."""
    return str(final.get("why") or BATCHES[final["batches"]])


def _figure(content: Content) -> str:
    """`x0.62 (0.60 to 0.65) the memory of the original, at x1.01 (0.99 to 1.02) its speed`; else only the speed."""
    final, less = content["final"], NEEDS.get(content["goal"])
    speed = _ratio((final["ratio"], final["low"], final["high"]))
    if not less:
        return f"{speed} the speed of the original{_since(content)}"
    return f"{_ratio(final['need'] or (None, None, None))} the {less} of the original, at {speed} its speed"


def _since(content: Content) -> str:
    """What is said of a cache: the first epoch, which fills it, is not in the figures."""
    accepted = [item for one in _came(content, "accepted") for item in one.what]
    return " from the second epoch on" if _changes(accepted, "cache") else ""


def _ratio(estimate: Sequence[float | None]) -> str:
    ratio, low, high = estimate
    between = "" if low is None or high is None else f" ({low:.2f} to {high:.2f})"
    return "no figure for" if ratio is None else f"x{ratio:.2f}{between}"


def _needs(content: Content) -> str:
    """`, 812 MiB -> 503 MiB`, or CPU time of a step; "" where speed is the goal."""
    final, goal = content["final"], content["goal"]
    if goal not in NEEDS or not final["need_a"]:
        return ""
    before, after = (
        format_bytes(mean) if goal == "memory" else format_ns(mean * NS_PER_S)
        for mean in (_mean(final["need_a"]), _mean(final["need_b"]))
    )
    return f", {NEEDS[goal]} {before} -> {after}"


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


def _change(content: Content) -> list[Section]:
    """The patch."""
    if content["patch"] is None:
        return []
    diff = content["patch"]["diff"].splitlines()
    none = [] if diff else ["no line could be changed safely"]
    return [Section("", strong=["Change"], notes=none, code=diff, language="diff")]


def _trials(content: Content) -> Section:
    """Each trial: what, what was predicted, what came out."""
    trials, need = trials_of(content), NEEDS.get(content["goal"])
    if not trials:
        return Section("", notes=["Nothing was tried"])
    head = ["change", "predicted", "measured", *([need] if need else []), "came out"]
    return Section("Tried, in this order", blocks=[Block(head, [_trial(one, need) for one in trials])])


def _trial(one: Trial, need: str | None) -> list[str]:
    wrong = ", outside the prediction" if one.predicted_wrong else ""
    saved = [] if need is None else ["-" if one.saved is None else f"x{1 / one.saved:.2f}"]
    came = (SAVING if need else {}).get(one.verdict, TRIALS[one.verdict])
    if one.verdict == "unchecked" and one.ratio is None:
        came = "its batches cannot be compared"
    if one.stopped == "budget" and one.verdict == "undecided":
        came = "the time was over before the pairs decided"
    what = speedup.changes(one.what)
    why = f": {one.error}" if one.error and one.verdict in REASONED else ""
    return [what, _predicted(one.prediction), f"{_measured(one)}{wrong}", *saved, f"{came}{why}"]


LOOKS = {"accepted": "good", "failed": "bad", "slower": "bad", "other_data": "bad"}


def _path(content: Content) -> list[Step]:
    """The trials, and the whole set behind them."""
    need, final = NEEDS.get(content["goal"]), content["final"]
    steps = []
    for number, one in enumerate(trials_of(content), 1):
        what, predicted, *_, came = _trial(one, need)
        low, high = one.prediction.low, one.prediction.high
        steps.append(Step(
            f"{number}. {what}", f"predicted {predicted}", LOOKS.get(one.verdict, "low"), f"{capital(came)}:",
            None if low is None or high is None else (low, high),
            None if one.ratio is None else (one.ratio, *(one.interval or [one.ratio] * 2)),
        ))  # fmt: skip
    if final is not None and final["ratio"] is not None:
        proven, ends = content["verdict"] == "proven", (final["low"], final["high"])
        measured = (final["ratio"], *(final["ratio"] if end is None else end for end in ends))
        about = f"{_figure(content)}, {_rates(final)}"
        steps.append(Step("All that were accepted, together", about, "good" if proven else "low",
                          "Proven:" if proven else "Not proven:", None, measured))  # fmt: skip
    return steps


def _predicted(prediction: Prediction) -> str:
    if prediction.low is None or prediction.high is None:
        return "no prediction"
    learned = " (corrected by an earlier trial)" if prediction.learned else ""
    return f"x{prediction.low:.2f} to x{prediction.high:.2f}{learned}"


def _measured(one: Trial) -> str:
    if one.ratio is None:
        return "not measured"
    low, high = one.interval or (0.0, 0.0)
    between = f" ({low:.2f} to {high:.2f})" if high <= FAR * low else ""  # of two pairs that differ it may be 0 to 900
    return f"x{one.ratio:.2f}{between} in {format_count(len(one.a), 'pair')}"


def _left_out(content: Content) -> list[Any]:
    """Candidates that were left out, since they may change the order of the rows."""
    return content["seen"][-1].get("permuting", []) if content["seen"] and not content.get("allow_order") else []


def _permuting(content: Content) -> Section:
    """How many candidates were left out for the order of the rows, and what more may be allowed."""
    permuting = len(_left_out(content))
    said = [f"--allow-order would allow {permuting} more: the same rows, in another order"] if permuting else []
    late = (content["final"] or {}).get("batches") in ("other", "not_reproducible")
    differ = late or _came(content, "other_data") or _came(content, "unchecked")
    if not content.get("allow_random") and differ:
        said.append("if random crops, flips or the like make the batches differ: --allow-random compares all but those")
    return Section("", notes=said)


def _not_worth(content: Content) -> Section:
    """What the last recording says is not worth a trial."""
    not_worth = content["seen"][-1]["not_worth"] if content["seen"] else []
    lines = []
    for one in not_worth[:MOST_NOT_WORTH]:
        figure = "" if one["ratio"] is None else f" (x{one['ratio']:.2f})"
        lines.append(f"{speedup.changes(one['what'])}{figure}")
    more = len(not_worth) - MOST_NOT_WORTH
    lines += [f"and {more} more: --format json"] if more > 0 else []
    least = "be slower" if content["goal"] in NEEDS else "bring less than 2 %"
    return Section(f"Not tried: predicted to {least}", notes=lines)


def _by_hand(seen: Content, *, ended_early: bool, draws: bool) -> Section:
    """What it promises of changes that no setting makes: caches, and parts of the run around the steps.

    `draws`: the trials have shown that the rows hold random numbers.
    """
    caches = [one for one in seen.get("caches", []) if not one.get("tried")]
    lines = [_cache(one) for one in caches]
    if draws and any(one["changes"] is None for one in caches):
        lines.append(
            "(rows seem to hold random numbers: a cache behind where they are drawn gives every epoch the same ones)"
        )
    if any(one.get("could_be") for one in caches):
        whole = ", with --steps all" if ended_early else ""
        lines.append(f"(caches are tried where the command trains for two epochs or more{whole})")
    lines += [_iterated(one) for one in seen.get("iterated", [])]
    if seen.get("process"):
        lines.append(_process(contention_in(seen["process"])))
    for one in seen.get("outside", []):
        advice = training.advice(one)
        if advice and 0 < one["share"] < 1:
            least = f"at most x{1 / (1 - one['share']):.2f} for the whole run"
            lines.append(f"{training.name(one)} ({format_ratio(one['share'])} of the run, {least}): {advice}")
    return Section("Not tried: to be changed in the script, by hand", notes=lines)


def _iterated(one: Mapping[str, Any]) -> str:
    site = f" ({one['site']})" if one["site"] else ""
    known = one["low"] is not None and one["high"] is not None
    gain = f"predicted x{one['low']:.2f} to x{one['high']:.2f}" if known else "no prediction"
    change = f"`__getitem__`, `__len__` and {one['workers']} workers in threads"
    return (
        f"{operator(one)}{site}, a generator or an iterator, for which MindSpore uses one worker: with {change} {gain}"
    )


def _process(contention: Contention) -> str:
    """A process of the job that takes CPU, and the most that its end brings: threads that are ready get its cores."""
    site = f", started at {contention.site}," if contention.site else ""
    verb = "takes" if contention.processes < 2 else "take"
    effect = "the interpreter's lock" if contention.is_thread else "none is idle"
    cause = f"{interruptions.label(contention)}{site} {verb} {contention.cores:.1f} cores, and {effect}"
    if contention.is_thread:
        return f"{cause}: no prediction of what its end brings"
    waits, own = contention.wait_cores, contention.training_cores
    if waits is None or not own:
        return f"{cause}: no prediction of what its end brings"
    return f"{cause}: at most x{1 + min(waits, contention.cores) / own:.2f} without it"


def _cache(one: Mapping[str, Any]) -> str:
    size = "size not known" if one["bytes"] is None else format_bytes(one["bytes"])
    site = f" ({one['site']})" if one["site"] else ""
    # What comes behind it and was not timed may limit as well.
    said = (
        MEASURED_BEFORE.format(one["trial"]) if one.get("trial") else "at most" if one.get("untimed") else "predicted"
    )
    gains = f"{said} x{one['ratio']:.2f} in memory"
    if one["disk_ratio"] is not None:
        gains += f", x{one['disk_ratio']:.2f} on the same storage"
    changed = f"; changes the data: {CHANGES[one['changes']]}" if one["changes"] else ""
    if (one["bytes"] or 0) > CACHE_BYTES:
        changed += f"; more than the {format_bytes(CACHE_BYTES)} that are tried"
    return f"cache after {operator(one)}{site}, {size}: {gains}{changed}"


def _handed_over(content: Content, written: Sequence[str], folder: str) -> list[Section]:
    """What the patch cannot change, and where it was written."""
    patch = content["patch"]
    if patch is None:
        return []
    by_hand = [
        f"{_place(one)} ({BY_HAND[one['why']]}{SAID[one['why']].format(one['detail']) if one.get('detail') else ''})"
        for one in patch["by_hand"]
    ]
    notes = [f"note: {place} makes operators of other pipelines, too" for place in patch["shared"]]
    if content.get("stop_after") and patch["diff"]:
        notes.append("note: each run ended early, so pipelines that come later and share these lines were not seen")
    if any(one.get("max_rowsize") for one in content["settings"].get("operators", ())):
        notes.append("note: MindSpore 2.8 and later warn of max_rowsize, and will remove it in a future version")
    notes += [f"Written into {folder}: {', '.join(written)}"] if written else []
    return [Section("To change by hand", notes=by_hand), Section("", notes=notes)]
