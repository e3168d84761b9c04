"""pipeprof: why is my MindSpore training slow, and did this change make it slower?

In Python: `pipeprof.open("RUN")` gives the tables and answers of a run as pandas DataFrames.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeprof.api import open  # noqa: A004 - the public name

__version__ = "0.1.0"
__all__ = ["__version__", "open"]


def __getattr__(name: str) -> Any:
    if name == "open":
        return importlib.import_module("pipeprof.api").open  # pandas and DuckDB only for those who ask
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
