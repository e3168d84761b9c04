"""A training without a framework: it hands its steps to the recorder itself, as the hooks would.

marks.py STEPS: that many steps of 2 ms, each told on stdout with its end (ns of the monotonic clock) and the process id;
then waits for the end of its input, and says goodbye.
"""

from __future__ import annotations

import os
import sys
import time

recorder = sys.modules["_pipeprof_probe.recorder"]
UPDATE = recorder.UPDATE


def step(number: int) -> None:
    begin = time.monotonic_ns()
    while time.monotonic_ns() - begin < 2_000_000:
        pass
    end = time.monotonic_ns()
    recorder.REC.mark(UPDATE, 0, 2, number, begin, end)
    print("step", number, end, os.getpid(), flush=True)


recorder.REC.open()
for number in range(int(sys.argv[1])):
    step(number)
print("ready", flush=True)
sys.stdin.read()
print("last words", flush=True)
