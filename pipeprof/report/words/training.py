"""What is said of a run and its steps: what it is of, its parts, waits for data, two lengths, becoming slower."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pipeprof.report.words import joined
from pipeprof.report.words.names import PHASES
from pipeprof.units import format_bytes, format_count, format_ns, percent
from pipeprof.verdict.rules import MODERATE_WAIT

if TYPE_CHECKING:
    from pipeprof.verdict.modes import TwoModes

Row = Mapping[str, Any]

INFERENCE = "load_and_run log"  # by which the steps of a rank are known
READS = "reads"  # the same of a process in which no network was seen: a step is a batch and what the loop does with it
STAGES = {
    "build": "loading the model", "compile": "configuring the network", "warmup": "warm-up iterations",
    "steady": "timed iterations",
}  # fmt: skip
KINDS = {"train": "timed"}
TRAINING_STEP = "training step"
SHORT: dict[str | None, str] = {INFERENCE: "iteration", READS: "batch"}
_OF_READS = {
    "training steps": "batches", "training step": "batch", "the training loop": "the loop",
    "the training itself": "the loop itself", "the training": "the loop", "all steps": "all batches",
}  # fmt: skip
_TRAINING = re.compile("|".join(_OF_READS), re.IGNORECASE)


def is_inference(run: Mapping[str, Any]) -> bool:
    """Whether all steps of the run (of a report's content) are iterations that MegEngine's load_and_run timed."""
    return evidence_in(run) == INFERENCE


def only_reads(run: Mapping[str, Any]) -> bool:
    """Whether batches were read and no network was seen, in any process of the run (of a report's content)."""
    return evidence_in(run) == READS


def evidence_in(run: Mapping[str, Any]) -> str | None:
    """What the steps of a run (of a report's content) are known by; None where that is not one for all ranks."""
    return same(rank["step_evidence"] for rep in run.get("reps", ()) for rank in rep["ranks"])


def same(evidence: Iterable[str | None]) -> str | None:
    """The same of what the steps of each rank are known by."""
    kinds = set(evidence)
    return kinds.pop() if len(kinds) == 1 else None


def counted(steps: int, evidence: str | None) -> str:
    """`64 training steps`, `1 iteration`, `39 batches`."""
    return format_count(steps, SHORT.get(evidence, TRAINING_STEP))


def unit(run: Mapping[str, Any]) -> str:
    """What one step of the run (of a report's content) is."""
    return SHORT.get(evidence_in(run), TRAINING_STEP)


def wording(run: Mapping[str, Any]) -> Callable[[str], str]:
    """What makes a sentence about a training one about the loop that reads batches, where the run is of such a one."""
    if only_reads(run):
        return lambda text: _TRAINING.sub(_of_reads, text)
    return str


def batches_read(run: Mapping[str, Any]) -> int:
    """How many batches the ranks of the first repetition read."""
    read: int = sum(rank["evidence_counts"].get("rows", 0) for rep in run["reps"][:1] for rank in rep["ranks"])
    return read


def _of_reads(match: re.Match[str]) -> str:
    said = match[0]
    word = _OF_READS[said.lower()]
    return word.capitalize() if said[0].isupper() else word


ORIGINS = {"collect": "the launch"}
RECORDING = "the beginning of the recording"  # of another program, whose launch is not known
FROM_BOOT_NS = 86_400_000_000_000  # who begins later counts from when its machine started


def origin_of(content: Mapping[str, Any]) -> str:
    """What the times of a run count from."""
    return ORIGINS.get(content["run"]["source"], RECORDING)


def moment(content: Mapping[str, Any], time_ns: float) -> str:
    """`, 3.20 s after the launch`; empty where times count from another moment than this run's."""
    return "" if time_ns > FROM_BOOT_NS else f", {format_ns(time_ns)} after {origin_of(content)}"


SLOWER = ("step", "drift")
DRIFT_CAUSES = {
    "recompilation": "graphs are compiled again",
    "memory_growth": "the memory of the training process grows",
    "neighbour": "other programs take more CPU",
    "throttling": "the job is throttled by its CPU quota",
}


def drift(row: Mapping[str, Any]) -> str:
    """`10.0 ms to 20.0 ms, mostly in waiting for data`; only for the verdicts in SLOWER."""
    ends = (" (first third)", " (last third)") if row["verdict"] == "drift" else ("", "")
    times = f"{format_ns(row['before_ns'])}{ends[0]} to {format_ns(row['after_ns'])}{ends[1]}"
    return f"{times}, mostly in {PHASES[row['phase']]}" if row["phase"] else times


def drift_sentence(content: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """What a row of verdict/drift.judge_course says of a report's run; only for the verdicts in SLOWER."""
    if row["verdict"] == "step":
        when = moment(content, row["at_ns"])
        text = f"the steps become slower at about step {row['at_step']}{when}: the median step rises from {drift(row)}"
    else:
        text = f"the steps become slower and slower as the training runs: the median step rises from {drift(row)}"
    causes = " and ".join(DRIFT_CAUSES[code] for code in row["causes"])
    return f"{text}; " + (f"at the same time {causes}" if causes else "cause not recorded")


_DIFFERS = {
    "data": "wait for their data",
    "input": "have larger batches ({input_bytes} of data)",
    "neighbour": "have other programs beside them, which take {neighbour_cores} cores",
    "delay": "wait for a core",
    "fewer_cores": "use fewer cores ({own_cores})",
    "more_cores": "use more cores ({own_cores})",
    "later": "come later in the run",
    "earlier": "come earlier in the run",
}
_SHOWN: dict[str, Callable[[float], str]] = {
    "own_cores": "{:.1f}".format, "neighbour_cores": "{:.1f}".format, "input_bytes": format_bytes,
}  # fmt: skip


def two_lengths(modes: TwoModes) -> str:
    """`two lengths: 98.0 ms (60 % of the steps) and 1.90 s (40 %)`."""
    first = f"{format_ns(modes.short.median_ns)} ({percent(modes.short.share)} of the steps)"
    return f"two lengths: {first} and {format_ns(modes.long.median_ns)} ({percent(modes.long.share)})"


def length_difference(modes: TwoModes) -> str:
    """What the long steps have that the short ones have not, as a sentence."""
    numbers = {
        name: " instead of ".join(
            "?" if value is None else shown(value) for value in (getattr(modes.long, name), getattr(modes.short, name))
        )
        for name, shown in _SHOWN.items()
    }
    said = [_DIFFERS[code].format(**numbers) for code in modes.differs]
    if not said:
        return "The record has nothing that tells the long steps from the short ones."
    return f"The long steps {joined(said)}."


TIMES = {1: "once", 2: "twice"}
MOST_SITES = 3
EVEN = 0.05  # so far from a whole number it is still said as one


def repeated_passes(passes: dict[str, Any], rank: int | None = None) -> list[str]:
    """One sentence for each network whose forward pass runs more often per step than gradients are taken.

    Of one rank, or of the first that has any.
    """
    rows = next(iter(passes.values()), []) if rank is None else passes.get(f"rank {rank}", [])
    return [_said(row) for row in rows]


def _said(row: dict[str, Any]) -> str:
    sites = [_site(site) for site in row["sites"]]
    listed = joined(sites if len(sites) <= MOST_SITES else [*sites[:MOST_SITES], f"{len(sites) - MOST_SITES} more"])
    return f"the forward pass of {row['network']} runs {_often(row['per_step'])} per step: {listed}"


def _often(per_step: float) -> str:
    number = round(per_step)
    return TIMES.get(number, f"{number} times") if abs(per_step - number) < EVEN else f"{per_step:.1f} times"


def _site(site: dict[str, Any]) -> str:
    where = f"`{site['site'].rpartition('/')[2]}`" if site["site"] else "a library"
    return where if site["gradient"] else f"{where} ({format_ns(site['dur_ns'])}, no gradients taken)"


LEAST_WAIT = 0.01  # a smaller share is said without its digits: nobody does anything about it
NEAR_WAITS = 0.05  # apart by less, two shares are one piece of news
LITTLE_WAIT = 0.05  # two shares below it are one bound: nobody acts on the difference
READY, AT_TIMES = "the data is ready in time", "the training waits for its data only now and then"
NEXT_TO_NOTHING = "less than 1 %"


def data_wait(diagnosis: Mapping[str, Any], shown: Callable[[float], str] = percent) -> str:
    """`32 % of the time, 38 % with the first quarter of each epoch`; `about 82 % of the time` of two that are close.

    Two small ones are `less than 3 % of the time`, which is true of both; with the digits of a table, as others are.

    `diagnosis`: one whose `data_wait_share` is known. Rules go by the steady state; steps that fill the queues of
    each epoch are in the other number, which is the one of collect's summary and of the section on steps.
    """
    steady, overall = diagnosis["data_wait_share"], diagnosis.get("data_wait_share_all_steps")
    low, high = sorted((steady, steady if overall is None else overall))
    if wait_share(low, shown) == wait_share(high, shown):
        return f"{wait_share(low, shown)} of the time"
    if shown is percent and high < LITTLE_WAIT:
        return f"less than {math.floor(high * 100) + 1} % of the time"
    if high - low < NEAR_WAITS:
        return f"about {shown(steady)} of the time"
    all_steps = wait_share(overall or 0.0, shown)
    return f"{wait_share(steady, shown)} of the time, {all_steps} with the first quarter of each epoch"


def data_in_time(diagnosis: Mapping[str, Any]) -> str:
    """Of a training that its data does not hold up: that the data is ready in time, or at times is not."""
    share = diagnosis["data_wait_share"]
    return AT_TIMES if share is not None and share >= MODERATE_WAIT else READY


def wait_share(share: float, shown: Callable[[float], str] = percent) -> str:
    """A share in a sentence: `32 %`, or `less than 1 %`."""
    return NEXT_TO_NOTHING if share < LEAST_WAIT else shown(share)


PARTS = {
    "start": "until Python runs",
    "import": "import of the framework",
    "set_up": "script, until the first step",
    "dataset_build": "building data pipelines",
    "look": "looks at samples",
    "compile": "graph compilation",
    "compile_eval": "graph compilation of evaluations",
    "recompile": "graphs compiled again",
    "first_steps": "warm-up steps",
    "training": "training steps",
    "evaluation": "evaluation",
    "checkpoint": "checkpoints",
    "callback": "callback",
    "epoch_gap": "between epochs",
    "between_steps": "between steps",
    "profiling": "pipeprof, writing recorded operators",
    "ending": "after the last step",
    "not_recorded": "not recorded",
}
CAUSES = {
    "short_batch": "the last batch is shorter",
    "changed_shapes": "input shapes change",
    "again": "a graph of the same shapes is compiled a second time",
    "new_object": "a new network object is created each time",
    "rest_of_epoch": "the data pipeline works off the rest of its epoch",
}
_SENTENCES = {
    "recompile": "Graphs are compiled again in the middle of the training{cause}: that takes",
    "compile_eval": "Compiling graphs for evaluations takes",
    "evaluation": "Evaluation takes",
    "checkpoint": "Writing checkpoints takes",
    "callback": "The callback `{detail}` takes",
    "epoch_gap": "The gaps between epochs take",
    "between_steps": "What lies between the steps takes",
    "ending": "What follows the last training step takes",
    "rest_of_epoch": "Behind the last training step the data pipeline works off the rest of its epoch, which takes",
}
_ADVICE = {
    "recompile": "Give the network inputs of the same shapes, or let it take any (`set_inputs` with None sizes).",
    "compile_eval": "Evaluate with one network object and one batch size, so that its graph is compiled once.",
    "evaluation": (
        "Evaluate less often or on fewer rows; where reading its rows takes the time, cache them "
        "(`dataset.cache()`, or arrays in memory)."
    ),
    "checkpoint": "Write checkpoints less often (`CheckpointConfig(save_checkpoint_steps=...)`), or with `async_save`.",
    "callback": "Let it do its work less often, or in a thread or process of its own.",
    "epoch_gap": "Make one iterator for all epochs, so that the data pipeline is not started anew.",
    "between_steps": (
        "See what runs between two steps: the data loader, evaluation, checkpoints, logging, or a host that comes late."
    ),
    "ending": ("See what the script does after its last step, and whether its data pipeline ends with it."),
    "compile": "Keep compiled graphs: `set_context(enable_compile_cache=True)`.",
}
_COMPILED_ONCE = (
    "It is compiled only once, and of a longer training that is a smaller part; "
    "`set_context(enable_compile_cache=True)` keeps it for the next one."
)
_ADVICE_BY_CAUSE = {
    "short_batch": "Drop the short last batch: `dataset.batch(..., drop_remainder=True)`.",
    "new_object": "Make the network once, and call that object in each epoch.",
    "rest_of_epoch": (
        "Take rows in front of the first `map` and `batch` (`dataset.take(batches * batch_size)`): with `take` behind "
        "them MindSpore makes all rows of the epoch, and throws them away."
    ),
}


def name(row: Row) -> str:
    """A part for a table: "callback `LossMonitor`", "graphs compiled again (the last batch is shorter): `Net`"."""
    text: str = PARTS.get(row["part"]) or row["part"]
    if row["cause"]:
        text += f" ({CAUSES.get(row['cause'], row['cause'])})"
    which = row["detail"] or row.get("site", "").rpartition("/")[2]
    return f"{text} `{which}`" if which else text


def sentence(row: Row, share: str) -> str:
    """The first sentence about a part that interrupts the training; `share`: `loop_share` in words."""
    cause = f", because {CAUSES[row['cause']]}" if row["cause"] in CAUSES else ""
    begin = _SENTENCES.get(row["cause"] or "", _SENTENCES[row["part"]]).format(detail=row["detail"], cause=cause)
    of_what = (
        "the time from the first steady step to the end"
        if row["part"] == "ending"
        else ("the training loop's time (steps and interruptions)")
    )
    return f"{begin} {share} of {of_what}."


def numbers(row: Row) -> str:
    """How often and how long: "5 times, 4.10 s in all, 820 ms on average"."""
    times = format_count(row["count"], "time")
    each = f", {format_ns(row['dur_ns'] / row['count'])} on average" if row["count"] > 1 else ""
    return f"{times}, {format_ns(row['dur_ns'])} in all{each}"


def advice(row: Row) -> str:
    """What to do about it; empty where nothing can be said, as of an ending that is no longer than any other."""
    if row["part"] == "ending" and row["loop_share"] is None:
        return ""
    if row["part"] == "compile_eval" and row["count"] == 1:
        return _COMPILED_ONCE
    return _ADVICE_BY_CAUSE.get(row["cause"]) or _ADVICE.get(row["part"], "")
