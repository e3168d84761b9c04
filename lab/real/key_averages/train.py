"""Records a trace of torch.profiler and what key_averages() says of it: python train.py FOLDER (torch on a CPU).

`key_averages.json` has the groups by default; `python_functions.json` and `no_python_functions.json` those with the
parameter of that name, from the version on that has it (2.14). `torch.json` has the version and the total of each table.
"""

import inspect
import json
import re
import sys
import threading
from pathlib import Path

import torch
from torch import nn
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity, profile, record_function

GROUPS = {
    "name": {},
    "shape": {"group_by_input_shape": True},
    **{f"stack {n}": {"group_by_stack_n": n} for n in (1, 5)},
}
lstm = nn.LSTM(8, 16, 2, batch_first=True)
attention = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
bag = nn.EmbeddingBag(50, 8)
head = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Dropout(0.1), nn.Linear(32, 4))
layers = nn.ModuleList([lstm, attention, bag, head])
optimizer = torch.optim.AdamW(layers.parameters())


@torch.jit.script
def scripted(x: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        x = x * 2 + 1
    return x


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(_context, x):
        return x.clone()

    @staticmethod
    def backward(_context, gradient):
        return gradient * 2


def in_a_thread():
    with record_function("thread"):
        for _ in range(5):
            torch.randn(20, 20) @ torch.randn(20, 20)


def nested(name, depth, *, alone):
    """Ranges of one name, each the only callee of the one above when `alone`: those are folded."""
    with record_function(name):
        if depth:
            nested(name, depth - 1, alone=alone)
        if not alone:
            torch.ones(2)


def others():
    scripted(torch.ones(3))
    torch.mul(torch.tensor(3.0), torch.tensor(2.0))
    torch.baddbmm(torch.randn(3, 4, 6), torch.randn(3, 4, 5), torch.randn(3, 5, 6))
    torch.cat([torch.ones(3), torch.ones(2)])
    torch.randn(4, 4).svd()
    nn.functional.conv2d(torch.randn(1, 4, 9, 9), torch.randn(8, 2, 3, 3), stride=2, padding=1, groups=2)
    nn.functional.conv3d(torch.randn(1, 2, 5, 5, 5), torch.randn(2, 2, 3, 3, 3))


def step():
    with record_function("forward"):
        hidden, _ = lstm(torch.randn(4, 6, 8))
        loss = head(Doubled.apply(attention(hidden))).sum() + bag(torch.randint(0, 50, (4, 5))).sum()
    thread = threading.Thread(target=in_a_thread)
    thread.start()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    thread.join()
    nested("several", 4, alone=False)
    nested("alone", 4, alone=True)
    others()


def row(average, group):
    key = str(average.input_shapes) if group == "shape" else "\n".join(average.stack) if group != "name" else ""
    return [
        average.key, key, average.count, round(average.self_cpu_time_total * 1000), round(average.cpu_time_total * 1000),
        average.self_cpu_memory_usage, average.cpu_memory_usage, average.flops,
    ]  # fmt: skip


def recorded():
    with profile(
        activities=[ProfilerActivity.CPU],
        record_shapes=True,
        profile_memory=True,
        with_flops=True,
        with_stack=True,
        with_modules=True,
        experimental_config=_ExperimentalConfig(verbose=True),
    ) as profiler:
        step()
        profiler.step()
    return profiler


def main():
    folder = Path(sys.argv[1])
    # The code of a module is freed after its import, and torch reads its name later, twice: what the first recording
    # imports is imported before the one that counts.
    recorded()
    profiler = recorded()
    profiler.export_chrome_trace(str(folder / "trace.json"))
    asked = {"key_averages": {}}
    if "include_python_functions" in inspect.signature(profiler.key_averages).parameters:
        asked["python_functions"] = {"include_python_functions": True}
        asked["no_python_functions"] = {"include_python_functions": False}
    totals = {}
    for name, more in asked.items():
        averages = {group: profiler.key_averages(**how, **more) for group, how in GROUPS.items()}
        said = {group: [row(one, group) for one in found] for group, found in averages.items()}
        folder.joinpath(f"{name}.json").write_text(json.dumps(said))
        totals[name] = re.search(r"Self CPU time total: (\S+)", averages["name"].table()).group(1)
    folder.joinpath("torch.json").write_text(json.dumps({"version": torch.__version__, "totals": totals}))


if __name__ == "__main__":
    main()
