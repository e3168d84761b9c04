"""What an answer is made of, and the words that several answers share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec

from pipeprof.escape import line
from pipeprof.report.answer import command
from pipeprof.report.summary import median_step_ns, of_medians
from pipeprof.report.words import training as loop
from pipeprof.report.words.training import two_lengths
from pipeprof.units import format_ns, percent
from pipeprof.verdict.modes import TwoModes

KINDS = {
    "GeneratorOp": "source", "MapOp": "map", "BatchOp": "batch", "ShuffleOp": "shuffle", "ConcatOp": "concat",
    "ZipOp": "zip", "FilterOp": "filter", "Iterable": "iterable",
    "Dataset": "dataset", "Collate": "collate function", "Sampler": "sampler", "Transform": "transform",
}  # fmt: skip
TRAINING = "the training itself"
MUCH_LONGER = 1.5  # times the median, from which the mean step is said too
MANY_TIMES = 100  # as fast: from here on a number says nothing
CLOSE = 1.05  # times the low end of an interval: one that ends before is as good as a number
_MANY = f"possibly more than {MANY_TIMES} times as fast"
NOTHING = 1.02  # times as fast: a low end below it is none
LONG_NAME = 30  # letters of an operator's name that lists transforms


def modes_in(content: Mapping[str, Any]) -> TwoModes | None:
    """The two lengths of the steps of a report's content; None where they have one."""
    return msgspec.convert(content.get("diagnosis", {}).get("modes"), TwoModes | None)


@dataclass
class Answer:
    """Sentences without a label; an empty one has nothing to say. `confidence_reason` is what follows "because".

    `also`: causes that cost about as much; `extra` are lines of output, shown as they are below `extra_title`.

    `next_purpose` says what the next command does. `short_command`, with its purpose, is for where the recorded command
    is too long to be shown.
    """

    sentence: str
    cause: str = ""
    place: str = ""
    action: str = ""
    gain: str = ""
    then: str = ""
    confidence: str | None = None
    confidence_reason: str = ""
    next_command: str = ""
    next_purpose: str = ""
    short_command: str = ""
    short_purpose: str = ""
    extra: list[str] = field(default_factory=list)
    extra_title: str = "The end of its traceback"
    also: str = ""

    def propose(self, command: str, purpose: str) -> None:
        """What to run next, and what that does."""
        self.next_command, self.next_purpose = command, purpose

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Answer:
        """What `as_dict` gave."""
        return cls(**{name: value for name, value in facts.items() if value is not None})

    def as_dict(self) -> dict[str, Any]:
        """For JSON; what is not known is null."""
        facts = {name: (value or None if isinstance(value, str) else value) for name, value in asdict(self).items()}
        del facts["short_command"], facts["short_purpose"], facts["extra_title"]
        return facts


def op_label(op: dict[str, Any] | None) -> str:
    """An operator for people: its name, or what it is, with its type and number, when it has none."""
    if op is None:
        return "another operator"
    if op["op_id"] < 0:
        return TRAINING
    if not op["name"]:
        plain, kind = f"{op['op_type']} {op['op_id']}", KINDS.get(op["op_type"])
        return f"the {kind} ({plain})" if kind else plain
    first, *others = op["name"].split(", ")
    if others and len(op["name"]) > LONG_NAME:
        return f"`{first}, ...` ({1 + len(others)} transforms)"
    return f"`{op['name']}`"


def apart(ops: Sequence[dict[str, Any]]) -> list[str]:
    """Labels of operators that are named side by side: those of one name with their numbers, as in charts."""
    labels = [op_label(op) for op in ops]
    alike = Counter(labels)  # without a name a label has its number
    return [op_label(numbered(op)) if alike[label] > 1 else label for label, op in zip(labels, ops, strict=True)]


def numbered(op: Mapping[str, Any]) -> dict[str, Any]:
    """An operator whose name is told apart from others of the same: `Store (3)`."""
    return {**op, "name": "{name} ({op_id})".format_map(op)}


def stage_names(ops: Sequence[dict[str, Any]]) -> dict[int, str]:
    """What each operator of a pipeline is called in charts: its name in the user's code, else its kind.

    Those of one name have their number behind it.
    """
    named = {op["op_id"]: line(op["name"] or KINDS.get(op["op_type"]) or op["op_type"] or "operator") for op in ops}
    several = Counter(named.values())
    return {op_id: f"{name} ({op_id})" if several[name] > 1 else name for op_id, name in named.items()}


def with_kind(op: dict[str, Any]) -> str:
    """The same with the kind of operator in front: "the map `augment`"."""
    kind = KINDS.get(op["op_type"])
    return f"the {kind} {op_label(op)}" if kind and op["name"] else op_label(op)


def limit_label(content: dict[str, Any], then: int | str | None) -> str:
    """What limits next, by an op_id or "consumer"."""
    if then is None:
        return ""
    if then == "consumer":
        return TRAINING
    ops = ops_of(content, content["diagnosis"].get("pipeline_key"))
    return op_label(ops[then]) if then in ops else f"operator {then}"


def ops_of(content: dict[str, Any], key: str | None) -> dict[int, dict[str, Any]]:
    """The operators of a training pipeline by op_id, which tells them apart within one; None: of the only one."""
    training = (row for row in content["pipeline"]["pipelines"] if row["role"] == "train")
    return {op["op_id"]: op for row in training if key is None or row["pipeline_key"] == key for op in row["ops"]}


def on_device(content: dict[str, Any]) -> bool:
    """Whether operators ran on a device beside the CPU, such as those that Ascend's files list."""
    names = [row["device"].lower() for row in content["op_devices"]]
    return any(name and not name.startswith(("cpu", "host")) for name in names)


