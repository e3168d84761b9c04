"""What a profile has recorded so far: its runs, the newest of them, its tables."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pipeprof.errors import UsageError
from pipeprof.escape import shell_word
from pipeprof.inprocess.formats import chosen_formats, write_formats, write_trace
from pipeprof.inprocess.recording import message_of, say

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pipeprof.api import OpenRun
    from pipeprof.inprocess.averages import KeyAverages
    from pipeprof.inprocess.recording import Recording


class Results:
    """The runs of a profile, each opened when it is first asked for."""

    def __init__(self, formats: str | Iterable[str] = (), *, flops: bool = False) -> None:
        self._formats = chosen_formats(formats)
        self._flops = flops
        self._recordings: list[Recording] = []
        self._written: set[Path] = set()
        self._opened: tuple[Path, OpenRun] | None = None

    def __repr__(self) -> str:
        paths = [str(recording.path) for recording in self._recordings]
        return f"<pipeprof.profile: {', '.join(paths[-3:]) if paths else 'no run yet'}>"

    def _add(self, recording: Recording) -> None:
        self._recordings.append(recording)

    def _convert(self) -> None:
        """Make the tables of the runs that nobody asked for yet."""
        for recording in self._recordings:
            self._finished(recording)

    def _finished(self, recording: Recording) -> bool:
        """Whether a run has its tables; why not, is said: what goes wrong in recording ends no training."""
        try:
            path = recording.finish()
        except Exception as error:  # noqa: BLE001 - pyarrow that refuses the training's NumPy, say
            again = f"pipeprof report {shell_word(str(recording.path))}"
            say(f"{message_of(error)}; the program goes on, `{again}` tries again")
            return False
        if path not in self._written:
            self._written.add(path)
            self._write_formats(path)
        return True

    def _write_formats(self, path: Path) -> None:
        """Write the wanted files of a run; why one is missing, is said."""
        for name in self._formats:
            try:
                write_formats(path, [name])
            except Exception as error:  # noqa: BLE001 - as above
                say(f"no `{path.name}.{name}`: {message_of(error)}")

    def _why_nothing(self) -> str:
        """Why there is no run."""
        return "enter `with profile:` first"

    def _left_to_another(self) -> bool:
        """Whether another profile, or `pipeprof collect`, records instead of this one."""
        return False

    @property
    def paths(self) -> list[Path]:
        """The runs that are there, oldest first; empty while the first one is being recorded."""
        return [recording.finish() for recording in self._recordings]

    @property
    def path(self) -> Path:
        """The newest run. Raises UsageError when none is there."""
        if not self._recordings:
            hint = "`profile.paths` is empty as long as there is no run"
            raise UsageError(f"nothing has been recorded: {self._why_nothing()}", hint)
        return self._recordings[-1].finish()

    @property
    def run(self) -> OpenRun:
        """The newest run, opened: its tables as DataFrames (`run.step`, `run.op`, ...). Raises as `path` does."""
        from pipeprof import api  # noqa: PLC0415 - pandas and DuckDB only for those who ask

        path = self.path
        if self._opened is None or self._opened[0] != path:
            if self._opened is not None:
                self._opened[1].close()
            self._opened = (path, api.open(path))
        return self._opened[1]

    def key_averages(self, *, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> KeyAverages:
        """Operators and spans of the newest run, summed by what they are. Raises as `path` does.

        Empty, with a note, where another profile or `pipeprof collect` records instead.
        `group_by_input_shape`: one row per operator and input shapes. `group_by_stack_n`: one per operator and its
        innermost frames, as far as stacks were recorded.
        """
        from pipeprof.inprocess.averages import KeyAverages, key_averages  # noqa: PLC0415 - DuckDB only when asked

        if not self._recordings and self._left_to_another():
            return KeyAverages([], note=self._why_nothing())
        shapes, depth = group_by_input_shape, group_by_stack_n
        return key_averages(self.path, shapes=shapes, stack_depth=depth, flops=self._flops)

    def export(self, formats: str | Iterable[str]) -> list[Path]:
        """Write files of the newest run beside it, as the setting `formats` does of each run; returns their paths.

        Raises as `path` does, and UsageError for a format that is unknown or cannot be written, such as
        `memory_flow.svg` without memory.
        """
        return write_formats(self.path, chosen_formats(formats))

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the newest run as a timeline for Perfetto or chrome://tracing. Raises as `path` does.

        Only says so on stderr where another profile or `pipeprof collect` records instead.
        """
        if not self._recordings and self._left_to_another():
            say(f"no timeline `{path}`: {self._why_nothing()}")
            return
        write_trace(self.path, path)

    def export_stacks(self, path: str | os.PathLike[str], *_metric: object) -> None:
        """Raises UsageError, which names the verb that writes stacks: torch's profiler has them here."""
        hint = f"`pipeprof stacks {shell_word(str(self.path))} -o {shell_word(os.fspath(path))}` writes them"
        raise UsageError("a profile writes no stacks itself", hint)
