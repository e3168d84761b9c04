"""What torch counts for single layers, as JSON: python torch_flops.py (torch on a CPU).

For each layer `forward` and `backward` of FlopCounterMode, and `profiler`: the forward pass with `with_flops`.
"""

import json

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

torch.backends.mkldnn.enabled = False  # its LSTM is one operator, without operations


def tensor(*shape):
    return torch.randn(*shape, requires_grad=True)


class Product(nn.Module):
    def forward(self, one, two):
        return one @ two


class Lstm(nn.LSTM):
    def forward(self, x, h, c):
        return super().forward(x, (h, c))[0]


LAYERS = {
    "convolution": (nn.Conv2d(3, 8, 3, stride=2, padding=1), [tensor(4, 3, 17, 15)]),
    "one by one": (nn.Conv2d(16, 32, 1, bias=False), [tensor(2, 16, 7, 7)]),
    "grouped": (nn.Conv2d(8, 12, (3, 5), groups=4, dilation=2), [tensor(2, 8, 20, 22)]),
    "depthwise": (nn.Conv2d(6, 6, 3, groups=6, padding=1), [tensor(3, 6, 9, 9)]),
    "three-dimensional": (nn.Conv3d(2, 4, 3), [tensor(2, 2, 7, 8, 9)]),
    "transposed": (nn.ConvTranspose2d(5, 7, 3, stride=2), [tensor(2, 5, 6, 6)]),
    "dense": (nn.Linear(24, 10), [tensor(6, 24)]),
    "dense of a sequence": (nn.Linear(24, 10, bias=False), [tensor(6, 5, 24)]),
    "product": (Product(), [tensor(5, 7), tensor(7, 9)]),
    "batched product": (Product(), [tensor(4, 5, 7), tensor(4, 7, 9)]),
    "product of heads": (Product(), [tensor(2, 3, 5, 7), tensor(2, 3, 7, 5)]),
    "lstm": (Lstm(8, 16), [tensor(5, 3, 8), tensor(1, 3, 16), tensor(1, 3, 16)]),
}


def counted(layer, inputs):
    """Operations of the forward pass twice, once by each way that torch has, and of the backward pass."""
    with FlopCounterMode(display=False) as forward:
        result = layer(*inputs)
    with FlopCounterMode(display=False) as backward:
        result.sum().backward()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_flops=True) as profiler:
        layer(*inputs)
    known = ("aten::conv2d", "aten::mm", "aten::addmm", "aten::bmm")
    operations = sum(average.flops for average in profiler.key_averages() if average.key in known)
    return {"forward": forward.get_total_flops(), "backward": backward.get_total_flops(), "profiler": operations}


if __name__ == "__main__":
    print(json.dumps({name: counted(*layer) for name, layer in LAYERS.items()}))
