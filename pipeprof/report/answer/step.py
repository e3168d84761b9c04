"""The answer where the data is in time, or was not recorded: what limits the step itself, by a replay of it, too.

One training step of a run: the steps that there are, and operators of one step alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.errors import UsageError
from pipeprof.report.answer import command, doubts
from pipeprof.report.answer.shape import (
    MANY_TIMES,
    Answer,
    about,
    at_most,
    capital,
    faster,
    judged_pipeline,
    of_call,
    on_device,
    sentence,
    times,
    unopposed,
)  # fmt: skip
from pipeprof.report.words import causes as words
from pipeprof.report.words import joined, ranges
from pipeprof.report.words.names import PHASES
from pipeprof.report.words.network import place_of
from pipeprof.report.words.training import READY, data_in_time, data_wait, repeated_passes
from pipeprof.report.words.verdict import unknown_gain
from pipeprof.units import format_count, format_ns, percent
from pipeprof.verdict.network_advice import COMPUTING, is_eager, mode_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeprof.query.engine import Engine
    from pipeprof.verdict.cause import Cause, Gain


LIMITS = {
    "compute": "Compute-bound: the operators of the network take {} of the step time.",
    "communication": "Communication takes {} of the step time, not overlapped with computing.",
    "gradients": "Work on the gradients, between backward pass and optimizer, takes {} of the step time.",
    "optimizer": "The optimizer takes {} of the step time.",
    "after": "What follows the optimizer takes {} of the step time.",
    "host_gap": "Host-bound: during {} of the step time no operator runs, only Python and framework code.",
    "other_loader": "Another loader was used, and its wait is not known: up to {} of the step time.",
    "imbalance": "Rank {rank} is a straggler: the other ranks wait for it during {} of the step time.",
    "compile": "Warm-up takes {} of the time in training steps.",
}
ON_DEVICE = {
    "compute": "Compute-bound: the device works on operators of the network during {} of the step time.",
    "host_gap": "Host-bound: the device is idle during {} of the step time and waits for the host.",
}
STALLED = {"host_gap": "Host-bound: Python and framework code take or hold up {} of the step time."}
ON_ONLY_DEVICE = {"host_gap": "Host-bound: during {} of the step time no operator runs on the device."}
ASLEEP = "Host-bound: the training's own threads sleep, or wait for something besides its data, {} of the step time."
UNKNOWN_LINES = ", a function that was compiled as a whole: which of its lines was not recorded"
OF_THE_LOOP = ("host_gap", "after")  # limits that lie where the loop stands, and not in an operator
SPREAD = 0.5  # of the limit: where its largest line takes less, it lies in many
LEAST_NEXT = 0.01  # of the step: a smaller part is no next bottleneck
AHEAD_STEPS = 50  # up to here all batches may have been made before: a DataLoader keeps two for each worker process
RECORDED_STEP = "step like those recorded"  # where steps have two lengths: nothing of it bounds the others


def answer(content: dict[str, Any], lead: Cause) -> Answer:
    """Of the part of the step that is largest."""
    diagnosis, run = content["diagnosis"], content["run"]
    network = diagnosis["network"]
    limit = network["limit"]
    given = Answer(limited(network, device=on_device(content)), confidence=network["confidence"])
    mode = run["fingerprint"].get("mode")
    given.cause = (_cause(network, limit, mode) + _again(content, limit) + _data(content)).strip()
    lacks_lines = _advise(given, network, lead)
    if not given.place and (limit in OF_THE_LOOP or _compiles(lead)):
        given.place = diagnosis.get("loop_site") or (judged_pipeline(content) or {}).get("site") or ""
    given.confidence_reason = _reason(content, network)
    follow = command.with_lines if lacks_lines else command.after_change
    given.propose(*follow(run, "ops"))
    return given


def _compiles(lead: Cause) -> bool:
    return lead.advice is not None and lead.advice.code == "compile_step"


def limited(network: dict[str, Any], share: Callable[[float], str] = percent, *, device: bool = False) -> str:
    """What limits the step, and how much of it, as a sentence; `share` writes that. `device`: see on_device()."""
    if asleep := network.get("asleep_share"):
        return ASLEEP.format(share(asleep))
    special = STALLED if network.get("stalled_share") else ON_ONLY_DEVICE if device else {}
    words = LIMITS | (ON_DEVICE if network["device"] is not None else special)
    rank = (network["slowest_rank"] or {}).get("rank")
    said = words[network["limit"]].format(share(network["limit_share"]), rank=rank)
    close = next((item for item in network.get("doubt_facts", ()) if item["code"] == "second_close"), None)
    return said if close is None else f"{said[:-1]}, {PHASES[close['limit']]} {share(close['share'])}."


class Straggler(msgspec.Struct, frozen=True):
    """A slow rank of a report's content."""

    rank: int
    kind: str
    share: float
    excess_ns: float
    steps: int
    held_up_steps: int
    phase: str | None = None
    confidence: str | None = None
    suggestions: tuple[str, ...] = ()
    doubt_facts: tuple[dict[str, Any], ...] = ()


