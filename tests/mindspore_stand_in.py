"""A package `mindspore` of a few lines, with the classes that the probe hooks: their Python side, and nothing behind it."""

FILES = {
    "mindspore/__init__.py": """
        __version__ = "2.10.0"

        def get_context(name):
            return {"mode": 1, "device_target": "CPU"}[name]
    """,
    "mindspore/_c_expression.py": """
        class Profiler:
            @classmethod
            def get_instance(cls, _target):
                return cls()

            def init(self, folder):
                pass

            enable_op_time = stop = enable_profile_memory = lambda self: None
            step_profiling_enable = init
    """,
    "mindspore/_c_dataengine.py": """
        class Manager:
            init = start = stop = lambda self: None

            def save(self, folder):
                open(folder + "/saved", "w").close()

        class GlobalContext:
            @staticmethod
            def profiling_manager():
                return Manager()
    """,
    "mindspore/dataset/__init__.py": "",
    "mindspore/dataset/config.py": """
        def get_monitor_sampling_interval():
            return 1000

        def set_monitor_sampling_interval(_interval):
            pass
    """,
    "mindspore/dataset/engine/__init__.py": "",
    "mindspore/dataset/engine/iterators.py": """
        class Iterator:
            def __init__(self, dataset, num_epochs=-1):
                self._runtime_context = True
                self._Iterator__ori_dataset = dataset
                dataset.parse_all()
                self._rows = dataset.rows()

            def __iter__(self):
                return self

            def __next__(self):
                return next(self._rows)

            def stop(self):
                del self._runtime_context
    """,
    "mindspore/dataset/engine/datasets.py": """
        class cde:
            class MessageQueue:
                def msg_rcv(self, row):
                    return row

                msg_snd = msg_rcv

        class _PythonMultiprocessing:
            num_parallel_workers, pids, workers = 1, None, []

            def create_pool(self):
                pass

            def get_pids(self):
                return self.pids or []

        class Dataset:
            def __init__(self, *children):
                self.children = list(children)

            def parse_all(self):
                for child in self.children:
                    child.parse_all()
                self.parse()

            def parse(self):
                pass

        class MapDataset(Dataset):
            def __init__(self, child, operations):
                super().__init__(child)
                self.operations = operations

            def parse(self):
                return "map"

            def rows(self):
                for row in self.children[0].rows():
                    for operation in self.operations:
                        row = operation(row)
                    yield row

        class BatchDataset(Dataset):
            per_batch_map = None

            def parse(self):
                return "batch"

            def rows(self):
                rows = self.children[0].rows()
                return iter([tuple(pair) for pair in zip(rows, rows)])
    """,
    "mindspore/dataset/engine/datasets_user_defined.py": """
        import functools
        from .datasets import Dataset

        class _PickleGeneratorSource:
            def __init__(self, source):
                self.source = source

            def __getitem__(self, index):
                return self.source[index]

            def __len__(self):
                return len(self.source)

        class SamplerFn:
            def launch(self):
                pass

        class GeneratorDataset(Dataset):
            python_multiprocessing = False

            def __init__(self, source):
                super().__init__()
                self.is_indexed = hasattr(source, "__getitem__")
                self.source = _PickleGeneratorSource(source) if self.is_indexed else source
                self.sample_fn = SamplerFn() if self.is_indexed else None

            def parse(self):
                self.prepare_multiprocessing()

            def prepare_multiprocessing(self):
                self.prepared_source = functools.partial(self._given)

            def _given(self):
                return iter(self.source())

            def rows(self):
                if not self.is_indexed:
                    return self.prepared_source()
                return (self.source[index] for index in range(len(self.source)))
    """,
    "mindspore/dataset/transforms/__init__.py": "",
    "mindspore/dataset/transforms/py_transforms_util.py": """
        class FuncWrapper:
            def __init__(self, transform):
                self.transform = transform

            def __call__(self, *args):
                return self.transform(*args)
    """,
    "mindspore/common/__init__.py": "",
    "mindspore/common/tensor.py": """
        class Tensor:
            def __init__(self, value):
                self.value, self.shape, self.dtype = value, (1,), "Float32"

            def asnumpy(self):
                return self.value
    """,
    "mindspore/common/api.py": """
        class _PyNativeExecutor:
            def new_graph(self, what, *args):
                pass

            end_graph = new_graph

            def grad(self, *args):
                return "gradients"

            def sync(self):
                pass

        _pynative_executor = _PyNativeExecutor()
        ms_compile_cache = set()

        class _JitExecutor:
            obj = None

            def __init__(self, fn):
                self.fn = fn

            def compile(self, *args):
                ms_compile_cache.add(self.fn)
                return "phase"

            def __call__(self, *args):
                self.compile(*args)
                return self.fn(*args)

        class _CellGraphExecutor:
            def compile(self, cell, *args):
                return "phase", cell not in ms_compile_cache
    """,
    "mindspore/hal/__init__.py": "",
    "mindspore/hal/stream.py": """
        def synchronize():
            pass
    """,
    "mindspore/ops/__init__.py": "",
    "mindspore/ops/primitive.py": """
        class Primitive:
            name = "Add"

            def __call__(self, *args):
                return args[0]
    """,
    "mindspore/nn/__init__.py": "",
    "mindspore/nn/cell.py": """
        class Cell:
            create_time = 1

            def __call__(self, *args):
                return self.construct(*args)

            def compile_and_run(self, *args):
                return self.construct(*args)

            def cells_and_names(self):
                return [("", self)]

            def cells(self):
                return []

            def get_parameters(self):
                return iter([self])
    """,
    "mindspore/nn/optim/__init__.py": "",
    "mindspore/nn/optim/optimizer.py": """
        from mindspore.nn.cell import Cell

        class Optimizer(Cell):
            def construct(self, gradients):
                return gradients
    """,
    "mindspore/dataset/dataloader/__init__.py": "from .dataloader import DataLoader",
    "mindspore/dataset/dataloader/_utils/__init__.py": "",
    "mindspore/dataset/dataloader/_utils/collate.py": """
        def default_collate(rows):
            return sum(rows), len(rows)

        default_convert = default_collate
    """,
    "mindspore/dataset/dataloader/_utils/fetch.py": """
        class MapDatasetFetcher:
            auto_collation = True

            def __init__(self, dataset, collate_fn):
                self.dataset, self.collate_fn = dataset, collate_fn

            def fetch(self, indices):
                return self.collate_fn([self.dataset[index] for index in indices])

        class IterableDatasetFetcher(MapDatasetFetcher):
            def __init__(self, dataset, collate_fn):
                self.dataset_iterator, self.collate_fn = iter(dataset), collate_fn

            def fetch(self, indices):
                return self.collate_fn([next(self.dataset_iterator) for index in indices])
    """,
    "mindspore/dataset/dataloader/_utils/worker.py": """
        import sys, traceback

        class WorkerException:
            def __init__(self, worker_id=None, exc_info=None):
                self.message = "".join(traceback.format_exception(*(exc_info or sys.exc_info())))

        def data_worker_fn(fetcher, index_queue, data_queue):
            for indices in iter(index_queue.get, None):
                try:
                    data_queue.put(fetcher.fetch(indices))
                except Exception:
                    data_queue.put(WorkerException(0))
    """,
    "mindspore/dataset/dataloader/dataloader.py": """
        import multiprocessing
        from ._utils.collate import default_collate
        from ._utils.fetch import IterableDatasetFetcher, MapDatasetFetcher
        from ._utils.worker import WorkerException, data_worker_fn

        class DataLoader:
            collate_fn, prefetch_factor, persistent_workers, in_order, pin_memory = None, 2, False, True, False
            batch_size, drop_last, auto_collation = 2, False, True

            def __init__(self, dataset, num_workers=0):
                self.dataset, self.num_workers = dataset, num_workers
                self.index_sampler = self.batch_sampler = [[0, 1], [2, 3], [4, 5], [6, 7]]

            def __iter__(self):
                return (_MultiProcessIterator if self.num_workers else _SingleProcessIterator)(self)

        class _Iterator:
            def __init__(self, loader):
                self.sampler_iterator = iter(loader.index_sampler)
                kind = MapDatasetFetcher if hasattr(loader.dataset, "__getitem__") else IterableDatasetFetcher
                self.dataset_fetcher = kind(loader.dataset, default_collate)

            def __iter__(self):
                return self

            def __next__(self):
                return self._get_next_data()

            def _get_next_index(self):
                return next(self.sampler_iterator)

        class _SingleProcessIterator(_Iterator):
            def _get_next_data(self):
                return self.dataset_fetcher.fetch(self._get_next_index())

        class _MultiProcessIterator(_Iterator):
            def __init__(self, loader):
                super().__init__(loader)
                context = multiprocessing.get_context("fork")
                self.task_info, self.result_queue, self.index_queues = {}, context.Queue(), [context.Queue()]
                arguments = (self.dataset_fetcher, self.index_queues[0], self.result_queue)
                self.data_workers = [context.Process(target=data_worker_fn, args=arguments)]
                self.data_workers[0].start()

            def _get_next_data(self):
                try:
                    self.index_queues[0].put(self._get_next_index())
                except StopIteration:
                    self.terminate()
                    raise
                return self.result_queue.get()

            def terminate(self):
                self.index_queues[0].put(None)
                self.data_workers[0].join()
    """,
    "mindspore/train/__init__.py": "",
    "mindspore/train/callback/__init__.py": "",
    "mindspore/train/callback/_callback.py": """
        class CallbackManager:
            def __init__(self, callbacks):
                self._callbacks = callbacks

            def _all(self, context):
                for callback in self._callbacks:
                    callback(context)

            on_train_begin = on_train_end = on_train_epoch_begin = on_train_epoch_end = _all
            on_train_step_end = on_eval_begin = on_eval_end = on_eval_step_end = _all
    """,
    "mindspore/train/model.py": """
        class Model:
            def train(self, work):
                return work()

            fit = eval = _eval_in_fit = train
    """,
    "mindspore/train/serialization.py": """
        def save_checkpoint(path):
            open(path, "w").close()
    """,
    "train.py": """
        import os, subprocess, sys, time
        import mindspore
        from mindspore import dataset
        from mindspore.common.api import _CellGraphExecutor, _JitExecutor, _pynative_executor
        from mindspore.common.tensor import Tensor
        from mindspore.dataset.dataloader import DataLoader
        from mindspore.dataset.engine.datasets import BatchDataset, MapDataset, _PythonMultiprocessing, cde
        from mindspore.dataset.engine.datasets_user_defined import GeneratorDataset, SamplerFn
        from mindspore.dataset.engine.iterators import Iterator
        from mindspore.dataset.transforms.py_transforms_util import FuncWrapper
        from mindspore.hal.stream import synchronize
        from mindspore.nn.cell import Cell
        from mindspore.nn.optim.optimizer import Optimizer
        from mindspore.ops.primitive import Primitive
        from mindspore.train.callback._callback import CallbackManager
        from mindspore.train.model import Model
        from mindspore.train.serialization import save_checkpoint

        class Net(Cell):
            def construct(self, x):
                return Primitive()(x)

        class Context:
            def original_args(self):
                return {"cur_epoch_num": 1, "cur_step_num": 1, "epoch_num": 1, "batch_num": 4}

        net, optimizer, jit = Net(), Optimizer(), _JitExecutor(lambda x: x)

        def step(row):
            _pynative_executor.new_graph(net, row)
            x = net(row)
            _pynative_executor.end_graph(net, x)
            optimizer(_pynative_executor.grad(net))
            print("loss", Tensor(x).asnumpy(), jit(row), net.compile_and_run(row), _CellGraphExecutor().compile(net, row))
            synchronize()
            time.sleep(0.004)

        def made():
            yield from range(8)

        def rows(source):
            return BatchDataset(MapDataset(GeneratorDataset(source), [FuncWrapper(lambda x: x * 2)]))

        def epoch(source):
            iterator = Iterator(rows(source), num_epochs=1)
            for row in iterator:
                step(row)
            iterator.stop()

        def train():
            manager = CallbackManager([lambda context: time.sleep(0.0002)])
            for name in ("on_train_begin", "on_train_epoch_begin"):
                getattr(manager, name)(Context())
            for row in Iterator(rows(list(range(8))), num_epochs=1):
                step(row)
                manager.on_train_step_end(Context())
            for name in ("on_train_epoch_end", "on_eval_begin", "on_eval_step_end", "on_eval_end", "on_train_end"):
                getattr(manager, name)(Context())
            return "model"

        def batches():
            for number in range(8):
                time.sleep(0.06)
                yield number, number

        def batches_of_numbers():
            yield from range(8)

        for row in batches():
            step(row)
        for loader in DataLoader(list(range(8))), DataLoader(batches_of_numbers()), DataLoader(list(range(7)), 1):
            for row in loader:
                step(row) if isinstance(row, tuple) else print(row.message.splitlines()[-1])
        try:
            list(DataLoader(list(range(7))))
        except IndexError as error:
            print("wrong", error)
        for number in range(40):
            epoch(list(range(number, number + 8)))
            if number < 3:
                epoch(made)
        print(Model().train(train))
        save_checkpoint("checkpoint")
        queue = cde.MessageQueue()
        print(queue.msg_rcv(1), queue.msg_snd(2))
        _PythonMultiprocessing().create_pool(); SamplerFn().launch(); print(_PythonMultiprocessing().get_pids())
        if not os.fork():
            step((1, 2)); sys.stdout.flush(); os._exit(0)
        os.wait()
        subprocess.run(["true"])
        print("trained")
        raise KeyError("the training's own")
    """,
}
