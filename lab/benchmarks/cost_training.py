"""A training that takes the probe's hooks out and puts them back, block by block, and tells its CPU time: one JSON line.

    pipeprof collect ... -- python cost_training.py --kind pynative --width 64 --blocks 160 --steps 100

CPU time of the training's own thread, not time by the clock: other programs do not count in it. Four blocks make a
quadruple, hooks in turn in, out, out, in, so that a drift falls on both. Threads that go on beside them (the recorder's, MindSpore's
sampler of queues) are told apart: what the kernel says that each one ran. Knows the probe by its module alone.
"""

import argparse
import json
import statistics
import sys
import threading
import time
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.dataset import GeneratorDataset
from mindspore.train import Callback, Model

PROBE = "_pipeprof_probe"
BATCH = 4
ORDER = (True, False, False, True)
LEAST = 3  # quadruples, whatever time they take
LOOKS = 200  # of the live record, timed alone


class Hooks:
    """What the probe has replaced in MindSpore: nothing when the training is not profiled."""

    def __init__(self):
        names = [*sys.modules[f"{PROBE}.imports"].HOOKS, f"{PROBE}.around"] if PROBE in sys.modules else ()
        owners = [owner for name in names for owner in vars(sys.modules.get(name, object)).values()]
        self.replaced = [
            (owner, attribute, value)
            for owner in owners
            if isinstance(owner, type)
            for attribute, value in list(vars(owner).items())
            if _is_hook(value)
        ]

    def put(self, *, there):
        """Put all hooks in, or the methods that were there before."""
        for owner, name, value in self.replaced:
            setattr(owner, name, value if there else _innermost(value))


def _is_hook(value):
    if not hasattr(value, "__wrapped__"):
        return False
    return type(value).__module__ == "_hooks" or getattr(value, "__globals__", {}).get("__name__", "").startswith(PROBE)


def _innermost(value):
    while _is_hook(value):
        value = value.__wrapped__
    return value


class Watcher:
    """Who looks at this run as `pipeprof top` does: while the file says 1. It is there when the first look is over."""

    def __init__(self, file):
        self.file, self.replaced = file, ()
        while not file.exists():
            time.sleep(0.1)

    def put(self, *, there):
        """Let it look, or not."""
        self.file.write_text("1" if there else "0")


class Blocks:
    """Counts steps; at the end of each block says what it took and switches the hooks, or the watcher.

    Of a block: wall and thread time of its middle step in ns, and the mean thread time of a step.
    """

    def __init__(self, steps, blocks, seconds, watcher, *, control):
        self.control = control
        self.watcher = watcher
        self.steps, self.blocks, self.seconds = steps, blocks, seconds
        self.count = -2 * steps  # warm-up
        self.rows, self.times = [], []
        self.hooks = None
        self.threads = None
        self.began = None

    def step_done(self):
        """Return whether there is another step."""
        self.count += 1
        if self.count < 0:
            return True
        now = (time.perf_counter_ns(), time.thread_time_ns())
        if self.began is None:
            self.hooks = Watcher(self.watcher) if self.watcher else Hooks()
            self.threads, self.started, self.ran = ran_ns(), time.perf_counter_ns(), time.thread_time_ns()
        else:
            self.times.append([end - begin for begin, end in zip(self.began, now, strict=True)])
        again = self.count % self.steps or self._next_block(now[0])
        self.began = (time.perf_counter_ns(), time.thread_time_ns())
        return bool(again)

    def _next_block(self, at):
        """A block is over: what its middle step took; hooks for the next one. Return whether there is one."""
        if self.times:
            ran = time.thread_time_ns()
            medians = [statistics.median(column) for column in zip(*self.times, strict=True)]
            self.rows.append([*medians, (ran - self.ran) / self.steps])
            self.times = []
        late = len(self.rows) >= 4 * LEAST and at - self.started > self.seconds * 1e9
        again = len(self.rows) < self.blocks and not late
        self.hooks.put(there=self.control or not again or ORDER[len(self.rows) % len(ORDER)])
        self.ran = time.thread_time_ns()
        return again

    def facts(self):
        """Wall and thread time of the middle step in ns, a row for each block, and what the threads beside it ran."""
        wall = time.perf_counter_ns() - self.started
        after = ran_ns()
        threads = {}
        for tid, (name, ran) in after.items():
            threads[name] = threads.get(name, 0) + ran - self.threads.get(tid, ("", 0))[1]
        return {
            "hooks": len(self.hooks.replaced), "steps": self.steps, "blocks": self.rows, "wall_ns": wall, "threads": threads,
            **live_cost(),
        }  # fmt: skip


