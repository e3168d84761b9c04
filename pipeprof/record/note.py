"""What is to be noted about what was recorded and measured: stored as codes with values, worded where it is shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

Note = dict[str, Any]


def note(code: str, **values: Any) -> Note:
    """`{code, ...}`, to be stored; `WORDS` has its words."""
    return {"code": code, **values}


def sentence(stored: Note) -> str:
    """A stored note in words; of a code that only a newer pipeprof knows, the code and its values."""
    try:
        words = WORDS.get(stored.get("code", ""))
        return words(stored) + _missing(stored) if words is not None else _unknown(stored)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):  # by hand, or of another version
        return _unknown(stored)


def unique(notes: Iterable[Note]) -> list[Note]:
    """Each note once, in their order."""
    once: list[Note] = []
    for one in notes:
        if one not in once:
            once.append(one)
    return once


def _unknown(stored: Note) -> str:
    values = ", ".join(f"{name} {value}" for name, value in stored.items() if name != "code")
    return f"{stored.get('code', 'note')}" + (f": {values}" if values else "")


def _missing(stored: Note) -> str:
    """How much a kill has cost at most. `missing_queue_s` None: no queue sample came in."""
    if stored.get("missing_steps_s") is None:
        return ""
    steps = f"; at most the last {math.ceil(stored['missing_steps_s'] * 10) / 10:.1f} s of steps"
    queue_s = stored.get("missing_queue_s")
    if queue_s is None:
        return f"{steps} are missing, and all queue samples"
    return f"{steps} and {math.ceil(queue_s)} s of queue samples are missing"


def _more(stored: Note) -> str:
    return f" (and {stored['more']} more)" if stored["more"] else ""


def _state(stored: Note) -> str:
    why = stored["reason"]
    return f"`{stored['run']}` is {stored['state']}: {'no reason is known' if why is None else sentence(why)}"


WORDS: dict[str, Callable[[Note], str]] = {
    # why a run is partial or failed
    "nothing_recorded": lambda _: "the recording ended before anything was recorded",
    "tables_not_written": lambda of: f"its tables could not be written: {of['error']}",
    "deleted": lambda of: f"its {of['what']} was deleted while it was recorded",
    "process_alive": lambda of: f"process {of['pid']} was still running when the command ended",
    "killed": lambda of: f"the {of['who']} was killed; what had been written was recovered",
    "signal": lambda of: f"the command was ended by {of['signal']}",
    "block_ended": lambda of: str(of["error"]),
    "exit_code": lambda of: f"the command exited with code {of['exit_code']}",
    "record_not_written": lambda of: f"the record could not be written: {of['error']}",
    "rank_lost": lambda of: f"process {of['pid']} (rank {of['rank']}) ended without its exit handlers",
    "spool_damaged": lambda of: (
        f"the spool is damaged: {of['damage']}" + (f", and {of['more']} more" if of["more"] else "")
    ),
    "being_recorded": lambda _: "it is still being recorded",
    "file_cut": lambda of: f"a file could not be read to its end: {of['damage']}{_more(of)}",
    "file_damaged": lambda of: f"`{of['file']}` is damaged: {of['damage']}{_more(of)}",
    "file_not_read": lambda of: str(of["error"]),
    "too_many_names": lambda of: f"`{of['file']}` has too many different names: the rest is `(other)`",
    # about what is compared
    "run_state": _state,
    "failed_left_out": lambda of: f"{of['failed']} of {of['reps']} repetitions of `{of['run']}` failed: left out",
    "several_revisions": lambda _: "holds repetitions of several revisions",
    "slowed_down": lambda _: "its steps were slowed down on purpose",
    "copied_file": lambda of: (
        f"`{of['file']}` is a copy of `{of['original']}`: it was not measured again, though it counts"
    ),
}
