"""The answer where another process of the job takes the CPU that the training needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.report.answer import command, doubts, shape
from pipeprof.report.answer.shape import Answer
from pipeprof.units import format_ns, percent

if TYPE_CHECKING:
    from pipeprof.verdict.cause import Cause

SUMMARY = "mindspore/train/summary/"
ADVICE = {
    SUMMARY: (
        "Train without summaries (SummaryCollector, SummaryRecord), or write them in a short run of their own: their "
        "writer asks its queue without a pause, however rarely something is collected."
    ),
    "": (
        "Stop this process while the training runs, or let it sleep when it has nothing to do: for example, a "
        "loop that asks a queue without blocking (`get(block=False)`) takes a whole core."
    ),
}  # by a part of the path of the library that made it
LONGEST = 40


def feeder(content: dict[str, Any]) -> dict[str, Any] | None:
    """The process that the stage that limits may wait for; None without one."""
    process: dict[str, Any] | None = content["diagnosis"]["process"]
    return process if process and not process["leads"] else None


def answer(content: dict[str, Any], _lead: Cause) -> Answer:
    """Of that process."""
    process, run = content["diagnosis"]["process"], content["run"]
    given = Answer(_sentence(process), confidence=process["confidence"])
    given.cause = _cause(process)
    given.place = process["site"] + (f"; made by {_in_packages(process['library'])}" if process["library"] else "")
    given.action = next(text for part, text in ADVICE.items() if part in process["library"])
    given.gain = (
        f"That frees {_cores(process['cores'])} for the training, which now has "
        f"{_number(process['training_cores'])} of {_cores(process['available_cores'])}"
    )
    given.confidence_reason = doubts.reason(process["doubts"]) or (
        f"it was sampled for {format_ns(process['sampled_ns'])} of steady training"
    )
    given.propose(*command.after_change(run, "report", "--section", "cpu"))
    shape.measure_first(given, run, process["doubts"])
    return given


def _in_packages(path: str) -> str:
    """A library's file without the folder that it is installed in."""
    return path.rpartition("/site-packages/")[2]


def label(process: dict[str, Any]) -> str:
    """The process for people: "the process `WriterPool`", "4 processes `worker`"."""
    name = process["what"] or _short(process["command"]) or f"{process['pid']}"
    return f"the process `{name}`" if process["processes"] < 2 else f"{process['processes']} processes `{name}`"


def _sentence(process: dict[str, Any]) -> str:
    made = f", started at {process['site']}," if process["site"] else ""
    verb = "takes" if process["processes"] < 2 else "take"
    return (
        f"Short of CPU: {label(process)}{made} {verb} {percent(process['job_share'])} of the job's CPU, "
        f"and no core is idle."
    )


def _cause(process: dict[str, Any]) -> str:
    text = (
        f"During the steady steps {label(process)} used {_number(process['cores'])} and the training "
        f"{_number(process['training_cores'])} of {_cores(process['available_cores'])}"
    )
    if process["other_cores"] >= 0.1:
        text += f", other programs {_number(process['other_cores'])}"
    waits = process["wait_cores"]
    if waits is None or waits < 0.1:
        return text + "."
    return f"{text}; on average {waits:.1f} threads of the training were ready to run and had no core."


def _short(command: str) -> str:
    """The program without its folder, and what it was given."""
    program, space, given = command.partition(" ")
    text = program.rpartition("/")[2] + space + given
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _number(cores: float) -> str:
    return f"{cores:.2g}" if cores < 10 else f"{cores:.0f}"


def _cores(cores: float) -> str:
    return f"{_number(cores)} core{'' if _number(cores) == '1' else 's'}"
