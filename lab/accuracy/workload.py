"""Runs one labelled pipeline as a training script would; its last line is the true throughput as JSON.

python lab/accuracy/workload.py map_wait --seconds 4
python lab/accuracy/workload.py '{"name": ..., "branches": [...]}'
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import tempfile
import time
from itertools import count
from pathlib import Path

import mindspore as ms
import numpy as np
from designed import find
from labels import label
from mindspore import dataset as ds
from mindspore import nn
from mindspore.dataset import vision
from mindspore.mindrecord import FileWriter
from mindspore.train import Callback, Model
from pipelines import from_json

PICTURE = 32
KERNEL = 31
LOOPS = 20_000  # of a round of Python
COLUMNS = 2048  # of an array that is sorted by rows: short rows take the same time, so time is in proportion to rows
PROBE_PIXELS = 640
SPARE = 1.6  # rows made, of those expected to be read
TUNED_EACH = 50  # steps between changes of MindSpore's AutoTune
MOST_ROWS = 400_000
SKIP = 0.25  # of the steps, for the true rate


def compute(loops):
    total = 0
    for number in range(loops):
        total += number & 7
    return total


def typical(call, clock=time.thread_time, repeats=41):
    """Median time of a call, ms."""
    times = []
    for _ in range(repeats):
        start = clock()
        call()
        times.append(clock() - start)
    return 1000 * statistics.median(times)


class Speed:
    """What this machine does in a millisecond; measured in CPU time of the thread, so that neighbours matter less."""

    def __init__(self):
        self.numbers = np.random.default_rng(0).random((64, COLUMNS), dtype=np.float32)
        self.loops = LOOPS / typical(lambda: compute(LOOPS))
        self.rows = len(self.numbers) / typical(lambda: np.sort(self.numbers, axis=1))

    def sorter(self, ms_wanted):
        """A call that sorts for so long: whole pieces of the size that was measured, and a smaller one."""
        whole, rest = divmod(round(self.rows * ms_wanted), len(self.numbers))
        pieces = [self.numbers] * whole + ([self.numbers[:rest]] if rest else [])

        def call():
            for piece in pieces:
                np.sort(piece, axis=1)

        return call


class Task:
    """The work of one stage, callable by any of its workers."""

    def __init__(self, work, speed):
        self.work = work
        self.calls = count(1)
        self.loops = round(speed.loops * work.ms) if work.how == "py" else 0
        self.sort = speed.sorter(work.ms) if work.how == "np" else None

    def do(self):
        work = self.work
        if work.how == "sleep":
            time.sleep(work.ms / 1000)
        elif work.how == "py":
            compute(self.loops)
        elif work.how == "np":
            self.sort()
        if not (work.every or work.first):
            return
        number = next(self.calls)
        if work.every and number % work.every == 0:
            time.sleep(work.stall_ms / 1000)
        if number <= work.first:
            time.sleep(work.first_ms / 1000)


class Rows(Task):
    """A source with random access."""

    def __init__(self, work, speed, rows, row):
        super().__init__(work, speed)
        self.rows = rows
        self.row = row

    def __len__(self):
        return self.rows

    def __getitem__(self, index):
        self.do()
        return self.row, np.array(index % 64, np.int32)


class Mapping(Task):
    """A map's function; text becomes a picture."""

    def __call__(self, value):
        self.do()
        return np.zeros((4, 4), np.float32) if value.dtype.kind in "SU" else value


class Collate(Task):
    """A per_batch_map."""

    def __call__(self, column, info):  # noqa: ARG002 - MindSpore passes it
        self.do()
        return (np.stack(column),)


class Keep:
    """A filter's predicate: one row of `every` passes."""

    def __init__(self, every):
        self.every = every
        self.calls = count()

    def __call__(self, value):  # noqa: ARG002 - MindSpore passes it
        return np.array(next(self.calls) % self.every == 0)


