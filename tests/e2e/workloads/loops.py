"""Trainings in every style of loop. `python loops.py STYLE` ends with one line that tells its steps."""

from __future__ import annotations

import sys
import threading

import mindspore as ms
import numpy as np
import parts
from mindspore import Tensor, nn, ops
from mindspore import dataset as ds
from mindspore.train import Accuracy, Callback, Model
from parts import BATCH, Trainer, mark, rows

STYLES = {}


def style(function):
    STYLES[function.__name__] = function
    return function


class Marks(Callback):
    def on_train_step_begin(self, run_context):
        mark("train", run_context.original_args().cur_epoch_num - 1)

    def on_eval_step_begin(self, run_context):  # noqa: ARG002 - MindSpore passes it
        mark("eval")


def make_model(*, metrics=None):
    net = parts.network()
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    return Model(net, parts.loss_function(), optimizer, metrics=metrics)


@style
def model_train():
    parts.graph()
    make_model().train(3, rows(5), callbacks=[Marks()], dataset_sink_mode=False)


@style
def model_train_pynative():
    parts.pynative()
    make_model().train(2, rows(5), callbacks=[Marks()], dataset_sink_mode=False)


@style
def model_train_sink_mode():
    parts.graph()
    make_model().train(2, rows(6), callbacks=[Marks()], dataset_sink_mode=True)


@style
def model_fit_with_eval():
    parts.graph()
    model = make_model(metrics={"accuracy": Accuracy()})
    model.fit(2, rows(6), rows(3), callbacks=[Marks()], dataset_sink_mode=False, valid_dataset_sink_mode=False)


@style
def model_eval_from_a_callback():
    parts.graph()
    model = make_model(metrics={"accuracy": Accuracy()})

    class Evaluate(Callback):
        def on_train_step_end(self, run_context):
            if run_context.original_args().cur_step_num % 3 == 0:
                model.eval(rows(2), callbacks=[Marks()], dataset_sink_mode=False)

    model.train(2, rows(6), callbacks=[Marks(), Evaluate()], dataset_sink_mode=False)


@style
def model_trained_again_after_eval():
    parts.graph()
    model = make_model(metrics={"accuracy": Accuracy()})
    data = rows(4)
    for _ in range(3):
        model.train(1, data, callbacks=[Marks()], dataset_sink_mode=False)
        model.eval(data, callbacks=[Marks()], dataset_sink_mode=False)


@style
def pynative_loop():
    parts.pynative()
    trainer, data = Trainer(), rows(6)
    for epoch in range(3):
        for x, y in data.create_tuple_iterator(num_epochs=1):
            mark("train", epoch)
            trainer.step(x, y)


@style
def jit_loop():
    parts.pynative()
    trainer, data = Trainer(), rows(6)
    step = ms.jit(trainer.step)
    for epoch in range(2):
        for x, y in data.create_tuple_iterator(num_epochs=1):
            mark("train", epoch)
            step(x, y)


@style
def jit_function_with_eval():
    parts.pynative()
    trainer, data, check = Trainer(), rows(5), rows(3)

    @ms.jit
    def step(x, y):
        loss, gradients = trainer.gradients(x, y)
        trainer.optimizer(gradients)
        return loss

    @ms.jit
    def look(x):
        return trainer.net(x)

    for epoch in range(2):
        for x, y in data.create_tuple_iterator(num_epochs=1):
            mark("train", epoch)
            step(x, y)
        for x, _ in check.create_tuple_iterator(num_epochs=1):
            mark("eval")
            look(x)


@style
def dict_iterator():
    parts.pynative()
    trainer = Trainer()
    iterator = rows(6).create_dict_iterator(num_epochs=2)
    for epoch in range(2):
        for batch in iterator:
            mark("train", epoch)
            trainer.step(batch["x"], batch["y"])


@style
def dict_iterator_as_numpy():
    parts.pynative()
    trainer = Trainer()
    for batch in rows(6).create_dict_iterator(num_epochs=1, output_numpy=True):
        mark("train", 0)
        trainer.step(Tensor(batch["x"]), Tensor(batch["y"]))


def one_step_cell():
    net = nn.WithLossCell(parts.network(), parts.loss_function())
    cell = nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 0.01, 0.9))
    cell.set_train()
    return cell


@style
def train_one_step_cell_in_graph_mode():
    parts.graph()
    cell, data = one_step_cell(), rows(6)
    for epoch in range(2):
        for x, y in data:
            mark("train", epoch)
            cell(x, y)


@style
def train_one_step_cell_in_pynative_mode():
    parts.pynative()
    cell, data = one_step_cell(), rows(6)
    for epoch in range(2):
        for x, y in data:
            mark("train", epoch)
            cell(x, y)


@style
def graph_cell_with_eval_cell():
    parts.graph()
    cell, data, check = one_step_cell(), rows(5), rows(2)
    look = nn.WithLossCell(parts.network(), parts.loss_function())
    for epoch in range(2):
        for x, y in data.create_tuple_iterator(num_epochs=1):
            mark("train", epoch)
            cell(x, y)
        for x, y in check.create_tuple_iterator(num_epochs=1):
            mark("eval")
            look(x, y)


