"""Profile three steps of a long training, twice, from within: `python examples/api_schedule.py`.

The runs are `profiled/cycle-0` and `profiled/cycle-1`; `pipeprof report profiled/cycle-0` looks at one.
"""

import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.dataset import GeneratorDataset

import pipeprof


def rows(count):
    random = np.random.default_rng(0)
    for _ in range(count):
        label = random.integers(2)
        yield (random.random((1, 16, 16)) + label).astype(np.float32), np.array(label, np.int32)


def ready(profile):
    """Called after each cycle, with a run that can be opened."""
    print(f"after step {profile.step_num - 1}: {profile.path.name}")
    print(profile.key_averages().table(sort_by="cpu_time_total", row_limit=5))
    print(profile.run.step[["kind", "start_ns", "end_ns", "fetch_wait_ns"]])
    profile.export_chrome_trace(profile.path.with_suffix(".json.gz"))


def main():
    ms.set_context(mode=ms.PYNATIVE_MODE)
    net = nn.SequentialCell(nn.Conv2d(1, 8, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Dense(8 * 64, 2))
    loss_fn = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    gradients = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)
    data = GeneratorDataset(lambda: rows(640), ["picture", "label"]).batch(16)

    schedule = pipeprof.schedule(skip_first=10, wait=5, warmup=1, active=3, repeat=2)
    with pipeprof.profile(out="profiled", schedule=schedule, on_trace_ready=ready, force=True) as profile:
        for picture, label in data.create_tuple_iterator(num_epochs=1):
            with pipeprof.record_function("forward and backward"):
                _, grads = gradients(picture, label)
            with pipeprof.record_function("optimizer"):
                optimizer(grads)
            profile.step()


if __name__ == "__main__":
    main()