def named(kind, name):
    """A subclass of its own name, which is the name that the recording shows; found by pickle in this module."""
    made = type(name, (kind,), {"__module__": __name__})
    globals()[name] = made
    return made


def generator(name, rows):
    """A generator function of that name."""

    def make():
        for index in range(len(rows)):
            yield rows[index]

    make.__name__ = make.__qualname__ = name
    return make


def pixels(work, call):
    """Side of the square picture on which `call` takes `work.ms`."""
    probe = typical(call, time.perf_counter, 25)
    return max(16, 8 * round(PROBE_PIXELS * math.sqrt(work.ms / probe) / 8))


def picture(side):
    return np.random.default_rng(2).integers(0, 255, (side, side, 3), dtype=np.uint8)


def blur():
    """A call that blurs and shrinks a known picture."""
    known, smooth, shrink = picture(PROBE_PIXELS), vision.GaussianBlur(KERNEL), vision.Resize((PICTURE, PICTURE))
    return lambda: shrink(smooth(known))


def batch_ms(pipeline):
    """How long a batch takes at least; 0 of settings of a grid whose label is open: they get more rows than they need."""
    try:
        return label(pipeline).batch_ms
    except ValueError:
        return 0.0


class Builder:
    """Makes the dataset of a pipeline. Files go to a temporary folder."""

    def __init__(self, pipeline, seconds, folder, spare):
        self.pipeline = pipeline
        self.folder = folder
        self.speed = Speed()
        batches = spare * seconds * 1000 / max(0.3, batch_ms(pipeline))
        passes = pipeline.epochs * pipeline.repeat
        whole = min(MOST_ROWS, max(4, math.ceil(batches / passes / (spare if passes > 1 else 1))) * pipeline.batch.size)
        self.rows = whole
        blurs = [one.work for one in pipeline.all_maps if one.work.how == "vision"]
        side = pixels(blurs[0], blur()) if blurs else PICTURE
        trains = pipeline.consumer.form in ("pynative", "model")
        self.row = np.ones((3, PICTURE, PICTURE), np.float32) if trains else picture(side)

    def build(self):
        pipeline = self.pipeline
        total = sum(branch.share for branch in pipeline.branches)
        parts = []
        for number, branch in enumerate(pipeline.branches):
            share = branch.share / total if pipeline.join == "concat" else 1.0
            column = number if pipeline.join == "zip" else 0
            size = pipeline.batch.size
            rows = math.ceil(self.rows * share / size) * size * branch.keep
            parts.append(self.branch(branch, column, rows))
        data = ds.zip(tuple(parts)) if pipeline.join == "zip" else parts[0]
        if pipeline.join == "concat":
            data = parts[0].concat(parts[1])
        data = self.mapped(data, pipeline.maps, 0)
        if pipeline.repeat > 1:
            data = data.repeat(pipeline.repeat)
        batch = pipeline.batch
        if batch.work.how == "none":
            return data.batch(batch.size, num_parallel_workers=batch.workers)
        function = named(Collate, batch.name)(batch.work, self.speed)
        options = {"input_columns": ["x0"], "per_batch_map": function, "num_parallel_workers": batch.workers}
        return data.batch(batch.size, **options)

    def branch(self, branch, number, rows):
        data = self.source(branch.source, number, rows)
        data = self.mapped(data, branch.maps, number)
        if branch.keep > 1:
            column = f"{'x' if branch.source.form == 'text' else 'y'}{number}"  # a text has only its lines
            data = data.filter(Keep(branch.keep), input_columns=[column], num_parallel_workers=1)
        return data.shuffle(branch.shuffle) if branch.shuffle else data

    def mapped(self, data, maps, number):
        for one in maps:
            options = {"input_columns": [f"x{number}"], "num_parallel_workers": one.workers}
            if one.work.how == "vision":
                operations = [vision.GaussianBlur(KERNEL), vision.Resize((PICTURE, PICTURE))]
                data = data.map(operations, **options)
                continue
            function = named(Mapping, one.name)(one.work, self.speed)
            data = data.map(function, python_multiprocessing=one.processes, **options)
        return data

    def source(self, source, number, rows):
        columns = [f"x{number}", f"y{number}"]
        if source.form == "slices":
            columns_of = (np.repeat(self.row[None], rows, 0), np.zeros((rows, 1), np.int32))
            return ds.NumpySlicesDataset(columns_of, columns, num_parallel_workers=1, shuffle=False)
        files = {"text": self.text, "folder": self.read_folder, "mindrecord": self.mindrecord}
        if source.form in files:
            return files[source.form](source, columns, rows)
        made = named(Rows, source.name)(source.work, self.speed, rows, self.row)
        if source.form == "generator":
            made = generator(source.name, made)
            return ds.GeneratorDataset(made, columns, num_parallel_workers=1)
        options = {"num_parallel_workers": source.workers, "python_multiprocessing": source.processes}
        return ds.GeneratorDataset(made, columns, shuffle=False, **options)

    def text(self, source, columns, rows):
        path = self.folder / f"{source.name}.txt"
        path.write_text("".join(f"line {number} of a text\n" for number in range(rows)))
        data = ds.TextFileDataset(str(path), num_parallel_workers=source.workers, shuffle=False)
        return data.rename(["text"], [columns[0]])

    def pictures(self, source, rows):
        def code(side):
            return bytes(vision.encode_jpeg(picture(side)))

        side = PICTURE
        if source.work.how == "decode":
            known = np.frombuffer(code(PROBE_PIXELS), np.uint8)
            side = pixels(source.work, lambda: vision.Decode()(known))
        root = self.folder / source.name
        (root / "class").mkdir(parents=True)
        first = root / "class" / "0.jpg"
        first.write_bytes(code(side))
        for number in range(1, rows):
            (root / "class" / f"{number}.jpg").symlink_to(first)
        return root

    def read_folder(self, source, columns, rows):
        root = self.pictures(source, min(rows, 4000))
        data = ds.ImageFolderDataset(str(root), num_parallel_workers=source.workers, shuffle=False, decode=True)
        return data.rename(["image", "label"], columns)

    def mindrecord(self, source, columns, rows):
        path = str(self.folder / f"{source.name}.mindrecord")
        writer = FileWriter(path, 1)
        fields = {columns[0]: {"type": "bytes"}, columns[1]: {"type": "int32"}}
        writer.add_schema(fields, "rows")
        writer.write_raw_data([{columns[0]: self.row.tobytes(), columns[1]: number % 64} for number in range(rows)])
        writer.commit()
        return ds.MindDataset(path, columns, num_parallel_workers=source.workers, shuffle=False)


