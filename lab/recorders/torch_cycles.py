"""Two cycles of one training under torch.profiler, and what torch said of each: `torch_cycles.py FOLDER` (torch on a CPU).

A small network that a DataLoader with two workers feeds; 1 step of waiting, 1 of warm-up and 3 recorded ones, twice. Of each
cycle: the trace, `key_averages()` as it is and by shapes with the total below each table, and the tables as printed.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

ROWS = 30
TABLES = (
    ("plain", {}, "self_cpu_time_total"),
    ("plain", {}, "self_cpu_memory_usage"),
    ("by_shape", {"group_by_input_shape": True}, "cpu_time_total"),
)


class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 88

    def __getitem__(self, index):
        return torch.full((1, 12, 12), index % 5 / 5), index % 3


def network():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(144, 16), nn.Dropout(0.1), nn.ReLU(), nn.Linear(16, 3),
    )  # fmt: skip


def row(average):
    return {
        "key": average.key, "count": average.count, "cpu_time_total": average.cpu_time_total,
        "self_cpu_time_total": average.self_cpu_time_total, "cpu_memory_usage": average.cpu_memory_usage,
        "self_cpu_memory_usage": average.self_cpu_memory_usage, "input_shapes": average.input_shapes,
    }  # fmt: skip


def said_of(profiler):
    groups = {"plain": profiler.key_averages(), "by_shape": profiler.key_averages(group_by_input_shape=True)}
    totals = {f"{name}_self_cpu_total_us": averages.self_cpu_time_total for name, averages in groups.items()}
    return {**{name: [row(average) for average in averages] for name, averages in groups.items()}, **totals}


def tables(profiler):
    parts = [
        f"## {name} by {order}\n" + profiler.key_averages(**how).table(sort_by=order, row_limit=ROWS)
        for name, how, order in TABLES
    ]
    return "\n".join(parts)


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    cycles = iter(("small.cycle0", "small.cycle1"))

    def ready(profiler):
        name = next(cycles)
        trace = folder / f"{name}.pt.trace.json"
        profiler.export_chrome_trace(str(trace))
        text = trace.read_text(encoding="utf-8")
        content = json.loads(text)
        if host := content.get("host_name"):
            text = text.replace(host, "host")
        trace.write_text(text, encoding="utf-8")
        if name.endswith("1"):  # torch writes either form
            trace.with_name(f"{trace.name}.gz").write_bytes(gzip.compress(trace.read_bytes(), 9, mtime=0))
            trace.unlink()
        (folder / f"{name}.key_averages.json").write_text(json.dumps(said_of(profiler)), encoding="utf-8")
        (folder / f"{name}.tables.txt").write_text(tables(profiler), encoding="utf-8")

    torch.manual_seed(7)
    net, loss = network(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), 0.01, 0.9)
    batches = torch.utils.data.DataLoader(Pictures(), 8, num_workers=2)
    with profile(
        activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=3, repeat=2), record_shapes=True,
        profile_memory=True, with_flops=True, on_trace_ready=ready,
    ) as profiler:  # fmt: skip
        for images, labels in batches:
            optimizer.zero_grad()
            loss(net(images), labels).backward()
            optimizer.step()
            profiler.step()


if __name__ == "__main__":
    main()
