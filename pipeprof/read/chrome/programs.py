"""The programs whose traces are read here: each declares its kind, how its files begin, and its dialect."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from pipeprof.read.chrome import reader
from pipeprof.read.chrome.dialect import API, LINES, PLANES, RECORDS, TORCH, Dialect
from pipeprof.read.chrome.xplane_wire import is_space
from pipeprof.read.source.content import Content

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipeprof.record.run import Run

_HEAD = 1 << 16


class Program(NamedTuple):
    """One program. `begins`: whether a file is its own, by the first bytes; `mode` is how it runs what it records."""

    kind: str
    what: str
    begins: Callable[[Content], bool]
    dialect: Dialect
    mode: str | None = None

    def recognise(self, path: Path) -> bool:
        """Whether a file is such a trace, by its beginning. Raises SourceError when it cannot be read."""
        with Content(path) as file:
            return self.begins(file)

    def add_files(self, paths: Sequence[Path], run: Run, progress: Callable[[str], None]) -> None:
        """As of `reader`, in this program's dialect."""
        reader.add_files(paths, run, progress, self.dialect)
        if self.mode is not None:
            run.manifest.fingerprint["mode"] = self.mode


def _matching(pattern: bytes) -> Callable[[Content], bool]:
    start = re.compile(pattern, re.DOTALL)
    return lambda file: start.match(file.read(_HEAD)) is not None


KINETO = Program(
    reader.KIND,
    "a chrome trace of torch.profiler or a relative of it (*.pt.trace.json, trace_view.json, also .gz)",
    reader.is_torch,
    TORCH,
)
PROGRAMS = (
    KINETO,
    # Names follow two conventions: those of DLIO (`TorchFramework.compute`, `NPZReader.open`), and those of DFTracer's
    # own `ai` decorators (`compute.step`, `dataloader.fetch.iter`).
    Program(
        "dftracer", "a trace of DFTracer (*.pfw, *.pfw.gz)",
        _matching(rb'\s*(?:\[\s*)?\{(?=[^\n]*"(?:hostname|hhash)"\s*:)[^\n]*"ph"\s*:\s*(?:"[XMC]"|\d)[^\n]*\}'),
        Dialect(None, form=LINES),
    ),
    # Calls of HIP and RCCL are operators of the host, and ranges of roctx their callers.
    Program(
        "rocprof", "JSON of rocprofv3 (*_results.json)", _matching(rb'\s*\{\s*"rocprofiler-sdk-tool"\s*:\s*\['),
        Dialect(API | {"user_annotation"}, form=RECORDS),
    ),
    # What XLA runs was compiled as a whole.
    Program(
        "xplane", "a profile of JAX or TensorFlow (*.xplane.pb)", lambda file: is_space(file.read(_HEAD)),
        Dialect(None, form=PLANES), mode="xla",
    ),
    # Every interval of a thread is an operator, in a tree of calls; asynchronous ones are spans. Which are steps, the
    # user says.
    Program(
        "chrome", "a Chrome trace of another program (VizTracer, Perfetto's JSON)",
        _matching(rb'\s*(?:\[|\{.*?"traceEvents"\s*:\s*\[)\s*\{.*?"ph"\s*:\s*"[A-Za-z]"'), Dialect(None),
    ),
)  # fmt: skip
