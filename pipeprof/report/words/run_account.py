"""The parts of a whole run in words: what each is, what a large one means, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.units import format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Mapping

    Row = Mapping[str, Any]

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
    "callback": "Call what it does less often, or not in the training's own thread.",
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
    return f"{text} `{row['detail']}`" if row["detail"] else text


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
