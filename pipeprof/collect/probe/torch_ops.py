"""Operator executions of a training in PyTorch on the CPU: its own profiler, for the steps of an op window.

Only one profiler of PyTorch may run, and the script's own comes first (`profiler_guard`). Where a device computes
beside Python no window is taken: what the profiler needs there (CUPTI) takes memory of the device, and seconds.
"""

import _thread
import os
import sys

from . import recorder, windows

TRACE = "torch-%d.json"  # what a window leaves in its folder
LOG_LEVEL = "KINETO_LOG_LEVEL"
ON_DEVICES = "operators of PyTorch are recorded on the CPU alone; those of a device are in what its own profiler writes"
QUIET = "99"  # Kineto tells on stderr of each window, and of devices that there are not
DAEMON = "KINETO_USE_DAEMON"

OWN = [False]  # whether the profiler that is being made is ours


class TorchOps:
    """PyTorch's profiler, by the names that MindSpore's op recorder has.

    It stands still while a process is forked: a worker that inherited it would record for ever. Each stretch is a file.
    `shapes`: whether those of inputs are recorded, which more than doubles what an execution costs.
    """

    def __init__(self, profiler):
        self._profiler = profiler
        self.shapes = True
        self._running = None
        self._folder = ""
        self._files = 0
        self._thread = 0
        self._halted = False
        recorder.at_fork(before=self._halt, after_in_parent=self._go_on, after_in_child=self._forget)

    def init(self, folder):
        """Record from now on, what this thread executes and what works for it."""
        self._folder, self._files, self._thread = folder, 0, _thread.get_ident()
        self._start()

    def may_run_by_line(self):
        """Whether Python launches the operators: what is compiled is not to be traced."""
        return is_eager()

    def step_profiling_enable(self, on):
        """Nothing is left to be switched on."""

    def enable_op_time(self):
        """As before."""

    def stop(self):
        """The window is over; its executions are left in its folder."""
        self._halted = False
        running, self._running = self._running, None
        if running is not None:
            running.stop()
            self._files += 1
            running.export_chrome_trace(os.path.join(self._folder, TRACE % self._files))

    def _start(self):
        quiet = os.environ.get(LOG_LEVEL) is None
        OWN[0] = True
        if quiet:
            os.putenv(LOG_LEVEL, QUIET)  # Kineto reads it when it is first used; Python's own `os.environ` stays
        try:
            running = self._profiler.profile(
                activities=[self._profiler.ProfilerActivity.CPU], record_shapes=self.shapes
            )
            running.start()
            self._running = running
        finally:
            OWN[0] = False
            if quiet:
                os.unsetenv(LOG_LEVEL)

    def _halt(self):
        if self._running is not None and _thread.get_ident() == self._thread:
            self.stop()
            self._halted = True

    def _go_on(self):
        if self._halted:
            self._halted = False
            self._start()

    def _forget(self):
        self._running, self._halted = None, False


def is_eager():
    """Whether Python launches the operators: nothing that `torch.compile` compiled has run."""
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None) or {}
    return not (counters.get("frames") or {}).get("total")


def prepare(device):
    """Something trains with PyTorch, on this type of device: windows may be taken from the next step on."""
    if device != "cpu":
        if recorder.REC.options.get("ops", "window") != "off":
            recorder.REC.warn("ops_off", ON_DEVICES)
    elif windows.WINDOWS.profiler is None:
        windows.WINDOWS.prepare(_recorder, begun=1)
        recorder.at_exit(windows.WINDOWS.exit)


def prepare_own():
    """As `prepare`, where the program says itself what is recorded, and before its first step."""
    if windows.WINDOWS.profiler is None and not _has_device():
        windows.WINDOWS.prepare(_recorder)


def _has_device():
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_available()


def _recorder():
    profiler = sys.modules.get("torch.profiler")
    for name in ("profile", "ProfilerActivity"):
        getattr(profiler, name)
    if os.environ.get(DAEMON):
        raise RuntimeError("Kineto is used by a daemon")
    return TorchOps(profiler)