@style
def gradient_accumulation():
    parts.pynative()
    trainer, kept = Trainer(), None
    for number, (x, y) in enumerate(rows(12).create_tuple_iterator(num_epochs=1)):
        _, gradients = trainer.gradients(x, y)
        kept = gradients if kept is None else tuple(a + b for a, b in zip(kept, gradients, strict=True))
        if number % 3 == 2:
            mark("train", 0)
            trainer.optimizer(kept)
            kept = None


@style
def broken_off_one_row_late():
    parts.pynative()
    trainer, data = Trainer(), rows(9)
    for epoch in range(3):
        for number, (x, y) in enumerate(data.create_tuple_iterator(num_epochs=1)):
            if number == 5:
                break
            mark("train", epoch)
            trainer.step(x, y)


@style
def gan():
    parts.pynative()
    critic, maker = Trainer(), Trainer()
    data = rows(6)
    for epoch in range(2):
        for x, y in data.create_tuple_iterator(num_epochs=1):
            mark("train", epoch)
            critic.step(x, y)
            maker.step(x, y)


@style
def prefetched_rows():
    parts.pynative()
    trainer = Trainer()
    for x, y in list(rows(7).create_tuple_iterator(num_epochs=1)):
        mark("train")
        trainer.step(x, y)


@style
def one_row_ahead():
    parts.pynative()
    trainer = Trainer()
    iterator = iter(rows(8).create_tuple_iterator(num_epochs=1))
    ready = next(iterator)
    while ready is not None:
        following = next(iterator, None)
        mark("train")
        trainer.step(*ready)
        ready = following


@style
def fixed_tensors():
    parts.pynative()
    trainer = Trainer()
    x, y = Tensor(np.ones((BATCH, 8), np.float32)), Tensor(np.zeros(BATCH, np.int32))
    for _ in range(7):
        mark("train")
        trainer.step(x, y)


def step_by_hand(trainer, x, y):
    _, gradients = trainer.gradients(x, y)
    for parameter, gradient in zip(trainer.optimizer.parameters, gradients, strict=True):
        ops.assign_sub(parameter, gradient)


@style
def update_of_fixed_tensors_by_hand():
    parts.pynative()
    trainer = Trainer()
    x, y = Tensor(np.ones((BATCH, 8), np.float32)), Tensor(np.zeros(BATCH, np.int32))
    for _ in range(9):
        mark("train")
        step_by_hand(trainer, x, y)


@style
def gan_of_fixed_tensors():
    parts.pynative()
    critic, maker = Trainer(), Trainer()
    x, y = Tensor(np.ones((BATCH, 8), np.float32)), Tensor(np.zeros(BATCH, np.int32))
    for _ in range(9):
        mark("train")
        critic.step(x, y)
        maker.step(x, y)


def use_all(data, use):
    for x, y in data.create_tuple_iterator(num_epochs=1):
        use(x, y)


@style
def eval_by_the_same_helper():
    parts.pynative()
    trainer, data, check = Trainer(), rows(5), rows(3)

    def train(x, y):
        mark("train")
        trainer.step(x, y)

    def look(x, y):
        mark("eval")
        trainer.forward(x, y).asnumpy()

    for _ in range(2):
        use_all(data, train)
        use_all(check, look)


@style
def eval_on_the_training_data():
    parts.pynative()
    trainer, data = Trainer(), rows(5)

    def train(x, y):
        mark("train")
        trainer.step(x, y)

    def look(x, y):
        mark("eval")
        trainer.forward(x, y).asnumpy()

    for _ in range(2):
        use_all(data, train)
        use_all(data, look)


@style
def eval_first():
    parts.pynative()
    trainer, data, check = Trainer(), rows(5), rows(3)
    for _ in range(2):
        for x, y in check.create_tuple_iterator(num_epochs=1):
            mark("eval")
            trainer.forward(x, y).asnumpy()
        for x, y in data.create_tuple_iterator(num_epochs=1):
            mark("train")
            trainer.step(x, y)


@style
def eval_within_an_epoch():
    parts.pynative()
    trainer, data, check = Trainer(), rows(9), rows(4)
    for number, (x, y) in enumerate(data.create_tuple_iterator(num_epochs=1)):
        mark("train")
        trainer.step(x, y)
        if number % 3 == 2:
            for looked, (a, b) in enumerate(check.create_tuple_iterator(num_epochs=1)):
                mark("eval")
                trainer.forward(a, b).asnumpy()
                if looked == 1:
                    break


@style
def eval_of_one_row():
    parts.pynative()
    trainer, data, check = Trainer(), rows(5), rows(1)
    for _ in range(2):
        for x, y in data.create_tuple_iterator(num_epochs=1):
            mark("train")
            trainer.step(x, y)
        for x, y in check.create_tuple_iterator(num_epochs=1):
            mark("eval")
            trainer.forward(x, y).asnumpy()


