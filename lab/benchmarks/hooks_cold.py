"""What each hook of the probe costs when the caches hold nothing of it, as after the step of a network: CPU time of the thread.

[PIPEPROF_NO_COMPILED=1] python lab/benchmarks/hooks_cold.py [--megabytes 32] [--calls 1500]

Between two calls an array is written that is as large as the caches that are to be emptied. The difference of neighbours, with
the hook and without it: the median. A hook that is called over and over, as in a loop that times it, costs a tenth or less.
"""

import argparse
import json
import statistics
import tempfile
import time

import numpy as np

from pipeprof.collect.probe import around, dataset, hooks, recorder, steps, trains, trees


class Stub:
    """What MindSpore's classes do when they are called, which is nothing."""

    def on_train_step_end(self, run_context):
        """CallbackManager."""

    def compile_and_run(self, *args):
        """Cell, in graph mode."""

    def compile(self, *args):
        """_CellGraphExecutor: nothing is new."""

    def __next__(self):
        """Iterator."""

    def __init__(self):
        self._original_args = {"cur_epoch_num": 1, "cur_step_num": 5}

    def original_args(self):
        """RunContext."""
        return self._original_args


def hooked():
    """A stub's subclass with the probe's hooks, as `Model.train` meets them."""

    class Hooked(Stub):
        on_train_step_end = steps._callback(Stub.on_train_step_end, recorder.TRAIN_STEP)
        compile_and_run = steps._timed_calls(Stub.compile_and_run, steps.GRAPH, trains.identity, lambda _: True)

    dataset._install_next(Hooked)
    steps._install_compile(Hooked, None)
    found = Hooked()
    found._pipeprof = trees.Tree(found, 0, False)
    steps.LOOP.model = 1
    return found


def took(call, args, memory):
    """CPU time of one call in ns, after the caches were emptied."""
    memory += 1
    begin = time.thread_time_ns()
    call(*args)
    return time.thread_time_ns() - begin


def main():
    """Measure the hooks that a step of `Model.train` goes through."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=32)
    parser.add_argument("--calls", type=int, default=1500)
    options = parser.parse_args()
    memory = np.zeros(int(options.megabytes * 2**20 / 8))
    with tempfile.TemporaryDirectory() as folder:
        settings = {"ops": "off", "service": False, "queue_interval_ms": 0}
        recorder.open_recorder(folder, json.dumps(settings)).open()
        plain, watched, together = Stub(), hooked(), 0.0
        callbacks = [Stub(), Stub(), Stub()]
        pairs = {
            "on_train_step_end": ((plain.on_train_step_end, watched.on_train_step_end), (plain,)),
            "compile_and_run": ((plain.compile_and_run, watched.compile_and_run), (1, 2)),
            "compile": ((plain.compile, watched.compile), (1, 2)),
            "__next__": ((plain.__next__, watched.__next__), ()),
            "callbacks": ((all, all), ()),
        }
        for name, (pair, args) in pairs.items():
            given = (callbacks, around.TimedCallbacks(callbacks)) if name == "callbacks" else (None, None)
            added = []
            for _ in range(options.calls):
                times = [
                    took(call, args if of is None else (of,), memory) for call, of in zip(pair, given, strict=True)
                ]
                added.append(times[1] - times[0])
            together += statistics.median(added) / 1e3
            print(f"{name:<18} {statistics.median(added) / 1e3:6.2f} us", flush=True)
        kind = "Python" if hooks.COMPILED is None else "C"
        print(f"together, in {kind:<6}{together:6.2f} us", flush=True)
        recorder.REC.end()


if __name__ == "__main__":
    main()
