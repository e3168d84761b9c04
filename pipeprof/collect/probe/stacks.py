"""Which Python the thread that trains is in, some 20 times a second: from that the reader knows what a call costs.

A thread sleeps, and then walks the other one's stack under the interpreter's lock. A look stands for the time since the
one before, so that calls which keep the lock for long, and later looks, which are rarer, count in full. Of consecutive
frames of MindSpore's or PyTorch's the outermost and the innermost are kept: what the program called, and where that is.
Nothing is asked of the program's objects.
"""

import os
import threading

from . import recorder, where

EVERY_S = 0.05
MOST = 2000  # looks; then half as many come in the same time, and so on
MOST_SITES, MOST_FRAMES = 20_000, 60  # frames that are told apart; those of a stack, the outermost first
TELL_NS = 500_000_000
PROGRAM, LIBRARY, PROBE = 0, 1, 2
FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Begin:
    """Called twice a second by the recorder's thread; begins to look when a step runs."""

    def __init__(self, rec):
        self._rec = rec

    def __call__(self):
        """Look from now on, if something trains."""
        from . import steps

        if steps.LOOP.calls or steps.LOOP.model:
            rec = self._rec
            rec.periodic.remove(self)
            rec.lookers.append(Stacks(rec))
            threading.Thread(target=_run, args=(rec,), name="pipeprof-stacks", daemon=True).start()


def _run(rec):
    try:
        began, seed = recorder.now(), 1
        while not rec.off:
            elapsed = (recorder.now() - began) / 1e9
            seed = (seed * 1103515245 + 12345) % (1 << 31)
            jitter = 0.5 + seed / (1 << 31)  # no beat with the steps; the program's random numbers stay its own
            recorder.sleep(max(EVERY_S, elapsed / MOST) * jitter)
            _look(rec)
    except Exception:
        rec.failed("stacks")


def _look(rec):
    from . import steps

    if rec.off:
        return
    frames = where.frames()
    frame = frames.get(steps.LOOP.thread)
    del frames
    if frame is not None:
        for call in list(rec.lookers):
            call(frame)


class Stacks:
    """The stacks that were seen: each frame has a number, by what called it."""

    def __init__(self, rec):
        self._rec = rec
        self._numbers = {}  # (number of the caller, id of the code, line) -> number
        self._kinds = {}  # id of a code -> its kind, and the code, so that no other one gets the id
        self._sites, self._rows = [], []  # not told yet
        self._before = self._told = recorder.now()

    def __call__(self, frame):
        """Note the stack of one look."""
        at, number = recorder.now(), -1
        for code, line in self._kept(frame):
            key = (number, id(code), line)
            known = self._numbers.get(key)
            if known is None:
                if len(self._numbers) >= MOST_SITES:
                    break
                known = self._numbers[key] = len(self._numbers)
                name = where.qualified_name(code)
                self._sites.append((number, "%s(%d): %s" % (where.short(code.co_filename), line, name)))
            number = known
        if number >= 0:
            self._rows.append((at, at - self._before, number))
        self._before = at
        if at - self._told >= TELL_NS:
            self._told = at
            sites, self._sites, rows, self._rows = self._sites, [], self._rows, []
            self._rec.line("stacks", sites=sites, rows=rows)

    def _kept(self, frame):
        """(code, line) of the frames that are told, the outermost first."""
        frames = []
        while frame is not None:
            code = frame.f_code
            known = self._kinds.get(id(code))
            if known is None:
                known = self._kinds[id(code)] = _kind(frame), code
            if known[0] != PROBE:
                frames.append((code, frame.f_lineno or _line(code, frame.f_lasti), known[0]))
            frame = frame.f_back
        frames.reverse()
        kinds = [PROGRAM, *(kind for _, _, kind in frames), PROGRAM]
        kept = [
            (code, line)
            for (code, line, kind), before, after in zip(frames, kinds, kinds[2:])
            if PROGRAM in (kind, before, after)
        ]
        return kept[:MOST_FRAMES]


def _line(code, position):
    """The line of what lies before an instruction without one: a jump to the head of a loop, where threads switch."""
    lines = [line for begin, _, line in code.co_lines() if line is not None and begin <= position]
    return lines[-1] if lines else code.co_firstlineno


def _kind(frame):
    path = frame.f_code.co_filename
    if path.startswith(FOLDER) or frame.f_globals.get("__name__", "").startswith(where.OURS):
        return PROBE
    return LIBRARY if path.startswith(where.folders()) else PROGRAM