def of_straggler(content: dict[str, Any], _lead: Cause) -> Answer:
    """Of the slow rank."""
    slow = msgspec.convert(content["ranks"]["straggler"]["found"][0], Straggler)
    given = Answer(_holds_up(slow), confidence=slow.confidence)
    if slow.phase is not None:
        given.cause = f"Most of the difference is in {PHASES[slow.phase]}."
    given.action = sentence(slow.suggestions[0].partition(": ")[2])
    if slow.share < 1:
        given.gain = f"A step would run {at_most(1 / (1 - slow.share))}"
    given.confidence_reason = doubts.reason(slow.doubt_facts) or f"it was seen in {format_count(slow.steps, 'step')}"
    shown = command.own(content["run"], "report", "--section", "stragglers", "--section", "ranks")
    given.propose(shown, "shows the ranks side by side")
    return given


def _holds_up(slow: Straggler) -> str:
    """Who is slow, and by how much; of one that is slow now and then, in the steps in which it is."""
    who, share = f"Rank {slow.rank} is a straggler", percent(slow.share)
    if slow.kind != "sometimes":
        longer = f"{format_ns(slow.excess_ns)} ({share}) longer for a step than the other ranks"
        return f"{who}: it takes {longer}, and they wait for it."
    late = slow.held_up_steps
    longer = f"{format_ns(slow.excess_ns * slow.steps / late)} longer than the other ranks"
    return (
        f"{who}: in {late} of {slow.steps} steps it takes on average {longer} ({share} of the time of all steps), and "
        "they wait for it."
    )


def _cause(network: dict[str, Any], limit: str, mode: str | None = None) -> str:
    if limit == "compile":
        warm = network["warmup"]
        graphs = f"compiling {format_count(warm['compiles'], 'graph')}"
        compiling = f", {format_ns(warm['compile_ns'])} of it {graphs}" if warm["compiles"] else ""
        steps = format_count(warm["warmup_steps"], "warm-up step")
        return f"{steps} took {format_ns(warm['warmup_ns'])}{compiling}."
    if limit == "compute":
        return _largest_types(network)
    if limit == "communication" and (network["limit_waiting_share"] or 0) >= 0.01:
        waiting = min(network["limit_waiting_share"], network["limit_share"])
        transfer = network["limit_share"] - waiting
        return f"{percent(waiting)} of the step time is waiting for another rank, {percent(transfer)} transfer."
    if limit == "imbalance":
        slow = network["slowest_rank"]
        return f"Most of the difference is in {PHASES[slow['phase']]}."
    if limit == "other_loader":
        return "So much passes before the network is called, in the loader or in the loop's own code."
    return _on_host(network, mode) if limit == "host_gap" else ""


def _on_host(network: dict[str, Any], mode: str | None) -> str:
    """The function that holds the device up, or the operators that are launched one by one."""
    if network.get("asleep_share"):
        return "No operator runs then, and the threads of the loop use no CPU."
    return _function(network["host_call"]) if network.get("host_call") else _launches(network, mode)


def _function(call: dict[str, Any]) -> str:
    """The function of the user's that the host is busy with."""
    return of_call(call, "the step outside of operators")


def _largest_types(network: dict[str, Any]) -> str:
    """What computes most. Side by side operators may take longer than the step does, but no more of it than all do."""
    kinds = [kind for kind in network["top_types"] if kind["phase"] in COMPUTING]
    types = [
        {**kind, "share": min(kind["share"], network["limit_share"])} for kind in kinds if (kind["share"] or 0) >= 0.05
    ][:2]
    most = sum(kind["share"] for kind in types) >= network["limit_share"] / 2
    which = "Most of it" if most else "The largest parts" if len(types) > 1 else "The largest part"
    return f"{which}: {joined([_type(kind) for kind in types])}." if types else ""


