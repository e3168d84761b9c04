"""What a step, or the whole run, is made of: the parts of a bar, and which of them limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from pipeprof.escape import line
from pipeprof.query.rows import RunAccount, typed
from pipeprof.report.answer import verdict_in
from pipeprof.report.answer.shape import capital
from pipeprof.report.charts.chart import COLOURS
from pipeprof.report.charts.chart import PHASES as COLOUR_OF
from pipeprof.report.sections.block import focus_of, rows_at
from pipeprof.report.words import training
from pipeprof.report.words.names import COMMUNICATION, INTERVALS, TRACE, title
from pipeprof.verdict.data_cause import CODES as DATA
from pipeprof.verdict.data_cause import SHARED
from pipeprof.verdict.network import LIMIT_OF
from pipeprof.verdict.network import PARTS as SHARES
from pipeprof.verdict.ranking import COSTS, PART, WORK
from pipeprof.verdict.run_account import RECURRING, TRAINING, CostlyPart

Row = dict[str, Any]

LEAST = 0.0005  # of the bar: a part that is narrower cannot be seen, and is none
MOST_PARTS = 7  # of the whole run


class Part(NamedTuple):
    """A part of a bar: `share` (0..1) of the whole; `ns` where its length is known."""

    name: str
    ns: float | None
    share: float
    colour: str
    limits: bool


class Bar(NamedTuple):
    """Parts that add up to what the title names."""

    title: str
    parts: Sequence[Part]


def bar_of(content: dict[str, Any]) -> Bar | None:
    """The bar that shows what leads the verdict; None where fewer than two parts are known."""
    lead = verdict_in(content).lead
    bar = _whole_run(content) if lead.code == PART else None
    if bar is None and lead.code in (*COSTS, *WORK):
        bar = _shares(content, lead.code)
    bar = bar or _step(content, waits=lead.code in DATA and lead.code != SHARED)
    return bar if bar is not None and len(bar.parts) > 1 else None


def _shares(content: dict[str, Any], limit: str) -> Bar | None:
    """The step by what the verdict on the network weighs."""
    shares = content["diagnosis"]["network"]["shares"]
    if not shares:
        return None
    parts = [
        Part(_worded(content, code), None, shares[code], COLOUR_OF[code], LIMIT_OF.get(code) == limit)
        for code in ("data_wait", *(code for code in SHARES if code != "data_wait"))
        if shares[code] >= LEAST
    ]
    return Bar(f"Mean {training.unit(content['run'])}", parts)


def _worded(content: dict[str, Any], code: str) -> str:
    name = COMMUNICATION.get(code) or title(code)
    return training.wording(content["run"])(name)


def _step(content: dict[str, Any], *, waits: bool) -> Bar | None:
    """The mean step by its phases, of the repetition and rank that the diagnosis is about."""
    diagnosis = content["diagnosis"]
    at = focus_of(content) if diagnosis["rep"] is None else (diagnosis["rep"], diagnosis["rank"])
    rows, names = _phases(content, at)
    total = sum(row["mean_ns"] for row in rows)
    if not total:
        return None
    worded = training.wording(content["run"])
    waiting = bool(rows_at(content["steps"]["data_wait"], at))
    parts = [
        Part(
            worded(title("data_wait") if row["phase"] == "data_wait" and waiting else names[row["phase"]]),
            row["mean_ns"], row["mean_ns"] / total, COLOUR_OF[row["phase"]], waits and row["phase"] == "data_wait",
        )
        for row in sorted(rows, key=lambda row: list(COLOUR_OF).index(row["phase"]))
        if row["mean_ns"] / total >= LEAST
    ]  # fmt: skip
    return Bar(f"Mean {training.unit(content['run'])}", parts)


def _phases(content: dict[str, Any], at: tuple[int, int]) -> tuple[list[Row], dict[str, str]]:
    """Rows that add up to the step, and what their phases are called."""
    traced = rows_at(content["steps"]["trace"], at)
    if any(not row["measured"] for row in traced):
        return traced, TRACE
    rows = [row for row in rows_at(content["steps"]["phases"], at) if row["phase"] in COLOUR_OF]
    if any(row["phase"] == "compute" for row in rows):  # its parts are those of other steps
        rows = [row for row in rows if row["phase"] in ("data_wait", "compute")]
    return rows, INTERVALS


def _whole_run(content: dict[str, Any]) -> Bar | None:
    """The run, or the training with what interrupts it: what the gain is of. The largest parts alone."""
    account = content["run_account"]
    if account["leading"] is None:
        return None
    leading = msgspec.convert(account["leading"], CostlyPart)
    named = line(training.name(account["leading"]).replace("`", ""))
    within = leading.loop_share is not None
    spent: dict[str, int] = {}
    rows = typed(RunAccount, rows_at(account["parts"], (leading.rep, leading.rank)))
    for row in sorted(rows, key=lambda row: row.start_ns or 0):
        if leading.has(row) or not within or row.part in (TRAINING, *RECURRING):
            name = named if leading.has(row) else line(training.PARTS.get(row.part, row.part))
            spent[name] = spent.get(name, 0) + row.dur_ns
    total = leading.loop_ns if within else sum(spent.values())
    if not total:
        return None
    largest = sorted(spent, key=lambda name: (name != named, -spent[name]))[:MOST_PARTS]
    colours = iter(colour for colour in (*COLOURS[2:], *COLOURS[:1]) if colour != COLOURS[1])
    bar = [
        Part(name, ns, ns / total, COLOURS[1] if name == named else next(colours), name == named)
        for name, ns in spent.items() if name in largest and ns / total >= LEAST
    ]  # fmt: skip
    rest = total - sum(spent[name] for name in largest)
    if rest / total >= LEAST:
        bar.append(Part("all other parts", rest, rest / total, COLOUR_OF["other"], limits=False))
    return Bar(capital(training.wording(content["run"])("the training loop")) if within else "The whole run", bar)
