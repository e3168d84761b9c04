"""How a run does while it is recorded: pace, queues, CPU, memory, what each rank is in, and the verdict so far."""

from __future__ import annotations

import sys
import time
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from pipeprof import escape
from pipeprof.errors import PipeprofError
from pipeprof.record.run import load
from pipeprof.report import json_text, status
from pipeprof.report.answer import Answer
from pipeprof.report.answer.screen import labelled
from pipeprof.report.build import build
from pipeprof.report.output import has_colours
from pipeprof.report.pictures.bars import bar, sparkline
from pipeprof.report.table import print_drawn
from pipeprof.units import format_bytes, format_count, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeprof.record.run import Run

TOP_VERSION = 1
EVERY_S = 1.0
VERDICT_S = 10.0  # between two verdicts, at least
EARLY_S = 1.5  # of training steps: from then on, the verdict is final in nine of ten trainings (lab/notes/diagnosis.md)
SHARE = 0.02  # of the time that looking, and that judging, may take: both need CPU that the training could use
BAR = 20
PAST = 40  # looks whose pace is drawn
Past = dict[int | None, deque[float]]  # steps/s by process


class Pace(msgspec.Struct, frozen=True):
    """How fast a rank was in the last seconds, and what is left of its plan."""

    steps: int
    over_ns: float
    steps_per_second: float
    median_ns: float
    data_wait_share: float | None = None
    done: int | None = None
    planned: int | None = None
    left_ns: float | None = None


class Queue(msgspec.Struct, frozen=True):
    """The queue behind an operator, now."""

    op_type: str
    depth: int
    capacity: int


class Rank(msgspec.Struct, frozen=True):
    """What a look says of a rank."""

    text: str
    pid: int | None = None
    pace: Pace | None = None
    queues: list[Queue] = []


class Look(msgspec.Struct, frozen=True):
    """What is shown of a run at a time."""

    state: str
    ranks: list[Rank] = []
    machine: dict[str, Any] | None = None
    verdict: dict[str, Any] | None = None


def seen(content: dict[str, Any]) -> Look:
    """What a look found."""
    return msgspec.convert(content, Look)