def _launches(network: dict[str, Any], mode: str | None) -> str:
    """What the host does where it holds the step up; in graph mode no code of it stands between two operators."""
    device = network["device"]
    if device is not None:
        each = f"which run for {format_ns(device['op_ns'])} each on the device"
        return f"The host launches about {device['per_step']:,.0f} operators per step, {each}."
    count = network["ops_per_step"]
    if count is None or count < 2 or not is_eager(mode_of(mode, network["top_ops"])):
        return ""
    stalled = network.get("stalled_share") or 0.0
    waits = f" For {percent(stalled)} of the step (part of the above) they wait for a free core." if stalled else ""
    return f"Python and framework code launch about {count:,.0f} operators per step, one by one.{waits}"


def _again(content: dict[str, Any], limit: str) -> str:
    """A network that runs forward again in a step, where that can be what takes the time."""
    said = repeated_passes(content["steps"]["passes"]) if limit in ("compute", "after") else []
    return "".join(f" {sentence(text)}" for text in said[:1])


def _type(kind: dict[str, Any]) -> str:
    count = kind["count_per_step"]
    many = f"{count:,.0f} {kind['type']} per step" if count >= 1.5 else f"`{kind['type']}`"
    phase = f", {kind['phase']}" if kind["phase"] and kind["phase"] != "other" else ""
    return f"{many} ({percent(kind['share'])}{phase})"


def _data(content: dict[str, Any]) -> str:
    diagnosis, steps = content["diagnosis"], content["diagnosis"]["network"]["steps"]
    if diagnosis["data_wait_share"] is None:
        return ""
    if diagnosis["verdict"] != "consumer_bound":
        return f" The training waits for data {data_wait(diagnosis)}."
    if content["pipeline"]["made_ahead"] and steps < AHEAD_STEPS:
        return (
            f" Whether the data is ready in time cannot be told from {format_count(steps, 'step')}: the DataLoader's "
            "worker processes make batches ahead."
        )
    said, waits = data_in_time(diagnosis), data_wait(diagnosis)
    return f" {capital(said)} ({f'the training waits for it {waits}' if said == READY else waits})."


def _advise(given: Answer, network: dict[str, Any], lead: Cause) -> bool:
    """The advice of the verdict, and what it brings at most; returns whether the lines that it is on are not known."""
    if lead.advice is None:
        return False
    actions, limit_share = network["actions"], network["limit_share"]
    advised = next(item for item in actions if item["code"] == lead.advice.code)
    given.action, facts = sentence(advised["action"]), advised["facts"]
    op = facts.get("largest") or facts.get("op")
    # Of a compiled function: where its lines were recorded, those of gradients name no function.
    lacks_lines = bool(facts.get("in_function")) and ": " in op.get("site", "")
    given.place = _place(op) + (UNKNOWN_LINES if lacks_lines else "")
    in_line = (op or {}).get("site_share") or limit_share
    if limit_share and in_line < SPREAD * limit_share:
        given.cause += f" The line below takes {percent(in_line)} of the step, the rest is spread over others."
    gain = lead.advice.gain
    if lead.few is not None:
        given.gain = capital(unknown_gain(lead.few))
    elif gain is not None and gain.high is not None:
        given.gain = _halved(gain.high, _part(facts), of_one_mode=lead.of_one_mode)
    elif gain is not None and gain.times is not None:
        given.gain = f"A step would run {_compiled(gain)}"
        if lead.of_one_mode:
            given.gain = f"A {RECORDED_STEP} would run {about(gain.times)}"
    limit, whole = network["limit"], actions[0]["share"] in (None, limit_share)
    shares = network["weights"] | {"data_wait": (network["shares"] or {}).get("data_wait", 0.0)}
    others = [name for name in sorted(shares, key=lambda name: -shares[name]) if name != limit]
    others = [name for name in others if shares[name] >= LEAST_NEXT]
    if others and whole and limit not in ("compile", "other_loader"):
        given.then = f"{PHASES[others[0]]} is the bottleneck"
    return lacks_lines


def _part(facts: dict[str, Any]) -> str:
    """What the advice makes cheaper."""
    site = place_of((facts.get("largest") or facts.get("op") or {}).get("site") or "")
    if facts.get("in_function"):
        return f"all {facts.get('type')} with their gradients"
    return f"what `{site.rpartition('/')[2]}` computes" if site else "this part"


