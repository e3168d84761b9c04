"""Records trainings on a GPU, with what torch says of each trace, and what happens when a part of the step costs nothing.

python lab/real/gpu/record.py FOLDER              all, with 8 steps of each in its trace
python lab/real/gpu/record.py FOLDER --stored     the small ones that lie in tests/real/gpu
python lab/real/gpu/record.py FOLDER --unseen     drawn when the rules were fixed: is it the device or the host?

Needs torch with CUDA, torchvision and transformers; nothing is downloaded, weights and data are random. Writes
FOLDER/NAME.pt.trace.json.gz, and FOLDER/truth.json: of each training the milliseconds of a step without the profiler
(means of three rounds, in turn), as it is and with one change, and what torch says of the device's operators.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import statistics
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

WARMUP, STEPS, ROUNDS = 10, 20, 3
ACTIVE, STORED_ACTIVE = 8, 4
STORED = ("copies", "host_metrics", "launches_small", "kernels_small")
GPU = torch.device("cuda")


class Pictures(torch.utils.data.Dataset):
    """Pictures that NumPy augments row by row."""

    def __init__(self, size: int, work: int) -> None:
        self.size, self.work = size, work

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        rng = np.random.default_rng(index)
        picture = rng.random((3, self.size, self.size), dtype=np.float32)
        for _ in range(self.work):
            picture = np.ascontiguousarray(picture[:, ::-1, :]) * 1.01 + np.sin(picture)
        return torch.from_numpy(picture), index % 10


def repeated(batch):
    """The same batch for ever."""
    while True:
        yield batch


def loader(size: int, work: int, batch: int, workers: int):
    """Batches of one epoch that does not end here."""
    return iter(torch.utils.data.DataLoader(Pictures(size, work), batch, num_workers=workers, pin_memory=True))


def random_pictures(batch: int, size: int):
    """One batch on the host, in pinned memory."""
    return torch.randn(batch, 3, size, size).pin_memory(), torch.randint(0, 10, (batch,)).pin_memory()


class Vision:
    """A torchvision network, trained with SGD and bfloat16."""

    def __init__(self, name: str, batches, *, compiled: bool = False, after=None, layers: bool = True) -> None:
        import torchvision

        model = (
            getattr(torchvision.models, name)(num_classes=10)
            if layers
            else nn.Sequential(nn.Flatten(), nn.LazyLinear(10))
        )
        self.model = model.to(GPU)
        self.batches, self.after = batches, after
        self.loss = nn.CrossEntropyLoss()
        first = next(batches)[0].to(GPU)
        self.model(first)  # lazy shapes
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)
        self.call = torch.compile(self.model) if compiled else self.model

    def step(self) -> None:
        x, y = next(self.batches)
        x, y = x.to(GPU, non_blocking=True), y.to(GPU, non_blocking=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            out = self.call(x)
            loss = self.loss(out, y)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        if self.after:
            self.after(out, loss)


class Language:
    """GPT-2 of the transformers library with random weights, AdamW."""

    def __init__(self, width: int, layers: int, batch: int, length: int, *, graph: bool = False) -> None:
        import transformers

        config = transformers.GPT2Config(n_embd=width, n_layer=layers, n_head=max(width // 64, 1), vocab_size=8192)
        self.model = transformers.GPT2LMHeadModel(config).to(GPU, dtype=torch.bfloat16)
        self.model.train()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, capturable=graph)
        self.tokens = torch.randint(0, 8192, (batch, length), device=GPU)
        self.graph = None
        if graph:
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                for _ in range(3):
                    self._step()
            torch.cuda.current_stream().wait_stream(side)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self._step()

    def _step(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        self.model(self.tokens, labels=self.tokens).loss.backward()
        self.optimizer.step()

    def step(self) -> None:
        if self.graph:
            self.graph.replay()
        else:
            self._step()


class Text:
    """Any language model of the transformers library with random weights, AdamW."""

    def __init__(self, config: str, batch: int, length: int, head: str = "CausalLM", **sizes: int) -> None:
        import transformers

        made = getattr(transformers, f"{config}Config")(vocab_size=8192, **sizes)
        self.model = getattr(transformers, f"{config}For{head}")(made).to(GPU, dtype=torch.bfloat16)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.tokens = torch.randint(3, 8192, (batch, length), device=GPU)

    def step(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        self.model(input_ids=self.tokens, labels=self.tokens).loss.backward()
        self.optimizer.step()


def metrics_on_host(out, loss) -> None:
    """What a user adds for a log: a copy to the host, and a loop in Python."""
    values = out.detach().float().softmax(-1).cpu().numpy()
    total = 0.0
    for row in values:
        total += float(np.sort(row)[::-1].cumsum().sum())
    loss.item()


def big_copies(mib: int, pinned: bool):
    """Batches of 224 x 224 pictures in the host's memory, so many MiB each."""
    count = mib * 2**20 // (3 * 224 * 224 * 4)
    x, y = torch.randn(count, 3, 224, 224), torch.randint(0, 10, (count,))
    return repeated((x.pin_memory(), y.pin_memory()) if pinned else (x, y))