class Network(nn.Cell):
    """Two convolutions and a dense layer."""

    def __init__(self, width):
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, stride=2)
        self.second = nn.Conv2d(width, 2 * width, 3, stride=2)
        self.relu = nn.ReLU()
        self.flatten = nn.Flatten()
        self.dense = nn.Dense(2 * width * (PICTURE // 4) ** 2, 64)

    def construct(self, batch):
        return self.dense(self.flatten(self.relu(self.second(self.relu(self.first(batch))))))


class Clock(Callback):
    """When every step began and ended; says when it is time to stop."""

    def __init__(self, seconds, skip):
        super().__init__()
        self.seconds = seconds
        self.skip = skip
        self.begins = []
        self.ends = []
        self.deadline = None

    def started(self):
        self.begins.append(time.monotonic())
        self.deadline = self.deadline or self.begins[0] + self.seconds

    def stopped(self):
        self.ends.append(time.monotonic())
        return self.ends[-1] > self.deadline

    def on_train_step_begin(self, run_context):  # noqa: ARG002 - MindSpore passes it by this name
        self.started()

    def on_train_step_end(self, run_context):
        if self.stopped():
            run_context.request_stop()

    def truth(self):
        """Rate and mean work of the later steps; the rate is 1 / the median of batch groups, so stalls count."""
        skip = int(self.skip * len(self.ends))
        begins, ends = self.begins[skip:], self.ends[skip:]
        span = ends[-1] - ends[0]
        work = sum(end - begin for begin, end in zip(begins[1:], ends[1:], strict=True))
        steps = len(ends) - 1
        return {
            "steps": len(self.ends),
            "steps_per_s": round(steps / span, 3),
            "wait_share": round(1 - work / span, 4),
            "consumer_ms": round(1000 * work / steps, 3),
        }


def trainer(width):
    """A PyNative training step."""
    net = Network(width)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    gradients = ms.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)

    def step(batch):
        value, found = gradients(batch[0], batch[1])
        optimizer(found)
        value.asnumpy()

    return step


def consumer(pipeline, speed):
    """The function that a hand-written loop calls with each batch."""
    wanted = pipeline.consumer
    if wanted.form == "pynative":
        return trainer(wanted.width)
    if wanted.form == "np":
        call = speed.sorter(wanted.ms)
        return lambda _: call()
    return lambda _: time.sleep(wanted.ms / 1000)


def iterator(pipeline, data, epochs):
    if pipeline.style == "dict":
        return data.create_dict_iterator(num_epochs=epochs)
    return data.create_tuple_iterator(num_epochs=epochs)


def loop(pipeline, data, clock, step):
    reader = None if pipeline.fresh else iterator(pipeline, data, pipeline.epochs)
    for _ in range(pipeline.epochs):
        for batch in iterator(pipeline, data, 1) if pipeline.fresh else reader:
            clock.started()
            step(tuple(batch.values()) if isinstance(batch, dict) else batch)
            if clock.stopped():
                return


def train(pipeline, data, clock):
    net = Network(pipeline.consumer.width)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = Model(net, loss, nn.Momentum(net.trainable_params(), 0.01, 0.9))
    model.train(pipeline.epochs, data, callbacks=[clock], dataset_sink_mode=False)


def run(pipeline, seconds, spare=SPARE, skip=SKIP):
    folder = Path(tempfile.mkdtemp(prefix="accuracy-"))
    owner = os.getpid()
    try:
        ms.set_seed(1)
        ds.config.set_prefetch_size(pipeline.prefetch)
        graph = pipeline.consumer.form == "model"
        ms.set_context(mode=ms.GRAPH_MODE if graph else ms.PYNATIVE_MODE)
        builder = Builder(pipeline, seconds, folder, spare)
        data = builder.build()
        clock = Clock(seconds, skip)
        if graph:
            train(pipeline, data, clock)
        else:
            loop(pipeline, data, clock, consumer(pipeline, builder.speed))
        return clock.truth()
    finally:
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description="Runs labelled pipelines, one after the other.")
    parser.add_argument("pipeline", nargs="+", help="a designed pipeline's name, or a pipeline as JSON")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--spare", type=float, default=SPARE, help="rows made, of those expected to be read")
    parser.add_argument("--skip", type=float, default=SKIP, help="of the steps, before those of the true rate")
    parser.add_argument("--autotune", metavar="FOLDER", help="let MindSpore's AutoTune change the pipeline meanwhile")
    options = parser.parse_args()
    if options.autotune:
        ds.config.set_enable_autotune(True, str(Path(options.autotune) / "tuned"))
        ds.config.set_autotune_interval(TUNED_EACH)
        ds.config.set_monitor_sampling_interval(100)
    for text in options.pipeline:
        pipeline = from_json(text) if text.startswith("{") else find(text)
        try:
            truth = run(pipeline, options.seconds or pipeline.seconds, options.spare, options.skip)
        except RuntimeError as error:
            if len(options.pipeline) == 1:
                raise
            truth = {"error": str(error)}  # of settings that cannot be run; the others can
        print(json.dumps({"name": pipeline.name, **truth}), flush=True)


if __name__ == "__main__":
    main()
