"""Settings of a dataset pipeline as a file: what `tune` recommends, and `collect --apply` runs a script with.

The script is not touched. Its operators are known by their place in the pipeline, so the file fits the script that it
was made for; where another operator is found at such a place the setting is not applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from pipeprof.errors import UsageError
from pipeprof.record.document import read_document

SCHEMA_VERSION = 1
OF_OPERATORS = ("workers", "processes", "maps_after", "cache", "max_rowsize")
CHANGEABLE = (*OF_OPERATORS, "prefetch_factor", "persistent")
MOST_BYTES = 1 << 20
Positive = Annotated[int, msgspec.Meta(ge=1)]
# Of libraries' threads alone: another variable could make the command load somebody's code.
Variable = Annotated[str, msgspec.Meta(pattern=r"\A[A-Z]+_(NUM_THREADS|FOR_THREADS_NUM)\Z")]
Value = Annotated[str, msgspec.Meta(pattern=r"\A[0-9]{1,4}\Z")]
Cores = Annotated[str, msgspec.Meta(pattern=r"\A[0-9][0-9,-]{0,999}\Z")]


class OperatorSetting(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """New settings of one operator; None leaves one as it is.

    `node` is its position in the pipeline (0 is nearest the training loop), `place` the file:line that makes it.
    `maps_after`: how many of the maps that feed a batch come after it instead. `cache`: rows behind the operator are
    kept in memory, at most so many bytes; what stands before it is not run any more after the first epoch.
    `max_rowsize`: MiB of shared memory that each worker process keeps for a row. `of_loader`: the operator is a stage
    of a DataLoader, and stands for that: `workers` is its num_workers; `prefetch_factor` and `persistent` are its own.
    """

    node: Annotated[int, msgspec.Meta(ge=0)]
    op_type: str
    name: str = ""
    place: str = ""
    workers: Positive | None = None
    processes: bool | None = None
    maps_after: Positive | None = None
    cache: Positive | None = None
    max_rowsize: Positive | None = None
    of_loader: bool = False
    prefetch_factor: Positive | None = None
    persistent: bool | None = None


class Settings(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Changes of one pipeline, that of `site` (file:line of the training's iterator), and of what the command runs in.

    `runtime_threads`: of MindSpore's operators. `cpus`: the cores that the command is put on, as taskset writes them.
    """

    schema_version: int = SCHEMA_VERSION
    site: str | None = None
    operators: tuple[OperatorSetting, ...] = ()
    prefetch: Positive | None = None
    environment: dict[Variable, Value] = {}
    runtime_threads: Positive | None = None
    cpus: Cores | None = None

    @property
    def keeps_rows(self) -> bool:
        """Whether rows are kept in memory: from the second epoch on, these are handed out again."""
        return any(one.cache for one in self.operators)

    @property
    def must_be_same(self) -> bool:
        """Whether only the very same rows prove it: a function that gets a batch may do something else with it.

        And rows that are kept are those of the first epoch, with the random numbers that were drawn for it.
        """
        return self.keeps_rows or any(one.maps_after for one in self.operators)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is changed."""
        return self == Settings(site=self.site)

    def override(self) -> dict[str, Any] | None:
        """What the probe is told (collect/probe/override.py); None where the pipeline stays as it is."""
        loader = next((one for one in self.operators if one.of_loader), None)
        if loader is not None:
            values = {"workers": loader.workers, "prefetch": loader.prefetch_factor, "persistent": loader.persistent}
            return {"loader": True, "site": loader.place, "changes": [{"node": loader.node, **values}]}
        changes: list[dict[str, Any]] = [
            {
                "node": one.node,
                "op_type": one.op_type,
                "name": one.name,
                **{name: getattr(one, name) for name in OF_OPERATORS},
            }
            for one in self.operators
        ]
        if self.prefetch is not None:
            changes = changes or [{"node": 0}]
            changes[0] = changes[0] | {"prefetch": self.prefetch}
        threads = {} if self.runtime_threads is None else {"runtime_threads": self.runtime_threads}
        return {"site": self.site, "changes": changes} | threads if changes or threads else None

    def command(self, command: tuple[str, ...] | list[str]) -> list[str]:
        """The command in the changed environment, on the cores that are meant."""
        words = [f"{name}={value}" for name, value in sorted(self.environment.items())]
        placed = ["taskset", "-c", self.cpus] if self.cpus else []
        return [*placed, *(["env", *words] if words else []), *command]


def merged(settings: Settings, change: Mapping[str, Any]) -> Settings:
    """The settings with a change on top: `operators` (as OperatorSetting), `prefetch`, `environment`, `site`, ..."""
    operators = {one.node: one for one in settings.operators}
    for one in change.get("operators", ()):
        before = operators.get(one.node)
        if before is not None:
            unchanged = {name: getattr(before, name) for name in CHANGEABLE if getattr(one, name) is None}
            one = msgspec.structs.replace(one, **unchanged)  # noqa: PLW2901
        operators[one.node] = one
    last = min((node for node, one in operators.items() if one.cache), default=None)
    if last is not None:  # nothing behind a cache is run any more, so its settings would not be found
        operators = {node: one for node, one in operators.items() if node <= last}
    prefetch = change.get("prefetch")
    return Settings(
        site=change.get("site") or settings.site,
        operators=tuple(operators[node] for node in sorted(operators)),
        prefetch=settings.prefetch if prefetch is None else prefetch,
        environment={**settings.environment, **change.get("environment", {})},
        runtime_threads=change.get("runtime_threads") or settings.runtime_threads,
        cpus=change.get("cpus") or settings.cpus,
    )


def load_settings(path: Path) -> Settings:
    """The settings in a file. Raises UsageError that says what is wrong with it."""
    hint = "give the settings.json that `pipeprof tune` wrote"
    return read_document(path, Settings, SCHEMA_VERSION, "file of settings", hint, most=MOST_BYTES, error=UsageError)