def on_gpu(batch):
    """The same batch, which is there already."""
    return repeated(tuple(one.to(GPU) for one in batch))


# name -> (the training, what is changed, the training with the change)
TRAININGS = {
    "input_workers": (
        lambda: Vision("resnet18", loader(64, 12, 256, 4)),
        "without the data pipeline",
        lambda: Vision("resnet18", repeated(next(loader(64, 12, 256, 4)))),
    ),
    "input_own_process": (
        lambda: Vision("resnet18", loader(64, 1, 128, 0)),
        "without the data pipeline",
        lambda: Vision("resnet18", repeated(next(loader(64, 1, 128, 0)))),
    ),
    "kernels_resnet50": (
        lambda: Vision("resnet50", on_gpu(random_pictures(128, 224))),
        "with half of the pictures",
        lambda: Vision("resnet50", on_gpu(random_pictures(64, 224))),
    ),
    "compiled_resnet50": (
        lambda: Vision("resnet50", on_gpu(random_pictures(128, 224)), compiled=True),
        "with half of the pictures",
        lambda: Vision("resnet50", on_gpu(random_pictures(64, 224)), compiled=True),
    ),
    "launches_gpt2": (
        lambda: Language(128, 12, 2, 128),
        "in a CUDA graph",
        lambda: Language(128, 12, 2, 128, graph=True),
    ),
    "host_metrics": (
        lambda: Vision("resnet18", on_gpu(random_pictures(2048, 64)), after=metrics_on_host),
        "without the metrics on the host",
        lambda: Vision("resnet18", on_gpu(random_pictures(2048, 64))),
    ),
    "kernels_small": (
        lambda: Vision("resnet18", on_gpu(random_pictures(512, 224))),
        "with half of the pictures",
        lambda: Vision("resnet18", on_gpu(random_pictures(256, 224))),
    ),
    "launches_small": (
        lambda: Language(128, 3, 2, 128),
        "in a CUDA graph",
        lambda: Language(128, 3, 2, 128, graph=True),
    ),
    "copies": (
        lambda: Vision("resnet18", big_copies(600, pinned=False), layers=False),
        "without the copies to the GPU",
        lambda: Vision("resnet18", on_gpu(next(big_copies(600, pinned=False))), layers=False),
    ),
}


HALF = "with half of the rows"