def _halved(most: float, part: str, *, of_one_mode: bool) -> str:
    """What it brings to halve a part of the step, beside `most` without the part, which nobody reaches."""
    if most >= MANY_TIMES and not of_one_mode:
        return f"A step would run {at_most(most)}"
    half = f"If {part} ({percent(1 - 1 / most)} of the step) took half as long"
    brings = f"would run {faster(2 / (1 + 1 / most))}"
    if of_one_mode:
        return f"{half}, a {RECORDED_STEP} {brings}"
    return f"{half}, a step {brings}; at most {times(most)} times"


def _compiled(gain: Gain) -> str:
    """What compiling brings: at least a part of what its gaps cost; how much less its operators take nobody knows."""
    if gain.times is None or gain.low is None or gain.times >= MANY_TIMES:
        return about(gain.times or 1.0)
    return (
        f"at least {gain.low:.2f} times as fast, likely {gain.times:.2f} or more (compiled operators are faster, too)"
    )


def _place(op: dict[str, Any] | None) -> str:
    """The line that issued an operator; where that is not in the record, the operator."""
    if op is None or op.get("site"):
        return place_of((op or {}).get("site") or "")
    phase = f", {PHASES[op['phase']]}" if op["phase"] in ("forward", "backward") else ""
    return f"the operator `{op['name']}`{phase}: its line of code was not recorded"


def _reason(content: dict[str, Any], network: dict[str, Any]) -> str:
    said = doubts.reason(network["doubt_facts"])
    steps = network["steps"]
    recorded = f"{format_count(steps, 'step')} with recorded operators"
    return said or (f"{recorded} {'was' if steps == 1 else 'were'} measured" if steps else unopposed(content))


def is_sudden(content: dict[str, Any]) -> bool:
    """Whether the first cause across ranks is one that became slow, which also makes later steps slower."""
    causes = content.get("ranks", {}).get("causes")
    return bool(causes and causes["found"]) and causes["found"][0]["code"] == "fail_slow"


def of_replay(content: dict[str, Any], _lead: Cause) -> Answer:
    """Of the cause that costs most."""
    causes = content["ranks"]["causes"]
    item, slow = causes["found"][0], causes["slowdown"]
    given = Answer(words.sentence(item) + ".", confidence=item["confidence"])
    given.cause = _replay_cause(slow)
    given.action = words.ADVICE[item["code"]]
    if item["times"] is not None:
        given.gain = f"A step would run {at_most(item['times'])}"
    others = causes["found"][1:]
    given.then = words.as_next(others[0]) if others else ""
    given.confidence_reason = words.doubts(item["doubts"]) or (
        f"a replay of {format_count(slow['steps'], 'step')} is {percent(causes['error'])} off the recorded times"
    )
    shown = command.own(content["run"], "report", "--section", "causes")
    given.propose(shown, "shows the slow-down by stage, rank, link and kind of operation")
    return given


def _replay_cause(slow: dict[str, Any]) -> str:
    text = f"If every operation took as long as its peers' on average, a step would run {slow['s']:.2f} times as fast"
    if slow["launch"] >= 1.01:
        text += f" (host gaps not counted); host gaps make it another {slow['launch']:.2f} times as long"
    return text + "."


MOST_RANGES = 4


def take_operators(engine: Engine, step: int) -> None:
    """Let `engine` know the operators of one training step alone, counted from 0 with warm-up.

    Raises UsageError, which says which steps have operators, when none was recorded in it.
    """
    steps = engine.rows("step/with_operators")
    if all(row["kind_step"] != step for row in steps):
        raise UsageError(f"no operator was recorded in training step {step}", _there(steps))
    engine.restrict_ops(step)


def operators_of(engine: Engine, step: int, top: int) -> dict[str, Any]:
    """The parts of a report that are about operators, of one step; sums that a source gives are of no step."""
    take_operators(engine, step)
    return {
        "ops": engine.rows("op/by_type"),
        "op_instances": engine.rows("op/by_instance", top=top),
        "op_devices": engine.rows("op/by_device"),
        "op_streams": engine.rows("op/by_stream"),
        "op_busy": engine.rows("op/busy"),
        "op_totals": [],
        "op_total_instances": [],
    }


def _there(rows: list[dict[str, Any]]) -> str:
    """`they were recorded in steps 10 to 14, 100 to 104`."""
    windows = ranges(row["kind_step"] for row in rows)
    if not windows:
        return "the run has no operators whose step is known: leave --step out"
    shown = ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in windows[:MOST_RANGES])
    more = f" and {len(windows) - MOST_RANGES} more windows" if len(windows) > MOST_RANGES else ""
    return f"they were recorded in steps {shown}{more}"
