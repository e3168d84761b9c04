"""`pipeprof history --alerts`: what became worse, by which commit, whose it is, and what was decided about it.

Who owns a file: by the rules of CODEOWNERS, else who wrote the line.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from pipeprof.errors import UsageError, did_you_mean
from pipeprof.experiment.policy_file import find_policy
from pipeprof.record.document import BAD_JSON
from pipeprof.record.git import Repository, git_or_none
from pipeprof.record.plain_file import read_file
from pipeprof.report.words.comparison import position
from pipeprof.verdict.gate.alerts import SHORT, Alert, Shift, alerts, counts, is_over

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeprof.verdict.gate.policy import Policy, Rule

    Content = dict[str, Any]


SCHEMA_VERSION = 1
ALERTS = "pipeprof-alerts.jsonl"  # decisions, a line of JSON each; the last one about an alert counts
MOST = 1 << 24  # bytes of it
MOST_PLACES = 50  # commits by which an alert is known again
MOST_TOLD = 1 << 24
CODE = (".py", ".toml", ".yaml", ".yml", ".cfg", ".c", ".cc", ".cpp", ".h", ".cu")
MARK = re.compile(r"<!-- pipeprof-alert:([A-Za-z0-9._-]+)((?: [0-9A-Za-z:+.-]+)*) -->")


class Decision(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, frozen=True):
    """`alert`: its name; `places`: the commits that it lay among, by which it is known again; `on`: an ISO day."""

    alert: str
    state: Literal["new", "acknowledged", "fixed", "wrong"]
    by: str
    why: str
    on: dt.date
    places: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judged:
    """By what alerts are judged: settings and decisions of the revision `base`, of the working tree without one.

    `told`: names of alerts that were told before, with the commits that they lay among.
    """

    policy: Policy
    repository: Repository | None = None
    revision: str | None = None
    decided: Mapping[str, Decision] = field(default_factory=dict)
    told: Mapping[str, Sequence[str]] = field(default_factory=dict)


def judged_by(base: str | None, told: Iterable[Path]) -> Judged:
    """Raises UsageError for a base that git does not know, and for a file of decisions that cannot be read."""
    repository = Repository.around(Path.cwd())
    revision = repository.commit(base or "HEAD") if repository else None
    if base is not None and revision is None:
        raise UsageError(f"git knows no revision `{base}` here", "give a commit, a branch or a tag")
    policy = find_policy(None, revision if base else None).policy
    marks = {name: places for path in told for name, places in marked(_text(path)).items()}
    if base is None or repository is None or revision is None:
        path = decisions_file()
        data = read_file(path, MOST_TOLD) if path.exists() else b""
        return Judged(policy, repository, revision, decisions(data, str(path)), marks)
    data = repository.read(revision, PurePosixPath(ALERTS)) or b""
    return Judged(policy, repository, revision, decisions(data, f"{ALERTS} of {revision[:SHORT]}"), marks)


def decisions_file() -> Path:
    """Where decisions are written: at the root of the repository, outside of one in the working directory."""
    repository = Repository.around(Path.cwd())
    return (repository.root if repository else Path.cwd()) / ALERTS


def decisions(data: bytes, where: str) -> dict[str, Decision]:
    """The decision about each alert. Raises UsageError that names the line which cannot be read."""
    found: dict[str, Decision] = {}
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            decision = msgspec.json.decode(line, type=Decision)
        except BAD_JSON as error:
            raise UsageError(
                f"`{where}` line {number} is no decision: {error}",
                "write it with `pipeprof history WORKLOAD --alerts --decide ALERT=STATE --why REASON`",
            ) from error
        found.pop(decision.alert, None)
        found[decision.alert] = decision
    return found


def append(path: Path, decision: Decision) -> None:
    """Add a decision to the file, on a line of its own."""
    old = read_file(path, MOST) if path.exists() else b""
    decisions(old, str(path))
    with path.open("ab") as stream:
        stream.write((b"\n" if old and not old.endswith(b"\n") else b"") + msgspec.json.encode(decision) + b"\n")


def marked(text: str) -> dict[str, list[str]]:
    """The alerts that a text tells, by their marks, with the commits that they lay among then."""
    return {name: places.split() for name, places in MARK.findall(text)}


def _text(path: Path) -> str:
    return read_file(path, MOST_TOLD).decode("utf-8", "replace") if path.exists() else ""


def alerts_of(history: Content, judged: Judged) -> Content:
    """The content of `pipeprof history --alerts --format json`, from that of `history_of`; the latest alert first."""
    shifts = list(_shifts(history, judged.policy))
    shifts.sort(key=lambda one: (len(one.places), position(one.metric)[0]))  # what says most goes first
    known = dict(judged.told) | {name: one.places for name, one in judged.decided.items() if one.places}
    known |= {name: () for name in judged.decided if name not in known}
    found = [_alert(one, history, judged) for one in alerts(shifts, known)]
    found.sort(key=lambda one: one["at"] or "", reverse=True)
    return {
        "schema_version": SCHEMA_VERSION, "source": history["source"], "measurements": history["measurements"],
        "base_revision": judged.revision, "alerts": found, "left_out": history["left_out"],
        "enough": all(one["enough"] for one in history["series"]),
    }  # fmt: skip


def user() -> str | None:
    """Who git says works here; None when it does not know."""
    return git_or_none(Path.cwd(), "config", "user.name") or None


def decide(content: Content, words: str, by: str | None, why: str | None, today: str) -> Path:
    """Write down `ALERT=STATE`; gives the file.

    Raises UsageError for an alert or a state that there is not, and without a name or a reason.
    """
    name, _, state = words.partition("=")
    states = ("acknowledged", "wrong", "fixed", "new")
    if state not in states:
        raise UsageError(f"`{state}` is no state of an alert", f"give one of {', '.join(states)}: {name}=acknowledged")
    found = {one["name"]: one for one in content["alerts"]}
    if name not in found:
        raise UsageError(f"there is no alert `{name}`", did_you_mean(name, sorted(found)))
    for option, text in (("by", by), ("why", why)):
        if not text:
            raise UsageError(f"a decision needs --{option}", f"pipeprof history ... --decide {words} --{option} ...")
    path = decisions_file()
    line = {"alert": name, "state": state, "by": by, "why": why, "on": today, "places": found[name]["commits"]}
    append(path, msgspec.convert(line, Decision))
    return path


def _shifts(history: Content, policy: Policy) -> Iterable[Shift]:
    """Changes for the worse that count. One between two measurements of one commit is none of the code."""
    for number, series in enumerate(history["series"]):
        for at, change in enumerate(series["changes"]):
            span = change["range"]
            shift = Shift(
                key=(number, at), workload=series["workload"], metric=series["metric"], before=change["before"],
                after=change["after"], now=series["changes"][-1]["after"], at=change["at"] or "",
                place=change["revision"] or change["at"] or "", places=_places(series, change),
            )  # fmt: skip
            if counts(shift, _rule(series, policy)) and not (span["same_revision"] and not span["uncommitted"]):
                yield shift


def _rule(series: Content, policy: Policy) -> Rule:
    """The rule of a series; an absolute floor says nothing of ratios to an anchor."""
    rule = policy.rule(series["metric"])
    return msgspec.structs.replace(rule, floor=0.0) if series["anchor"] else rule


def _places(series: Content, change: Content) -> tuple[str, ...]:
    """The commits that a change may lie at, short; the times of the measurements where no commit is known."""
    points = series["points"][change["earliest"] : change["latest"] + 1]
    measured = [(point["revision"] or "")[:SHORT] or str(point["at"]).replace(" ", "T") for point in points]
    between = [commit["revision"][:SHORT] for commit in change["range"]["commits"] or []]
    return tuple(dict.fromkeys([*between[::-1], *measured]))


def _alert(one: Alert, history: Content, judged: Judged) -> Content:
    lead = one.shifts[0]
    series = history["series"][lead.key[0]]
    change = series["changes"][lead.key[1]]
    decision = judged.decided.get(one.name)
    rules = [_rule(history["series"][shift.key[0]], judged.policy) for shift in one.shifts]
    over = all(is_over(shift, rule) for shift, rule in zip(one.shifts, rules, strict=True))
    state = decision.state if decision and decision.state != "new" else "fixed" if over else "new"
    return {
        "name": one.name, "workload": one.workload, "state": state, "metric": lead.metric, "unit": series["unit"],
        "anchor": series["anchor"], "ratio": change["ratio"], "before": lead.before, "after": lead.after,
        "at": change["at"], "commits": list(one.places[:MOST_PLACES]), "because": change["because"],
        "also": [
            {"metric": shift.metric, "machine": history["series"][shift.key[0]]["machine"],
             "ratio": shift.after / shift.before}
            for shift in one.shifts[1:]
        ],
        "decided": {"by": decision.by, "why": decision.why, "on": str(decision.on)} if decision else None,
        "over_since": _over_since(series, lead, rules[0]) if over else None,
        **_whose(series, lead, one.places, judged),
    }  # fmt: skip


def _over_since(series: Content, lead: Shift, rule: Rule) -> Content | None:
    """The measurement from which on the level is what it was."""
    levels = series["changes"][lead.key[1] + 1 :]
    for at, change in enumerate(levels):
        rest = [replace(lead, now=later["after"]) for later in levels[at:]]
        if all(is_over(one, rule) for one in rest):
            return {"at": change["at"], "revision": change["revision"]}
    return None


def _likeliest(series: Content, lead: Shift, places: Sequence[str]) -> Content | None:
    """The commit of the first measurement at the new level, where no other one came between it and the one before."""
    change = series["changes"][lead.key[1]]
    listed = change["range"]["commits"] or []
    short = lead.place[:SHORT] if lead.place[:SHORT] in places else places[0]
    measured = {point["revision"] for point in series["points"]}
    for at, commit in enumerate(listed):
        if commit["revision"].startswith(short):
            alone = at + 1 == len(listed) or listed[at + 1]["revision"] in measured
            return dict(commit) if alone else None
    known = change["revision"] and not change["range"]["commits"] and len(places) == 1
    return {"revision": change["revision"], "subject": None} if known else None


def _whose(series: Content, lead: Shift, places: Sequence[str], judged: Judged) -> Content:
    """The likeliest commit, the file of the cause, and who owns it."""
    change = series["changes"][lead.key[1]]
    found = _likeliest(series, lead, places)
    commit = found["revision"] if found else None
    place = (change["cause"] or {}).get("place_new") or (change["cause"] or {}).get("place_base")
    content: Content = {
        "commit": found and found | {"author": None, "certain": len(places) == 1},
        "file": None, "place": place, "owners": [], "owner_by": None,
    }  # fmt: skip
    repository = judged.repository
    if repository is None or judged.revision is None:
        return content
    author = author_of(repository, commit) if commit else None
    if content["commit"]:
        content["commit"]["author"] = author
    name, _, line = (place or "").rpartition(":")
    changed = files_of(repository, commit) if commit else []
    code = [path for path in changed if path.endswith(CODE)]
    file = name if name and (not changed or name in changed) else code[0] if len(code) == 1 else name or None
    content["file"] = file
    owners = owners_of(repository, judged.revision, PurePosixPath(file)) if file else []
    if owners:
        return content | {"owners": owners, "owner_by": "codeowners"}
    bad = commit or change["range"]["bad"]
    if file and file == name and line.isdigit() and bad:
        writer = writer_of(repository, bad, PurePosixPath(file), int(line))
        if writer:
            return content | {"owners": [writer], "owner_by": "blame"}
    return content | ({"owners": [author], "owner_by": "commit"} if author else {})


FILES = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")  # the first that is there counts
OWNER = re.compile(r"@[A-Za-z0-9][A-Za-z0-9-]*(/[A-Za-z0-9._-]+)?|[^\s@]+@[^\s@]+")
_PARTS = re.compile(r"\*\*/|\*\*|\*|\?|[^*?]+")
_MEANING = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def owners_of(repository: Repository, revision: str, path: PurePosixPath) -> list[str]:
    """The owners that CODEOWNERS of a revision names for a file: those of the last rule that fits; empty for none."""
    texts = (repository.read(revision, PurePosixPath(name)) for name in FILES)
    text = next((text for text in texts if text is not None), b"")
    owners: list[str] = []
    for line in text.decode(errors="replace").splitlines():
        words = line.partition("#")[0].split()
        if words and fits(words[0], str(path)):
            owners = [word for word in words[1:] if OWNER.fullmatch(word)]
    return owners


def fits(pattern: str, path: str) -> bool:
    """Whether a rule is of a file. One with a slash before its end begins at the root; a folder's is of all below."""
    anchored = "/" in pattern.rstrip("/")
    body = pattern.strip("/")
    regex = "".join(_MEANING.get(part) or re.escape(part) for part in _PARTS.findall(body))
    start = "" if anchored else "(?:.*/)?"
    end = "/.*" if pattern.endswith("/") else "" if body.endswith("/*") else "(?:/.*)?"
    return re.fullmatch(start + regex + end, path) is not None


def writer_of(repository: Repository, revision: str, path: PurePosixPath, line: int) -> str | None:
    """Who wrote a line of a file as a revision has it; None where git does not know."""
    if not re.fullmatch("[0-9a-f]+", revision):  # `blame` has no --end-of-options
        return None
    words = ("blame", "--porcelain", "-L", f"{line},{line}", revision, "--", str(path))
    text = git_or_none(repository.root, *words) or ""
    names = [one.removeprefix("author ") for one in text.splitlines() if one.startswith("author ")]
    return names[0] if names else None


def author_of(repository: Repository, revision: str) -> str | None:
    """Who wrote a commit; None where git does not know it."""
    return git_or_none(repository.root, "log", "-1", "--format=%an", "--end-of-options", revision) or None


def files_of(repository: Repository, revision: str) -> list[str]:
    """The files that a commit changed; none of a merge."""
    words = ("diff-tree", "--root", "--no-commit-id", "--name-only", "-r", "-z", "--end-of-options", revision)
    return sorted(filter(None, (git_or_none(repository.root, *words) or "").split("\0")))