class Watch:
    """Looks at a run again and again, at most so often that it costs little."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._verdict: dict[str, Any] | None = None
        self._judge_at = 0.0
        self._wait_s = 0.0  # from the end of a look to the next
        self._newest: dict[str, Any] | None = None
        self._look_at = 0.0

    def looks(self) -> Iterator[dict[str, Any]]:
        """One dict after the other as long as the run is recorded, and one more when it has ended."""
        while True:
            content = self._looked()
            yield content
            if content["state"] != status.RECORDING:
                return
            time.sleep(self._wait_s)

    def now(self) -> dict[str, Any]:
        """The newest of these looks, for who asks at times of their own."""
        if self._newest is None or time.monotonic() >= self._look_at:
            self._newest = self._looked()
            self._look_at = time.monotonic() + self._wait_s
        return self._newest

    def _looked(self) -> dict[str, Any]:
        began = time.monotonic()
        content = self.look()
        took = time.monotonic() - began
        if content["state"] == status.RECORDING:
            content["verdict"] = self._judged(content["ranks"])
        self._wait_s = max(EVERY_S - took, took / SHARE if took > SHARE * EVERY_S else 0.0)
        return content

    def look(self) -> dict[str, Any]:
        """What is known now: {run, state, ranks, machine, verdict}; times in ns, shares of 1.

        `verdict` is that of `status`, which a run has that has ended; of one that is recorded `looks` makes it.
        """
        from pipeprof.read.spool import recent  # noqa: PLC0415 - slow to import; a run that has ended needs none

        self._run = load(self._run.path)
        content = status.build(self._run)
        newest = [self._run.spool / f"rep={rep}" for rep in self._run.spooled_reps()[-1:]]
        folders = {path.name.split("-")[1]: path for spool in newest for path in spool.glob("proc-*")}
        for row in content["ranks"]:
            folder = folders.get(str(row["pid"]))
            pace = None if folder is None else recent.pace(folder)
            row["pace"] = None if pace is None else {
                "steps": pace.steps, "over_ns": pace.over_ns, "steps_per_second": pace.per_second,
                "median_ns": pace.median_ns, "data_wait_share": pace.wait_share,
                "done": pace.done, "planned": pace.planned, "left_ns": pace.left_ns,
            }  # fmt: skip
        machine = next((recent.usage(spool) for spool in newest), None)
        content["machine"] = None if machine is None else vars(machine)
        content["schema_version"] = TOP_VERSION
        return content

    def _judged(self, ranks: list[dict[str, Any]]) -> dict[str, Any] | None:
        """The verdict on what was recorded so far; made anew after 10 s, or 50 times as long as it took.

        Before `EARLY_S` its `first_screen` is None, and each look counts the steps anew, by the pace of the ranks.
        """
        from pipeprof.read.spool.recent import snapshot  # noqa: PLC0415

        now = _by_pace(ranks)
        early = now | {"first_screen": None}
        if self._verdict is None and now["training_ns"] < EARLY_S * 1e9:
            return early
        began = time.monotonic()
        if began < self._judge_at:
            return self._verdict or early
        try:
            with snapshot(self._run) as taken:
                content = build(taken)
        except (PipeprofError, OSError):
            return self._verdict
        finally:
            self._judge_at = time.monotonic() + max(VERDICT_S, (time.monotonic() - began) / SHARE)
        trained = _trained(content["steps"]["summary"])
        if trained["training_ns"] < EARLY_S * 1e9:  # most of these steps are warm-up
            self._judge_at = time.monotonic() + VERDICT_S
            return self._verdict or early
        self._verdict = trained | {name: content[name] for name in ("first_screen", "verdict")}
        return self._verdict


def show(content: dict[str, Any], form: str) -> None:
    """Print one look to stdout: for people, or as a line of JSON."""
    if form == "json":
        sys.stdout.write(json_text.line(content))
    else:
        print_drawn(lambda console: draw(console, content))


def text(content: dict[str, Any], form: str) -> str:
    """One look as text: for people, or as a line of JSON."""
    if form == "json":
        return json_text.line(content)
    return "".join(f"{escape.line(line)}\n" for line in lines(content))


def draw(console: Console, content: dict[str, Any]) -> None:
    """One look for people."""
    console.print(Group(*map(_text, lines(content))))


def watch(looks: Iterator[dict[str, Any]]) -> None:
    """Each look in the place of the one before, on a terminal; Ctrl-C ends it."""
    console = Console(highlight=False, no_color=not has_colours())
    past: Past = defaultdict(lambda: deque(maxlen=PAST))
    with Live(console=console, auto_refresh=False, vertical_overflow="ellipsis") as shown:
        try:
            for content in looks:
                remember(past, content)
                shown.update(dashboard(content, past, utf=console.encoding.startswith("utf")), refresh=True)
        except KeyboardInterrupt:
            return


def remember(past: Past, content: dict[str, Any]) -> None:
    """Add the steps/s of each process in a look to those of the looks before."""
    for rank in seen(content).ranks:
        past[rank.pid].append(rank.pace.steps_per_second if rank.pace else 0.0)


def dashboard(content: dict[str, Any], past: Mapping[int | None, Sequence[float]], *, utf: bool) -> Group:
    """A look for a terminal of 80 x 24: the verdict and the machine first, then as many ranks as have room.

    `past`: steps/s of the looks up to this one, by process.
    """
    look = seen(content)
    if not look.ranks:
        return Group(*map(_text, lines(content)))
    said = [line for line in so_far(look.verdict) if line]
    shown = [_text(line, "" if number else "bold") for number, line in enumerate(said)]
    shown += [Text(), *(_text(line) for line in machine_lines(look.machine) if line)]
    for rank in look.ranks:
        paces = past.get(rank.pid, ())
        shown += [Text(), _text(rank.text, "bold")]
        shown += [Text("  steps/s ").append(sparkline(paces), "cyan")] if utf and len(paces) > 1 else []
        shown += [*map(_text, pace_lines(rank.pace)), *(_queue(queue, utf=utf) for queue in rank.queues)]
    return Group(*shown)


def _text(line: str, style: str = "") -> Text:
    return Text(escape.line(line), style)


def _queue(queue: Queue, *, utf: bool) -> Text:
    """Its bar; one that is empty, whose reader waits, in red."""
    drawn = Text("  ").append(bar(_fill(queue), BAR, utf=utf), "cyan" if queue.depth else "bold red")
    return drawn.append(escape.line(_behind(queue)))


def lines(content: dict[str, Any]) -> list[str]:
    """A line for the run, one or two for each rank, its queues as bars, the machine, and the verdict so far."""
    look = seen(content)
    if not look.ranks:
        return [status.run_sentence(content)]
    shown = []
    for rank in look.ranks:
        queues = (f"  {bar(_fill(queue), BAR, utf=False)}{_behind(queue)}" for queue in rank.queues)
        shown += [rank.text, *pace_lines(rank.pace), *queues]
    return shown + machine_lines(look.machine) + so_far(look.verdict)


def pace_lines(pace: Pace | None) -> list[str]:
    """How fast a rank is, and what is left."""
    if pace is None:
        return ["  no pace yet: fewer than two steps were recorded"]
    share = pace.data_wait_share
    waiting = "" if share is None else f", {format_ratio(share)} of it waiting for data"
    rate = f"{pace.steps_per_second:.4g} steps/s, median step {format_ns(pace.median_ns)}{waiting}"
    shown = [f"  {rate} ({format_count(pace.steps, 'step')} in {format_ns(pace.over_ns)})"]
    if pace.left_ns is not None:
        left = format_ns(pace.left_ns)
        shown.append(f"  step {pace.done:,} of {pace.planned:,}: {left} left at this pace")
    return shown


def _fill(queue: Queue) -> float:
    return queue.depth / queue.capacity


def _behind(queue: Queue) -> str:
    """What stands behind its bar."""
    return f" {queue.depth:>4} of {queue.capacity:<4} {queue.op_type}"


def machine_lines(machine: dict[str, Any] | None) -> list[str]:
    """A blank line, and what the machine does."""
    if machine is None:
        return []
    job = f"{format_count(machine['processes'], 'process')} of this job: {machine['job_cores']:.2f} cores"
    return ["", f"machine: {format_ratio(machine['idle_share'])} idle; {job}, {format_bytes(machine['rss_bytes'])}"]


def _trained(summary: list[dict[str, Any]]) -> dict[str, Any]:
    """Training steps of all ranks, and the time that the steps of one rank took, of the one with most, in ns."""
    rows = [row for row in summary if row["kind"] == "train"]
    spent = max((row["steps"] * row["mean_ns"] for row in rows if row["mean_ns"] is not None), default=0.0)
    return {"training_steps": sum(row["steps"] for row in rows), "training_ns": spent}


def _by_pace(ranks: list[dict[str, Any]]) -> dict[str, Any]:
    """As `_trained`, of the last seconds: of the rank with most of them, the steps of all."""
    paces = [row["pace"] for row in ranks if row.get("pace")]
    return {
        "training_steps": sum(pace["steps"] for pace in paces),
        "training_ns": float(max((pace["over_ns"] for pace in paces), default=0)),
    }


def so_far(verdict: dict[str, Any] | None) -> list[str]:
    """A blank line, and the verdict so far."""
    if verdict is None:
        return []
    screen, steps = verdict["first_screen"], format_count(verdict["training_steps"], "training step")
    if screen is None:
        said = f"{steps} in {format_ns(verdict['training_ns'])}; a verdict needs {EARLY_S} s of them"
        return ["", f"Too early to tell what limits the training: {said}"]
    return [
        "",
        f"So far ({steps}): {screen['sentence']}",
        *(f"  {label}: {text}" for label, text in labelled(Answer.of(screen))),
    ]
