"""A hand-written PyNative loop with evaluation, to try pipeprof on.

pipeprof collect -o run -- python examples/train_pynative.py
pipeprof report run
"""

import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.dataset import GeneratorDataset


def rows(count):
    random = np.random.default_rng(0)
    for index in range(count):
        label = index % 2
        yield random.random((1, 16, 16), dtype=np.float32) + np.float32(label), np.array(label, np.int32)


def main():
    ms.set_context(mode=ms.PYNATIVE_MODE)
    net = nn.SequentialCell(nn.Conv2d(1, 8, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Dense(8 * 64, 2))
    loss_fn = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)

    def forward(picture, label):
        return loss_fn(net(picture), label)

    gradients = ms.value_and_grad(forward, None, optimizer.parameters)
    data = GeneratorDataset(lambda: rows(640), ["picture", "label"]).batch(16)
    for epoch in range(2):
        net.set_train(True)
        for picture, label in data.create_tuple_iterator(num_epochs=1):
            loss, grads = gradients(picture, label)
            optimizer(grads)
        net.set_train(False)
        right = 0
        for picture, label in data.create_tuple_iterator(num_epochs=1):
            right += int((net(picture).asnumpy().argmax(1) == label.asnumpy()).sum())
        print(f"epoch {epoch}: loss {float(loss.asnumpy()):.3f}, right {right} of 640")


if __name__ == "__main__":
    main()