def pictures(network: str, batch: int):
    """A network of torchvision on pictures that are on the GPU, and the same on half of them."""
    return tuple(
        name if isinstance(name, str) else (lambda rows=name: Vision(network, on_gpu(random_pictures(rows, 224))))
        for name in (batch, HALF, batch // 2)
    )


def text(config: str, batch: int, length: int, **more):
    """A language model, and the same on half of the rows."""
    return tuple(
        name if isinstance(name, str) else (lambda rows=name: Text(config, rows, length, **more))
        for name in (batch, HALF, batch // 2)
    )


# Half of the rows take half of the time where the device is what limits, and as long where the host is.
UNSEEN = {
    "vit": pictures("vit_b_16", 64),
    "mobilenet": pictures("mobilenet_v3_small", 16),
    "efficientnet": pictures("efficientnet_b0", 32),
    "densenet": pictures("densenet121", 128),
    "swin": pictures("swin_t", 64),
    "shufflenet": pictures("shufflenet_v2_x1_0", 32),
    "regnet": pictures("regnet_y_400mf", 512),
    "llama": text(
        "Llama", 8, 512, hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16
    ),
    "opt": text(
        "OPT", 2, 64, hidden_size=256, ffn_dim=1024, num_hidden_layers=6, num_attention_heads=4, word_embed_proj_dim=256
    ),
    "bert": text("Bert", 64, 256, head="MaskedLM"),
    "electra": text("Electra", 4, 64, head="MaskedLM"),
    "bloom": text("Bloom", 16, 256, hidden_size=768, n_layer=6, n_head=12),
}


def step_ms(training) -> float:
    """Mean of STEPS steps."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(STEPS):
        training.step()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / STEPS * 1e3


def averages(events) -> dict[str, list[float]]:
    """Of `key_averages()`: count, and microseconds of what each operator of the host launched, without its callees."""
    return {
        one.key: [one.count, one.self_device_time_total]
        for one in events
        if one.self_device_time_total and str(one.device_type).endswith("CPU")
    }


def record(name: str, folder: Path, active: int) -> dict:
    """Time both sides, and write a trace of the training as it is."""
    make, change, make_changed = (TRAININGS | UNSEEN)[name]
    sides = {"as it is": make(), change: make_changed()}
    times: dict[str, list[float]] = {side: [] for side in sides}
    for training in sides.values():
        for _ in range(WARMUP):
            training.step()
    for _ in range(ROUNDS):
        for side, training in sides.items():
            times[side].append(step_ms(training))
    trace = folder / f"{name}.pt.trace.json"
    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
        schedule=schedule(wait=1, warmup=3, active=active, repeat=1),
        record_shapes=True,
        on_trace_ready=lambda made: made.export_chrome_trace(str(trace)),
    ) as made:
        for _ in range(4 + active):
            sides["as it is"].step()
            made.step()
    with trace.open("rb") as source, gzip.open(f"{trace}.gz", "wb", 9) as target:
        shutil.copyfileobj(source, target)
    trace.unlink()
    return {
        "change": change,
        "step_ms": {side: [round(one, 4) for one in values] for side, values in times.items()},
        "gain": round(statistics.median(times["as it is"]) / statistics.median(times[change]), 4),
        "device_us": averages(made.key_averages()),
    }


def main() -> None:
    """All of them, or those that are stored."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--stored", action="store_true")
    parser.add_argument("--unseen", action="store_true")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    active = STORED_ACTIVE if asked.stored or asked.unseen else ACTIVE
    usual = [name for name in TRAININGS if not name.endswith("_small")]
    truth = {"torch": torch.__version__, "gpu": torch.cuda.get_device_name(), "active": active, "trainings": {}}
    for name in STORED if asked.stored else UNSEEN if asked.unseen else usual:
        try:
            truth["trainings"][name] = record(name, asked.folder, active)
        except (RuntimeError, TypeError, ValueError, AttributeError) as error:  # of this version of a library
            print(f"{name}: {error!r}", flush=True)
            continue
        print(name, truth["trainings"][name]["step_ms"], truth["trainings"][name]["gain"], flush=True)
        torch.cuda.empty_cache()
    (asked.folder / "truth.json").write_text(json.dumps(truth, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
