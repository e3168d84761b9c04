"""A training that profiles itself: `python own_profiler.py KIND FOLDER`."""

from __future__ import annotations

import sys

import parts
from mindspore import nn
from mindspore.train import Callback, Model

KIND, FOLDER, STEPS = sys.argv[1], sys.argv[2], 12


class Marks(Callback):
    def __init__(self, profiler=None):
        super().__init__()
        self.profiler = profiler

    def on_train_step_begin(self, run_context):  # noqa: ARG002 - MindSpore passes it
        parts.mark("train", 0)

    def on_train_step_end(self, run_context):  # noqa: ARG002 - MindSpore passes it
        if self.profiler is not None:
            self.profiler.step()


def train(profiler=None):
    net = parts.network()
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    model = Model(net, parts.loss_function(), optimizer)
    model.train(1, parts.rows(STEPS), callbacks=[Marks(profiler)], dataset_sink_mode=False)


def with_schedule():
    from mindspore import profiler
    from mindspore.profiler import ProfilerActivity

    plan = profiler.schedule(wait=1, warmup=1, active=3, repeat=1, skip_first=2)
    ready = profiler.tensorboard_trace_handler(FOLDER)
    with profiler.profile(activities=[ProfilerActivity.CPU], schedule=plan, on_trace_ready=ready) as own:
        train(own)


def old_class():
    from mindspore import Profiler

    own = Profiler(output_path=FOLDER)
    train()
    own.analyse()


def late():
    """Two steps without, then the rest with a profiler."""
    from mindspore import Profiler

    class Start(Callback):
        own = None

        def on_train_step_end(self, run_context):
            if run_context.original_args().cur_step_num == 4:
                Start.own = Profiler(output_path=FOLDER)

    net = parts.network()
    model = Model(net, parts.loss_function(), nn.Momentum(net.trainable_params(), 0.01, 0.9))
    model.train(1, parts.rows(STEPS), callbacks=[Marks(), Start()], dataset_sink_mode=False)
    Start.own.analyse()


parts.graph()
{"schedule": with_schedule, "class": old_class, "late": late, "environment": train}[KIND]()
parts.tell()
