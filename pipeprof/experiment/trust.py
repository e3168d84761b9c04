"""What a comparison was judged by, and what the judged change does to it: the member `trust` of the result.

Nothing here decides. The settings and baselines in effect are those of the base revision; what the change does to them
is seen here and counts once it is merged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from pipeprof.errors import UsageError
from pipeprof.experiment.alerts import ALERTS
from pipeprof.experiment.policy_file import PROJECT, FoundPolicy, candidates, is_tracked, policy_after
from pipeprof.record.git import Repository
from pipeprof.record.text import printable
from pipeprof.verdict.gate.policy_diff import Departure, departures

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Kind = Literal["policy", "baseline", "alerts", "ci", "workload"]
KINDS: tuple[Kind, ...] = ("policy", "baseline", "alerts", "ci", "workload")
# Files of a baseline that are read back, and where the words of the check itself usually stand.
BASELINE_FILES = frozenset(
    ["baseline.json", "measures.parquet", "facts.json", "facts.json.zst", "history.jsonl"]
)  # fmt: skip
CI_FOLDERS = frozenset([".github", ".ci", ".circleci", ".buildkite", ".gitlab", ".woodpecker"])
CI_FILES = frozenset([".gitlab-ci.yml", "Jenkinsfile", "azure-pipelines.yml", ".travis.yml", "bitbucket-pipelines.yml"])
WORKFLOWS = PurePosixPath(".github/workflows")
_LOCAL_ACTION = re.compile(rb"\buses[\"']?\s*:\s*[\"']?\./([^\s\"'#,}]*)")
_ACTION_FILES = ("action.yml", "action.yaml")
_CHANGES = {"A": "added", "D": "removed"}


class Edit(msgspec.Struct, kw_only=True, frozen=True):
    """Something by which the change is judged, edited by the change.

    `path`: a file, or the folder of a baseline, named from the repository's root. `settings`: of a policy, what it
    would be after the change (`value`) instead of in effect (`reference`); `problem`: why that cannot be told.
    """

    kind: Kind
    path: str
    change: Literal["added", "edited", "removed"]
    settings: list[Departure] = []
    problem: str = ""


@dataclass(frozen=True)
class Change:
    """The change that is judged: from the commit `base` (a full hash) to `new`, the working tree when None."""

    repository: Repository
    base: str
    new: str | None = None
    command: Sequence[str] = ()
    policy_path: PurePosixPath | None = None
    baseline_path: PurePosixPath | None = None

    @classmethod
    def here(
        cls, base: str, new: str | None, command: Sequence[str], policy_file: Path | None, baseline: str | None = None
    ) -> Change:
        """The change in the repository of the working directory; `baseline` is a folder, a URL, or nothing.

        Raises UsageError outside a repository.
        """
        repository = Repository.around(Path.cwd())
        if repository is None:
            raise UsageError(
                f"`{Path.cwd()}` is not in a git repository, so it has no base revision", "use --policy FILE"
            )
        local = baseline is not None and "://" not in baseline
        return cls(
            repository, base, new, command, repository.inside(policy_file) if policy_file else None,
            repository.inside(Path(str(baseline))) if local else None,
        )  # fmt: skip


def trust_of(settings: FoundPolicy, change: Change | None = None) -> dict[str, Any]:
    """The member `trust`: `policy` and `departures` from the defaults, `base_revision` and the `edits` of the change.

    `baseline`: the file or folder that was read as the base revision has it; None where none was.
    """
    policy = {
        "origin": settings.origin,
        "path": settings.path and printable(str(settings.path)),
        "revision": settings.revision,
        "changed": settings.changed,
    }
    content: dict[str, Any] = msgspec.to_builtins(
        {
            "policy": policy,
            "departures": departures(settings.policy),
            "base_revision": change.base if change else None,
            "baseline": printable(str(change.baseline_path)) if change and change.baseline_path else None,
            "edits": edits_of(change, settings) if change else [],
        }
    )
    return content


def edits_of(change: Change, settings: FoundPolicy) -> list[Edit]:
    """What the change edits of what it is judged by, the policy first."""
    files = change.repository.changed(change.base, change.new)
    edits = [*_policy_edits(change, settings, files), *_baseline_edits(change, files)]
    actions = _local_actions(change)
    named = {change.repository.inside(Path(word)) for word in _named_by(change.command)}
    for path, letter in files.items():
        is_ci = _is_ci(path) or not actions.isdisjoint((path, *path.parents))
        kinds: dict[Kind, bool] = {"alerts": path == PurePosixPath(ALERTS), "ci": is_ci, "workload": path in named}
        edits += [
            Edit(kind=kind, path=printable(str(path)), change=_word(letter)) for kind, is_one in kinds.items() if is_one
        ]
    return sorted(edits, key=lambda edit: (KINDS.index(edit.kind), edit.path))


def _policy_edits(change: Change, before: FoundPolicy, files: Mapping[PurePosixPath, str]) -> list[Edit]:
    """The files with settings that the change touches, if the settings then are others; the last one says which.

    One that cannot be read is an edit too, also where it is not in git yet.
    """
    if before.origin == "file":  # the settings are not the repository's
        return []
    names = candidates(change.repository, change.policy_path)
    touched = [name for name in names if name in files]
    try:
        after = policy_after(change.repository, change.new, change.policy_path)
    except UsageError as error:
        name = touched[0] if touched else names[0]
        return [
            Edit(kind="policy", path=printable(str(name)), change=_word(files.get(name, "M")), problem=error.message)
        ]
    settings = departures(after.policy, before.policy)
    if after.path is not None and not is_tracked(change.repository, PurePosixPath(after.path)) and settings:
        return [Edit(kind="policy", path=printable(str(after.path)), change="added", settings=settings)]
    own = [name for name in touched if name.name != PROJECT or (settings and str(name) in (after.path, before.path))]
    return [
        Edit(
            kind="policy",
            path=printable(str(name)),
            change=_word(files[name]),
            settings=settings if name == own[0] else [],
        )
        for name in own
    ]


def _baseline_edits(change: Change, files: Mapping[PurePosixPath, str]) -> list[Edit]:
    """One for each folder of a baseline in which a file changed; new only when all that changed there is new."""
    letters: dict[PurePosixPath, set[str]] = {}
    for path, letter in files.items():
        below = change.baseline_path is not None and change.baseline_path in path.parents
        if below or path.name in BASELINE_FILES:
            letters.setdefault(path.parent, set()).add(letter)
    return [
        Edit(kind="baseline", path=printable(str(folder)), change=_word(next(iter(own)) if len(own) == 1 else "M"))
        for folder, own in letters.items()
    ]


def _named_by(command: Iterable[str]) -> Iterable[str]:
    """The paths that a command may run: its words, and the files of modules after `-m`."""
    words = list(command)
    for before, word in zip(["", *words], words, strict=False):
        yield word
        if before == "-m":
            module = word.replace(".", "/")
            yield from (f"{module}.py", f"{module}/__main__.py")


def _is_ci(path: PurePosixPath) -> bool:
    """A file of the check's folders, unless it is one that people read and no check runs."""
    read = path.suffix == ".md" or "ISSUE_TEMPLATE" in path.parts or path.name == "FUNDING.yml"
    return (path.parts[0] in CI_FOLDERS and not read) or str(path) in CI_FILES


def _local_actions(change: Change) -> set[PurePosixPath]:
    """Folders of actions of the repository itself that workflows of the base use (`uses: ./ci`); of `./` its file."""
    named: set[PurePosixPath] = set()
    for path in change.repository.files(change.base, WORKFLOWS):
        text = change.repository.read(change.base, path) or b""
        named |= {PurePosixPath(word.decode(errors="replace")) for word in _LOCAL_ACTION.findall(text)}
    root = PurePosixPath()
    return (named - {root}) | ({root / name for name in _ACTION_FILES} if root in named else set())


def _word(letter: str) -> Any:
    return _CHANGES.get(letter, "edited")