def ran_ns():
    """thread id -> name and CPU time so far in ns, of all threads of this process."""
    python = {thread.native_id: thread.name for thread in threading.enumerate()}
    found = {}
    for task in Path("/proc/self/task").iterdir():
        try:
            ran = int(task.joinpath("schedstat").read_text().split()[0])
            found[int(task.name)] = (python.get(int(task.name)) or task.joinpath("comm").read_text().strip(), ran)
        except OSError:  # it has ended
            continue
    return found


def live_cost():
    """CPU time in ns of writing where the process is, once; empty when it is not profiled."""
    recorder = sys.modules.get(f"{PROBE}.recorder")
    if recorder is None or recorder.REC.live is None:
        return {}
    begin = time.thread_time_ns()
    for _ in range(LOOKS):
        recorder.REC.live._due = 0
        recorder.REC.live()
    return {"live_ns": (time.thread_time_ns() - begin) / LOOKS}


class Rows:
    """Rows of one number of columns, made in no time."""

    def __init__(self, count, width):
        self.count = count
        self.row = np.random.default_rng(0).random(width, dtype=np.float32)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.row, np.array(index % 2, np.int32)


def unchanged(row):
    """Work of a worker process."""
    return row


def dataset(count, width, *, workers):
    """Batches; of `workers`, through worker processes."""
    rows = GeneratorDataset(Rows(count * BATCH, width), ["x", "y"], shuffle=False)
    if workers:
        rows = rows.map(unchanged, ["x"], num_parallel_workers=2, python_multiprocessing=True)
    return rows.batch(BATCH)


def network(width):
    """Three layers: the width decides how long a step takes."""
    return nn.SequentialCell(nn.Dense(width, width), nn.ReLU(), nn.Dense(width, width), nn.ReLU(), nn.Dense(width, 2))


def train_pynative(blocks, data, net):
    """A loop written by hand."""
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    gradients = ms.value_and_grad(lambda x, y: ops.cross_entropy(net(x), y), None, optimizer.parameters)
    for x, y in data.create_tuple_iterator():
        loss, grads = gradients(x, y)
        optimizer(grads)
        loss.asnumpy()
        if not blocks.step_done():
            return


class Counted(Callback):
    """The callback that counts the steps of `Model.train`."""

    def __init__(self, blocks):
        self.blocks = blocks

    def on_train_step_end(self, run_context):
        """One more step."""
        if not self.blocks.step_done():
            run_context.request_stop()


def train_graph(blocks, data, net):
    """`Model.train` in graph mode."""
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = Model(net, loss, nn.Momentum(net.trainable_params(), 0.01, 0.9))
    model.train(1, data, callbacks=[Counted(blocks)], dataset_sink_mode=False)


def main():
    """Train, and print what was counted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=("pynative", "graph", "workers"), required=True)
    parser.add_argument("--width", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True, help="of a block")
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--control", action="store_true", help="leave the hooks in")
    parser.add_argument(
        "--watcher", type=Path, help="file that lets one look beside this training, in place of the hooks"
    )
    parser.add_argument("--seconds", type=float, default=60, help="after which no block begins")
    options = parser.parse_args()
    ms.set_context(mode=ms.PYNATIVE_MODE if options.kind == "pynative" else ms.GRAPH_MODE)
    ms.set_context(runtime_num_threads=1)  # several threads wait for one another where other programs use the cores
    blocks = Blocks(options.steps, options.blocks, options.seconds, options.watcher, control=options.control)
    data = dataset((options.blocks + 3) * options.steps, options.width, workers=options.kind == "workers")
    train = train_pynative if options.kind == "pynative" else train_graph
    train(blocks, data, network(options.width))
    sys.stdout.write(json.dumps(blocks.facts()) + "\n")


if __name__ == "__main__":
    main()