@style
def no_optimizer():
    parts.pynative()
    net = parts.network()
    for x, _ in rows(7).create_tuple_iterator(num_epochs=1):
        mark("train")
        net(x).asnumpy()


@style
def update_by_hand():
    parts.pynative()
    trainer = Trainer()
    for x, y in rows(7).create_tuple_iterator(num_epochs=1):
        mark("train")
        step_by_hand(trainer, x, y)


@style
def zipped_in_python():
    parts.pynative()
    trainer, data, other = Trainer(), rows(6), rows(6)
    for _ in range(2):
        both = zip(data.create_tuple_iterator(num_epochs=1), other.create_tuple_iterator(num_epochs=1), strict=False)
        for (x, y), (a, b) in both:
            mark("train")
            trainer.step(ops.concat((x, a)), ops.concat((y, b)))


@style
def zip_dataset():
    parts.pynative()
    trainer = Trainer()
    data = ds.zip((rows(6), rows(6).rename(["x", "y"], ["a", "b"])))
    for x, y, _, _ in data.create_tuple_iterator(num_epochs=1):
        mark("train")
        trainer.step(x, y)


@style
def concat_dataset():
    parts.pynative()
    trainer = Trainer()
    for x, y in (rows(4) + rows(3)).create_tuple_iterator(num_epochs=1):
        mark("train")
        trainer.step(x, y)


@style
def two_stage_generator():
    parts.pynative()
    trainer, inner = Trainer(), rows(6)

    def outer():
        for x, y in inner.create_tuple_iterator(num_epochs=1, output_numpy=True):
            yield from ((row, np.array(label)) for row, label in zip(x, y, strict=True))

    data = ds.GeneratorDataset(outer, ["x", "y"]).batch(BATCH)
    for _ in range(2):
        for x, y in data.create_tuple_iterator(num_epochs=1):
            mark("train")
            trainer.step(x, y)


@style
def getters_first():
    parts.pynative()
    trainer, data = Trainer(), rows(6)
    assert data.get_dataset_size() == 6
    assert data.output_shapes()[0] == [BATCH, 8]
    assert data.get_col_names() == ["x", "y"]
    assert len(data.output_types()) == 2
    for x, y in data.create_tuple_iterator(num_epochs=1):
        mark("train")
        trainer.step(x, y)


def doubled(x):
    return x * 2


@style
def map_in_processes():
    parts.pynative()
    trainer = Trainer()
    source = ds.GeneratorDataset(parts.Rows(6), ["x", "y"], shuffle=False)
    data = source.map(doubled, ["x"], num_parallel_workers=2, python_multiprocessing=True).batch(BATCH)
    for x, y in data.create_tuple_iterator(num_epochs=1):
        mark("train")
        trainer.step(x, y)


@style
def new_worker_processes_every_epoch():
    parts.pynative()
    trainer = Trainer()
    for _ in range(10):
        source = ds.GeneratorDataset(parts.Rows(3), ["x", "y"], shuffle=False)
        data = source.map(doubled, ["x"], num_parallel_workers=2, python_multiprocessing=True).batch(BATCH)
        for x, y in data.create_tuple_iterator(num_epochs=1):
            mark("train")
            trainer.step(x, y)


@style
def generator_with_workers():
    parts.pynative()
    trainer, data = Trainer(), rows(6, num_parallel_workers=2, python_multiprocessing=True)
    for _ in range(2):
        for x, y in data.create_tuple_iterator(num_epochs=1):
            mark("train")
            trainer.step(x, y)


@style
def skipped_rows():
    parts.pynative()
    trainer = Trainer()
    for number, (x, y) in enumerate(rows(9).create_tuple_iterator(num_epochs=1)):
        if number % 3 == 1:
            continue
        mark("train")
        trainer.step(x, y)


@style
def pretraining_then_fine_tuning():
    parts.pynative()
    for trainer, steps in ((Trainer(), 4), (Trainer(nn.SGD), 5)):
        for x, y in rows(steps).create_tuple_iterator(num_epochs=1):
            mark("train")
            trainer.step(x, y)


@style
def experimental_optimizer():
    from mindspore.experimental import optim

    parts.pynative()
    net, loss = parts.network(), parts.loss_function()
    optimizer = optim.SGD(net.trainable_params(), lr=0.01)
    gradients = ms.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)
    for x, y in rows(6).create_tuple_iterator(num_epochs=1):
        mark("train")
        optimizer(gradients(x, y)[1])


@style
def in_a_thread():
    thread = threading.Thread(target=STYLES["pynative_loop"])
    thread.start()
    thread.join()


@style
def varying_shapes_compile_again():
    parts.graph()
    cell = one_step_cell()
    for size in (4, 4, 2, 2, 4, 3):
        for x, y in (
            ds.GeneratorDataset(parts.Rows(2), ["x", "y"]).batch(size).take(1).create_tuple_iterator(num_epochs=1)
        ):
            mark("train")
            cell(x, y)


if __name__ == "__main__":
    STYLES[sys.argv[1]]()
    parts.tell()