def of_call(call: dict[str, Any], whole: str) -> str:
    """What a call of a trace takes of `whole`, and what of that is in one of a library."""
    inside = f" ({percent(call['inside_share'])} is in `{call['inside']}`)" if call["inside"] else ""
    return f"`{call['name']}` takes {percent(call['share'])} of {whole}{inside}."


def capital(text: str) -> str:
    """The text with a large first letter, unless it begins with a name."""
    return text[:1].upper() + text[1:]


def uncapital(text: str) -> str:
    """The text with a small first letter, unless it begins with an abbreviation."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def sentence(text: str) -> str:
    """A whole sentence: a large letter in front, a full stop behind."""
    return capital(text).rstrip(".") + "." if text else ""


def faster(gain: float) -> str:
    """`1.8 times as fast`."""
    return f"{times(gain)} times as fast"


def times(gain: float) -> str:
    """`1.8`, as in `1.8 times as fast`; beyond a hundred a number says nothing."""
    return f"{gain:.3g}" if gain < MANY_TIMES else f"more than {MANY_TIMES}"


def judged_pipeline(content: Mapping[str, Any]) -> dict[str, Any] | None:
    """The pipeline that the diagnosis is about; None where it is about none."""
    at = {name: content["diagnosis"][name] for name in ("rep", "rank", "pipeline_key")}
    return next((row for row in content["pipeline"]["pipelines"] if at.items() <= row.items()), None)


def at_most(gain: float) -> str:
    """`at most 1.8 times as fast`; a part that takes nearly all of the time bounds nothing to a digit."""
    return f"at most {faster(gain)}" if gain < MANY_TIMES else _MANY


def about(gain: float) -> str:
    """`about 1.8 times as fast`; without a number where at_most() has none."""
    return f"about {faster(gain)}" if gain < MANY_TIMES else _MANY


def expected(gain: float | None, low: float | None, high: float | None) -> str:
    """`about 1.34 times as fast (1.21 to 1.47)`; an interval, or its high end, where no number was predicted."""
    if gain is None and low is not None and high is not None and low < NOTHING:
        return f"{at_most(high)}, perhaps not at all faster"
    if gain is None:
        return f"{low:.2f} to {high:.2f} times as fast"
    low, high = low or gain, high or gain
    apart = f" ({low:.2f} to {high:.2f})" if high / low > CLOSE and gain < MANY_TIMES else ""
    return f"{about(gain)}{apart}"


def measured(content: dict[str, Any], rep: int | None = None) -> str:
    """`64 training steps, median 45.0 ms`; `15 training steps on each of 2 ranks, slowest median 131 ms`.

    `rep`: of one repetition alone. Of several their geometric mean counts, as everywhere.

    The mean stands beside a median that hides most of the time.
    """
    rows = [row for row in content["steps"]["summary"] if row["kind"] == "train" and rep in (None, row["rep"])]
    step_ns = median_step_ns(rows)
    if step_ns is None:
        return ""
    ranks, reps = len({row["rank"] for row in rows}), len({row["rep"] for row in rows})
    what = "processes" if min(ranks, reps) > 1 else "ranks" if ranks > 1 else "repetitions"
    alike = len({row["steps"] for row in rows}) == 1
    each = f" {'on' if what == 'ranks' else 'in'} each of" if alike else " on" if what == "ranks" else " in"
    several = f"{each} {len(rows)} {what}, {of_medians(reps, ranks)}" if len(rows) > 1 else ", median"
    counted = _counted(content, rows[:1] if alike else rows)
    modes = modes_in(content)
    if modes is not None and len(rows) == 1:
        return f"{counted}, {two_lengths(modes)}, mean {format_ns(rows[0]['mean_ns'])}"
    nearest = min(rows, key=lambda row: abs(row["median_ns"] - step_ns))
    hidden = nearest["mean_ns"] is not None and nearest["mean_ns"] > MUCH_LONGER * nearest["median_ns"]
    mean = f", mean {format_ns(nearest['mean_ns'])}" if hidden else ""
    return f"{counted}{several} {format_ns(step_ns)}{mean}"


def mostly_in(diagnosis: Mapping[str, Any], name: str) -> str:
    """`mostly_of` the call of that name, if the loop was seen in one."""
    calls: Sequence[Mapping[str, Any]] = diagnosis.get("loop_calls", ())
    return next((mostly_of(call) for call in calls if call.get("name") == name), "")


def mostly_of(call: Mapping[str, Any]) -> str:
    """The function of the user's in which nearly all of a call goes; empty where that is not one."""
    name, code = call.get("mostly"), call.get("code")
    return f"Nearly all of it is in `{name}`{f' (`{code}`)' if code else ''}." if name else ""


def unopposed(content: dict[str, Any]) -> str:
    """The reason of a confidence without a doubt: `nothing measured in 64 training steps contradicts it`."""
    rows = [row for row in content["steps"]["summary"] if row["kind"] == "train"]
    return f"nothing measured in {_counted(content, rows)} contradicts it" if rows else ""


def _counted(content: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    return loop.counted(sum(row["steps"] for row in rows), loop.evidence_in(content.get("run", {})))


def has_several_ranks(content: dict[str, Any]) -> bool:
    """Whether more than one rank was recorded."""
    return len({row["rank"] for row in content["steps"]["summary"]}) > 1


def measure_first(given: Answer, run: dict[str, Any], doubts: Sequence[dict[str, Any]]) -> None:
    """Put a measurement without them before the change that was advised, if these doubts of the answer name them."""
    if given.action and any(doubt["code"] == "other_load" for doubt in doubts):
        action = given.action[:1].lower() + given.action[1:]
        given.action = f"Measure again while no other program runs. If it says the same: {action}"
        if command.is_repeatable(run):
            given.propose(*command.on_a_quiet_machine(run))
