"""The accuracy table as a page."""

from __future__ import annotations

from typing import Any

from score import MOST_WAIT, THEIRS, contradicted

HEAD = """# Accuracy of the diagnosis

Made by `python lab/accuracy/score.py --write docs/accuracy.md` from the captures in `tests/accuracy/captures`; do not
edit. The diagnosis of {number} input pipelines with a known bottleneck: {designed} designed, {drawn} drawn at random. Their
labels follow from how they were built, see `tests/accuracy/PROVENANCE.md`. They were recorded with pipeprof's default
options, MindSpore {mindspore}, {cores} cores, about 4 s each. Intervals are Wilson's, 95 %.

The rules were developed on the designed pipelines, and corrected where earlier draws showed them wrong. "drawn last" are
those of the last seed: they were recorded with the rules as they are now, and no rule was changed afterwards.{left_out}
"""
LEFT_OUT = """ Left out, because it was built
with a slow loop, and yet that loop waited for data more than {share:.0%} of the time by its own clock: {names}."""
IMPORTED = {
    "raw": "MindSpore's own files with timing lines, recorded without pipeprof",
    "sink": "Sink mode, simulated files",
}
FIGURES = {
    "top1": "named the right stage",
    "top2": "right stage among the first two",
    "kind": "named the right kind",
    "first_top1": "named the right stage from the first 10 steps",
    "high_share": "high confidence",
}


LISTS = """# Every pipeline and every change

Made by `python lab/accuracy/score.py --write docs/accuracy.md`, whose page has the sums; do not edit.
"""
MORE = "[Every change, and every pipeline](https://github.com/pipeprof/pipeprof/blob/main/lab/accuracy.md)."


def lists(found: dict[str, Any]) -> str:
    """What the page sums up, one by one."""
    changes = f"## What a change would bring\n\n{found['whatif']['table']}\n"
    return "\n".join([LISTS, changes, _every(found)]).rstrip()


def markdown(found: dict[str, Any], truth: dict[str, Any]) -> str:
    """The whole page."""
    groups = found["summary"]
    head = HEAD.format(
        number=groups["all"]["captures"],
        designed=groups.get("designed", {}).get("captures", 0),
        drawn=groups.get("drawn", {}).get("captures", 0),
        mindspore=truth["versions"]["mindspore"],
        cores=truth["machine"]["cores"],
        left_out=_left_out(truth),
    )
    parts = [head, _figures(groups), _theirs(groups), _confidence(groups["all"]), _imported(found), _whatif(found),
             _misses(found)]  # fmt: skip
    return "\n".join(parts).rstrip()


def _left_out(truth: dict[str, Any]) -> str:
    names = [f"`{name}`" for name, entry in truth["captures"].items() if contradicted(entry)]
    return LEFT_OUT.format(share=MOST_WAIT, names=", ".join(names)) if names else ""


def _figures(groups: dict[str, Any]) -> str:
    rows = [[text, *(_share(group[key]) for group in groups.values())] for key, text in FIGURES.items()]
    rows.append(["slow loop, called input-bound", *(_count(group["false_input_bound"]) for group in groups.values())])
    return "## Result\n\n" + _table(["", *groups], rows)


def _theirs(groups: dict[str, Any]) -> str:
    rows = [["pipeprof", *(_share(group["top1"]) for group in groups.values())]]
    for tool, text in THEIRS.items():
        if tool in groups["all"]["theirs"]:
            rows.append([text, *(_share(group["theirs"][tool]) for group in groups.values())])
    note = (
        "Where a rule cannot name the training loop, naming no operator counts as right for pipelines whose loop is slow. "
        "Where it names several operators, the first one counts.\n\n"
    )
    return "## Other rules on the same captures\n\n" + note + _table(["right stage", *groups], rows)


def _confidence(group: dict[str, Any]) -> str:
    rows = [[level, str(found["of"]), _share(found)] for level, found in group["confidence"].items()]
    return "## Confidence\n\n" + _table(["confidence", "captures", "right"], rows)


def _whatif(found: dict[str, Any]) -> str:
    """Predictions against measurements."""
    figures = found["whatif"]["summary"]
    covered = f"{figures['covered']} of {figures['intervals']}"
    lines = [
        (
            f"{figures['cases']} changes of the number of workers at the stage that limits, predicted from a recording and "
            "measured by running both sides in turn (`python lab/accuracy/whatif.py --measure`, two pairs each).\n"
        ),
        (
            f"- Stages that wait or poll, {figures['waiting']} predictions: the median error of the predicted ratio is "
            f"{figures['median_error']:.1%}, its 90th percentile {figures['p90_error']:.1%}."
        ),
        f"- Stages that compute: the measured ratio lies inside {covered} predicted intervals; the widest is x{figures['widest']:.2f}.",
        f"- Promised gains: {figures['promised']}, of which {len(figures['losses'])} turned into a loss.",
        f"- {figures['refused']} changes got no single number.\n",
    ]
    return "\n".join(["## What a change would bring\n", *lines, MORE, ""])


def _imported(found: dict[str, Any]) -> str:
    parts = ["## Imported files\n"]
    for key, text in IMPORTED.items():
        rows = found["imported"][key]
        wrong = [f"{row['name']} ({row['said']})" for row in rows if not row["right"]]
        misses = f" Wrong: {', '.join(wrong)}." if wrong else ""
        parts.append(f"- {text}: {sum(row['right'] for row in rows)} of {len(rows)} right.{misses}")
    return "\n".join(parts) + "\n"


def _misses(found: dict[str, Any]) -> str:
    wrong = [row for row in found["captures"] if not row["right"]]
    rows = [
        [row["name"], " or ".join(row["accepted"]), ", ".join(row["answer"]["stages"][:2]) or "-",
         row["answer"]["confidence"] or "-"]
        for row in wrong
    ]  # fmt: skip
    return "## Misses\n\n" + (_table(["pipeline", "right", "said", "confidence"], rows) if rows else "None.\n")


def _every(found: dict[str, Any]) -> str:
    rows = [
        [
            row["name"],
            " or ".join(row["accepted"]),
            " or ".join(row["kinds"]) or "-",
            (row["answer"]["stages"] or ["-"])[0],
            row["answer"]["kind"] or "-",
            row["answer"]["confidence"] or "-",
            (row["first"]["stages"] or ["-"])[0],
        ]
        for row in found["captures"]
    ]
    return "## Every capture\n\n" + _table(
        ["pipeline", "right", "kind", "said", "kind said", "confidence", "first 10 steps"], rows
    )


def _share(figure: dict[str, Any]) -> str:
    if not figure["of"]:
        return "-"
    interval = f"{figure['low']:.0%}-{figure['high']:.0%}".replace("%-", "-")
    return f"{figure['share']:.1%} ({figure['right']} of {figure['of']}; {interval})"


def _count(figure: dict[str, Any]) -> str:
    return f"{figure['right']} of {figure['of']}"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows]]
    return "\n".join(lines) + "\n"
