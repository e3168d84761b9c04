"""Memory and CPU; the account of CPU time: who used it in the steady steps and in other phases, and what was left."""

from __future__ import annotations

from typing import Any

from pipeprof.report.answer.interruptions import label
from pipeprof.report.answer.shape import capital
from pipeprof.report.sections.block import Block, Section, filled, rows_at
from pipeprof.report.words.names import CPU_USERS
from pipeprof.units import format_bytes, format_ratio
from pipeprof.verdict.account import THREAD, contention_in

PHASES = {"set_up": "set-up", "warm_up": "warm-up", "steady": "steady", "ending": "after"}
SHORT = "processes that ended between two samples"


def cpu_section(content: dict[str, Any], focus: tuple[int, int]) -> Section:
    """The rank in focus; a process that takes too much is named first, whichever rank it belongs to."""
    section = Section("CPU time")
    account = content["cpu_account"]
    if account["contention"] is not None:
        contention = contention_in(account["contention"])
        share = format_ratio(contention.job_share)
        verb = "takes" if contention.processes < 2 else "take"
        origin, effect = "started at ", "no core is idle"
        if contention.is_thread:
            held = format_ratio(contention.gil_share)
            origin, effect = "", f"the interpreter's lock is held for {held} of the time"
        made = f" ({origin}{contention.site})" if contention.site else ""
        section.strong.append(f"{capital(label(contention))}{made} {verb} {share} of the job's CPU; {effect}")
    parts = rows_at(account["parts"], focus)
    for phase in ("steady", "warm_up", "set_up", "ending"):
        rows = [row for row in parts if row["phase"] == phase]
        if rows:
            section.blocks.append(_used(PHASES[phase], rows))
    rooms = sorted(rows_at(account["room"], focus), key=lambda row: list(PHASES).index(row["phase"]))
    if rooms:
        section.blocks.append(_room(rooms))
    return section


def _used(phase: str, rows: list[dict[str, Any]]) -> Block:
    listed = [
        [
            _who(row), f"{row['cores']:.2f}", format_ratio(row["job_share"]),
            "-" if row["wait_cores"] is None else f"{row['wait_cores']:.2f}", row["site"] or "-", row["library"] or "-",
        ]
        for row in sorted(rows, key=lambda row: (row["job_share"] is None, -row["cpu_ns"]))
    ]  # fmt: skip
    head = (f"CPU, {phase}", "cores", "of the job", "waiting for a core", "started at, or is", "made by")
    return filled(head, listed, words=(0, 4, 5))


def _who(row: dict[str, Any]) -> str:
    if row["part"] == "child" and row["pid"] is None:
        return SHORT
    text = CPU_USERS[row["part"]]
    if row["part"] == THREAD and row["what"]:
        return f"Python thread{'s' if row['processes'] > 1 else ''} {row['what']}"
    name = row["what"] or (row["command"] if row["part"] in ("child", "launcher") else "")
    if row["part"] in ("worker", "child", "launcher"):
        many = f" ({row['processes']})" if row["processes"] > 1 else ""
        return f"{text}{many}: {name}" if name else text + many
    return text


def _room(rows: list[dict[str, Any]]) -> Block:
    listed = [
        [
            PHASES[row["phase"]], _cores(row["cores"]), format_ratio(row["idle_share"]), _cores(row["job_cores"]),
            _cores(row["neighbour_cores"]), format_ratio(row["pressure_share"]), format_ratio(row["throttled_share"]),
            _cores(row["steal_cores"]),
        ]
        for row in rows
    ]  # fmt: skip
    head = (
        "phase", "cores it may use", "idle", "cores of the job", "cores of others", "threads waited", "throttled",
        "cores stolen",
    )  # fmt: skip
    return filled(head, listed)


def _cores(cores: float | None) -> str:
    return "-" if cores is None else f"{cores:.2f}"


def resources_section(content: dict[str, Any], focus: tuple[int, int]) -> Section:
    """Peak memory and mean CPU of the machine and the processes."""
    section = Section("Memory and CPU")
    rows = []
    for row in rows_at(content["memory"], focus):
        what = {"host": "whole machine, in use"}.get(row["device"], f"{row['name'] or row['device']}")
        if row["name"] == "pool":
            what = f"{row['device']} memory pool, in use"
        peak = row["peak_rss_bytes"] if row["device"] == "process" else row["peak_allocated_bytes"]
        if peak is None:
            continue
        rows.append([what, format_bytes(peak), str(row["samples"])])
    if rows:
        section.blocks.append(Block(("memory", "peak", "samples"), rows, frozenset((1, 2))))
    cpu = []
    for row in rows_at(content["host"], focus):
        if row["scope"] == "host":
            cpu.append(["whole machine", f"{format_ratio(row['mean_busy_share'])} busy", str(row["samples"])])
        elif row["total_cores"] is not None:
            cpu.append(
                [
                    f"{row['name'] or 'process'} ({row['processes']})",
                    f"{row['total_cores']:.2f} cores",
                    str(row["samples"]),
                ]
            )
    if cpu:
        section.blocks.append(Block(("CPU", "mean", "samples"), cpu, frozenset((1, 2))))
    return section
