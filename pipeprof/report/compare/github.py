"""A comparison for GitHub: the job's summary, annotations, and the body of the one comment on a pull request."""

from __future__ import annotations

import hashlib
from typing import Any

from pipeprof.escape import log_data, log_property
from pipeprof.report.compare import comment as compare_comment
from pipeprof.report.compare import rows, sections
from pipeprof.report.compare import trust as compare_trust

SUMMARY_BYTES = 1_000_000  # GitHub refuses more than 1 MiB per step
COMMENT_BYTES = 60_000  # GitHub refuses more than 65,536; the poster adds a line
ANNOTATIONS = 10  # per step, of each kind
ANNOTATED_EDITS = 3
COMMENT_ROWS = 30
MOST_FOLDS = 2  # one within the other
MARK = "<!-- pipeprof-gate:"


def summary(content: dict[str, Any]) -> str:
    """Markdown for the job's summary; cut, with a note, where GitHub would refuse it."""
    return cut(sections.text(content, "markdown"), SUMMARY_BYTES, "The rest is in the artifact `compare.md`.")


def comment(content: dict[str, Any]) -> str:
    """Body of the comment. The first line is a mark, which readers do not see, to find it again."""
    whole = f"{marker(content)}\n{compare_comment.text(content, COMMENT_ROWS)}"
    return cut(whole, COMMENT_BYTES, "The rest is in the artifact `compare.md` of the run.")


def cut(whole: str, limit: int, note: str) -> str:
    """The text, or as many of its first lines as fit into `limit` bytes together with the note."""
    if len(whole.encode()) <= limit:
        return whole
    room = limit - len(note.encode()) - MOST_FOLDS * len("\n</details>") - len("\n\n\n")
    kept: list[str] = []
    for line in whole.splitlines():
        room -= len(line.encode()) + 1
        if room < 0:
            break
        kept.append(line)
    folded = sum(line.startswith("<details>") for line in kept) - kept.count("</details>")
    return "\n".join([*kept, *["</details>"] * folded, "", note]) + "\n"


def marker(content: dict[str, Any]) -> str:
    """The mark of this workload's comment; two have two comments, also where a mark cannot hold their names."""
    name, shown = rows.workload_name(content), rows.workload(content)
    apart = "" if shown == name else f"-{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:8]}"
    return f"{MARK}{shown}{apart} -->"


def annotation_lines(content: dict[str, Any]) -> list[str]:
    """At most ten workflow commands: the verdict, each primary metric that is not fine, then what explains it.

    Behind the verdict come edits of the change to the policy or the baseline, also of one that passes.
    """
    level = "error" if rows.undecided_and_red(content) else _level(content["exit_code"], content["verdict"])
    level = "warning" if rows.unconfirmed(content) else level
    edits = compare_trust.edits(content) if compare_trust.loosens(content) else []
    lines = [command("warning", compare_trust.title(content), line) for line in edits[:ANNOTATED_EDITS]]
    if level is not None:
        lines.insert(0, command(level, rows.title(content), content.get("headline") or content["verdict"]))
    for metric in content["metrics"]:
        weight = _weight(metric, level, undecided=rows.undecided_and_red(content))
        if weight is not None:
            name, base, new, change, verdict, _ = rows.cells(metric)
            reason = f" ({rows.reason(metric)})" if rows.reason(metric) else ""
            about = f"{name} {verdict}: {base} -> {new}, {change}{reason}"
            lines.append(command(weight, verdict, about))
    if level is not None:
        lines += [command("notice", rows.why_title(content), one.text) for one in rows.lines(content)]
    return lines[:ANNOTATIONS]


def _weight(metric: dict[str, Any], level: str | None, *, undecided: bool) -> str | None:
    """How a metric is annotated, if at all: one that informs warns, also in a comparison that passes.

    Only one that decides is an error; what explains, or is only counted, has its place in the other forms.
    """
    family, verdict = metric.get("family"), metric["verdict"]
    if family == "informing":
        return "warning" if verdict == "regressed" else None
    if family != "primary" or level is None:
        return None
    if verdict == "inconclusive":  # of one that made the check red, an error
        return "error" if undecided else "warning"
    return level if verdict in rows.FAILURES else None


def command(level: str, title: str, message: str) -> str:
    """`::error title=...::...` on one line, escaped as the runner unescapes it."""
    return f"::{level} title={log_property(rows.clean(title))}::{log_data(rows.clean(message))}"


def _level(exit_code: int, verdict: str) -> str | None:
    if exit_code == 0:
        return "notice" if verdict in ("improved", "acknowledged") else None
    return "warning" if exit_code == 4 else "error"
