"""pipeprof: why is my MindSpore training slow, and did this change make it slower?

In Python: `pipeprof.open("RUN")` gives the tables and answers of a run as pandas DataFrames, and
`pipeprof.compare("BASE", "NEW")` the verdict on a change. `pipeprof.profile(...)` records a part of a program from
within, with `pipeprof.schedule`, `pipeprof.record_function` and `pipeprof.ProfileCallback`.
"""

import importlib
from typing import TYPE_CHECKING, Any

from pipeprof.version import __version__

if TYPE_CHECKING:
    from pipeprof.api import compare, open  # noqa: A004 - the public name
    from pipeprof.inprocess.actions import ProfilerAction, ProfilerActivity, schedule
    from pipeprof.inprocess.callback import ProfileCallback
    from pipeprof.inprocess.decorate import record_function
    from pipeprof.inprocess.profiler import profile

__all__ = [
    "ProfileCallback",
    "ProfilerAction",
    "ProfilerActivity",
    "__version__",
    "compare",
    "open",
    "profile",
    "record_function",
    "schedule",
]

_PLACES = {  # imported for those who ask: pandas and DuckDB with the first two, MindSpore with ProfileCallback
    "compare": "pipeprof.api",
    "open": "pipeprof.api",
    "profile": "pipeprof.inprocess.profiler",
    "schedule": "pipeprof.inprocess.actions",
    "record_function": "pipeprof.inprocess.decorate",
    "ProfilerAction": "pipeprof.inprocess.actions",
    "ProfilerActivity": "pipeprof.inprocess.actions",
    "ProfileCallback": "pipeprof.inprocess.callback",
}


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    from pipeprof.errors import did_you_mean, near_names  # noqa: PLC0415 - `import pipeprof` loads nothing

    near = [] if name.startswith("_") else near_names(name, __all__)
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}" + (f": {did_you_mean(name, near)}" if near else "")
    )
