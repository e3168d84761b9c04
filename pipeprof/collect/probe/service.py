"""Per-operator service times, from the log lines that MindSpore's dataset can print for every batch handed out.

The lines belong to verbose level 10900 and go to file descriptor 2. The level is two plain integers in one of
MindSpore's libraries. It is switched on only before a tree is built, while no other tree is alive, and off again once
enough was seen: rows that were begun without their timers crash the fetch that prints them, so it never comes back on
for a tree that exists.
"""

import ctypes
import os
import re
import sys

from . import hooks, recorder

LEVEL = 10900
SYMBOLS = ("_ZN9mindspore20g_ms_vlog_level_fromE", "_ZN9mindspore18g_ms_vlog_level_toE")
BLOCK = rb"\[V10900\][^\n]*\n\[PROF Dataset\]\n(?:worker_time:[^\n]*\n)?(?:-- [^\n]*\n)*\n?"
LINE = re.compile(
    rb"^-- (\w+)\(ID:(\d+)\)\s*: worker_time \(avg:([\d.]+)ms, max: ?([\d./]+)(?:ms)?, min: ?([\d./]+)(?:ms)?, "
    rb"count:(\d+)\)(?:, io_time \(avg:([\d.]+)ms)?",
    re.MULTILINE,
)
ENOUGH = 64  # fetches, after which only slow pipelines go on being timed
FAST_PER_SECOND = 30.0
AT_MOST = 2000


class Sampler:
    """Has the log lines printed for the first fetches of a tree, and keeps what they say."""

    def __init__(self, levels, swap):
        self.levels = levels
        self.swap = swap
        self.on = False
        self.fetches = 0
        self.began = 0

    def switch_on(self):
        """A tree is about to be built and no other one is alive."""
        self.fetches, self.began = 0, 0
        self.on = hooks.LANE.service = True
        self.levels[0].value = self.levels[1].value = LEVEL

    def switch_off(self):
        """Safe at any time."""
        self.on = hooks.LANE.service = False
        self.levels[0].value = self.levels[1].value = 0

    def begin(self):
        """Before a fetch, while the lines are on; returns whether `end` must be called."""
        return self.swap.begin()

    def end(self, pipeline):
        """After the fetch: record the service times."""
        data = self.swap.end()
        rows = [[field.decode() for field in row] for row in LINE.findall(data)] if data else []
        if rows:
            recorder.REC.line("service", pipeline=pipeline, ops=rows)
        at = recorder.now()
        if not self.fetches:
            self.began = at
        self.fetches += 1
        if self.fetches >= AT_MOST or (
            self.fetches >= ENOUGH and self.fetches * 1e9 > FAST_PER_SECOND * (at - self.began)
        ):
            self.switch_off()


def make_sampler(swap):
    """A Sampler, or None with a warning that says why service times cannot be measured."""
    rec = recorder.REC
    if not rec.options.get("service", True):
        rec.warn("service_off", "service times were switched off")
        return None
    if not recorder.may_patch():
        rec.warn(
            "service_off",
            "MindSpore's memory may not be changed (--no-patches), and timing lines are switched on there",
        )
        return None
    if os.environ.get("VLOG_v"):
        rec.warn("service_off", "VLOG_v is set by the user, so the timing lines were left alone")
        return None
    try:
        folder = os.path.dirname(sys.modules["mindspore"].__file__)
        library = ctypes.CDLL(os.path.join(folder, "lib", "libmindspore_core.so"))
        levels = [ctypes.c_int.in_dll(library, symbol) for symbol in SYMBOLS]
    except (OSError, ValueError, AttributeError):
        rec.warn("service_off", "this MindSpore has no switch for the dataset's timing lines")
        return None
    if levels[0].value or levels[1].value:
        rec.warn("service_off", "verbose logging is already in use")
        return None
    return Sampler(levels, swap)
