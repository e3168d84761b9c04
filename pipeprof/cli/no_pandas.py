"""Keeps pandas out of the program: no verb needs it, and Arrow imports it, where it is installed, to make any array."""

from __future__ import annotations

import sys


class _NoPandas:
    """A finder of modules that says of pandas that it is not installed."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        del path, target
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=name)


def leave_pandas_out() -> None:
    """For the rest of this process: `import pandas` takes longer than most of what a verb does.

    `importlib.util.find_spec("pandas")` raises then, where it would give None of what is not installed.
    """
    sys.meta_path.insert(0, _NoPandas)
