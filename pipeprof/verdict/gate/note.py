"""What is to be said about a verdict, as codes with their names and numbers; reports word them. Pure."""

from __future__ import annotations

from typing import Any

Note = dict[str, Any]


def note(code: str, **facts: Any) -> Note:
    """`{code, ...}`; the words are in report/words/gate.py, those of experiments in report/words/experiments.py."""
    return {"code": code, **facts}
