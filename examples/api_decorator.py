"""Profile every call of a function, here an inference: `python examples/api_decorator.py`."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn

import pipeprof

ms.set_context(mode=ms.PYNATIVE_MODE)
net = nn.SequentialCell(nn.Conv2d(1, 8, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Dense(8 * 64, 2))


@pipeprof.profile(out="profiled-inference", with_stack=True, force=True)
def answer(batch):
    with pipeprof.record_function("model_inference"):
        scores = net(Tensor(batch))
    with pipeprof.record_function("choose"):
        return scores.asnumpy().argmax(1)


def main():
    for size in (8, 64):  # two calls: the runs profiled-inference and profiled-inference-2
        print(answer(np.ones((size, 1, 16, 16), np.float32)).shape)
    averages = answer.profile.key_averages(group_by_input_shape=True)
    print(averages.table(sort_by="cpu_time_total", row_limit=8))
    print([str(path.name) for path in answer.profile.paths])


if __name__ == "__main__":
    main()
