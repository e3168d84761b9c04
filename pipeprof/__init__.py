"""pipeprof: why is my MindSpore training slow, and did this change make it slower?

In Python: `pipeprof.open("RUN")` gives the tables and answers of a run as pandas DataFrames, and
`pipeprof.compare("BASE", "NEW")` the verdict on a change.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeprof.api import compare, open  # noqa: A004 - the public name

__version__ = "0.1.0"
__all__ = ["__version__", "compare", "open"]


def __getattr__(name: str) -> Any:
    if name in ("compare", "open"):
        return getattr(importlib.import_module("pipeprof.api"), name)  # pandas and DuckDB only for those who ask
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
