"""Across ranks: which of them hold the others up, what is waited for, pipeline stages, slow links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeprof.report.answer.shape import capital
from pipeprof.report.ops.content import amount
from pipeprof.report.sections.block import Block, Section, filled, format_rate, portion, short_name
from pipeprof.report.words.names import PHASES, title
from pipeprof.units import format_count, format_ns, format_ratio

Row = dict[str, Any]

MOST_ROWS = 8
LONGEST = PHASES | {"communication": "communication (the longest waits)"}


def stragglers_section(content: dict[str, Any]) -> Section:
    """Empty when one rank was recorded."""
    section = Section("Stragglers and waits between ranks")
    ranks = content["ranks"]
    straggler = ranks["straggler"]
    section.strong += straggler_sentences(straggler)
    section.notes += _reasons(straggler) + _suggestions(straggler)
    section.notes += [_slow_link(link) for link in ranks["slow_links"][:MOST_ROWS]]
    _stages(section, ranks["stage"], content["top"])
    add_flops(section, ranks["flops"])
    _differences(section, ranks["phase_diff"])
    _waits(section, ranks["collective_wait"], content["steps"]["communication"])
    _links(section, ranks["link"])
    return section


def straggler_sentences(straggler: Row) -> list[str]:
    """One sentence for each rank that holds the others up, or one that says that none can be named."""
    if straggler["verdict"] == "not_measured":
        return []
    if straggler["verdict"] == "straggler":
        more = len(straggler["found"]) - MOST_ROWS
        rest = [f"and {more} more rank{'' if more == 1 else 's'}"] if more > 0 else []
        return [_named(item) for item in straggler["found"][:MOST_ROWS]] + rest
    largest = straggler["largest"]
    limit = ""
    if straggler["detectable_share"] is not None and straggler["detectable_share"] < 1:
        limit = f". Only a rank at least {format_ratio(straggler['detectable_share'])} slower could be detected"
    seen = (
        f"largest difference in {title(largest['measure'])}: rank {largest['rank']}, "
        f"{format_ns(largest['excess_ns'])} ({format_ratio(largest['share'])} of a step)"
    )
    if straggler["verdict"] == "even":
        return [f"No straggler. {capital(seen)}{limit}"]
    return [f"It is not clear whether a rank is a straggler: {straggler['why']}. {capital(seen)}{limit}"]


def _named(item: Row) -> str:
    often = {
        "steady": "",
        "once": " in the one step that was recorded" if item["steps"] == 1 else f" in {item['steps']} steps",
        "sometimes": f" on average, all of it in {item['held_up_steps']} of {item['steps']} steps",
    }[item["kind"]]
    sure = f"{item['confidence']} confidence" + (f": {'; '.join(item['doubts'])}" if item["doubts"] else "")
    where = "" if item["phase"] is None else f", most of it in {PHASES[item['phase']]}"
    return (
        f"Rank {item['rank']} is a straggler: {format_ns(item['excess_ns'])} per step "
        f"({format_ratio(item['share'])}) longer than the others{often}{where} ({sure})"
    )


def _reasons(straggler: Row) -> list[str]:
    return [
        f"{item['what']}: {format_ratio(item['value']) if item['unit'] == 'share' else format_ns(item['value'])} "
        f"({item['basis']}; query {item['source']})"
        for rank in straggler["found"][:MOST_ROWS]
        for item in rank["evidence"]
    ]


def _suggestions(straggler: Row) -> list[str]:
    return [f"Try: {text}" for rank in straggler["found"][:MOST_ROWS] for text in rank["suggestions"]]


def _slow_link(link: Row) -> str:
    return (
        f"slow link: {_ends(link)} ({link['transport']}) moves equal amounts "
        f"{link['ratio']:.2f}x as fast as links like it ({link['compared']} moves; query rank/link)"
    )


def _ends(link: Row) -> str:
    """The two ranks; with their group when they are numbered within it."""
    group = f" of group {short_name(link['local_group'])}" if link["local_group"] else ""
    return f"{link['src_rank']} to {link['dst_rank']}{group}"


def _stages(section: Section, rows: Sequence[Row], top: int) -> None:
    """How groups of ranks divide a step; of one group only with bubbles."""
    if len(rows) < 2 and not any(row["bubble_ns"] for row in rows):
        return
    basis = {"stage": "pipeline stage", "send_receive": "ranks that send and receive alike", "all": "ranks"}
    listed = [
        [
            f"{row['peers']}: rank {row['first_rank']}" + (f" to {row['last_rank']}" if row["ranks"] > 1 else ""),
            *(format_ns(row[f"{name}_ns"]) for name in ("computing", "exposed", "receive")),
            portion(row, "bubble"),
            f"{row['slowest_rank']} (+{100 * (row['computing_excess'] or 0):.1f} %)" if row["ranks"] > 1 else "-",
        ]
        for row in rows[:top]
    ]  # fmt: skip
    head = (basis[rows[0]["basis"]], "computing", "exposed", "receiving", "bubble", "computes longest")
    section.blocks.append(filled(head, listed, words=(0, 5)))


def _differences(section: Section, rows: Sequence[Row]) -> None:
    """The ranks that take longest in each phase, beside what the others take."""
    phases: dict[str, Row] = {}
    for row in rows:
        best = phases.get(row["phase"])
        if best is None or row["diff_ns"] > best["diff_ns"]:
            phases[row["phase"]] = row
    listed = [
        [
            LONGEST[row["phase"]], str(row["rank"]), format_ns(row["median_ns"]),
            format_ns(row["diff_ns"]),
            format_ratio(row["diff_ns"] / row["step_ns"]) if row["step_ns"] else "-",
            "-" if row["steps"] < 3 else f"{format_ns(row['diff_low_ns'])} to {format_ns(row['diff_high_ns'])}",
        ]
        for row in sorted(phases.values(), key=lambda row: -row["diff_ns"])
        if row["diff_ns"]
    ]  # fmt: skip
    if listed:
        section.blocks.append(
            filled(("longest phases", "rank", "median", "longer by", "of a step", "middle half"), listed)
        )
        section.notes.append(
            "longer by: than the median of the other ranks in the same step; middle half: of these differences"
        )


def _waits(section: Section, rows: Sequence[Row], communication: Sequence[Row]) -> None:
    listed = [
        [
            f"{row['kind'] or ''} {short_name(row['name'])}".strip(), str(row["ranks"]), str(row["events"]),
            format_ns(row["transfer_ns"]), format_ns(row["waiting_ns"]), format_ratio(row["wait_share"]),
            "-" if row["last_rank"] is None else f"{row['last_rank']} ({format_ratio(row['last_share'])})",
        ]
        for row in rows
    ]  # fmt: skip
    if not listed:
        return
    section.blocks.append(
        Block(
            ("collective", "ranks", "count", "transfer", "waiting", "waiting share", "last"),
            listed,
            frozenset(range(1, 7)),
        )
    )
    section.notes.append(
        "transfer: median; waiting in a collective: total of all its ranks together, beyond the shortest; waiting "
        "share: of its time on all ranks; last: the rank that causes most of it"
    )
    if any(row["kind"] in ("send", "receive") for row in communication):
        section.notes.append("sending and receiving between two ranks is not in the table of collectives")


def _links(section: Section, rows: Sequence[Row]) -> None:
    listed = [
        [
            row["transport"], _ends(row), str(row["moves"]), format_rate(row["rate"]),
            "-" if row["ratio"] is None else f"{row['ratio']:.2f}x",
        ]
        for row in rows
    ]  # fmt: skip
    if listed:
        section.blocks.append(
            filled(("link", "slowest", "moves", "rate", "compared with links like it"), listed, words=(0, 1))
        )


_MOST_FLOPS_ROWS = 8
STAGE = "pipeline stage {stage} computes {flops} in a step, {excess} more than the mean of the stages"
RANK = "rank {rank} computes {speed}, {shortfall} less than the mean of the ranks"


def add_flops(section: Section, flops: Mapping[str, Any] | None) -> None:
    """Stages with their means, else ranks, slowest first; and what MindInsight's rules name."""
    if flops is None:
        return
    rows, first = (flops["stages"], "stage") if flops["stages"] else (flops["ranks"], "rank")
    shown = (
        sorted(rows, key=lambda row: row["flops_per_s"])[:_MOST_FLOPS_ROWS]
        if first == "rank"
        else rows[:_MOST_FLOPS_ROWS]
    )
    listed = [
        [
            str(row[first]), str(row["ranks"]) if first == "stage" else "-",
            amount(row["flops"], "FLOP"), amount(row["flops_per_s"], "FLOPS"),
            "-" if row.get("peak_percent") is None else f"{row['peak_percent']:.3g} %",
        ]
        for row in shown
    ]  # fmt: skip
    names = {"stage": "pipeline stage", "rank": f"rank ({len(shown)} of {len(rows)})"}
    head = (names[first], "ranks", "operations of a step", "speed", "of the device's peak")
    section.blocks.append(filled(head, listed, words=()))
    section.notes.append(f"MindInsight's rules on FLOPs would name: {_flops_name(flops)}")


def _flops_name(flops: Mapping[str, Any]) -> str:
    if not flops["judged"]:
        there = format_count(len(flops["ranks"]), "rank")
        of = f" of {flops['expected']}" if flops["expected"] else ", and how many there were is not known"
        return f"nothing, since they need the files of all ranks ({there}{of})"
    names = []
    if stage := flops["stage"]:
        names.append(
            STAGE.format(
                stage=stage["stage"], flops=amount(stage["flops"], "FLOP"), excess=format_ratio(stage["excess"])
            )
        )
    if rank := flops["rank"]:
        speed, shortfall = amount(rank["flops_per_s"], "FLOPS"), format_ratio(rank["shortfall"])
        names.append(RANK.format(rank=rank["rank"], speed=speed, shortfall=shortfall))
    return "; ".join(names) or "nothing: no stage computes a fifth more, and no rank a fifth slower, than the mean"
