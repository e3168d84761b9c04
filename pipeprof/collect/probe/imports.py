"""Calls a hook as soon as a module has been imported, without importing anything itself."""

import sys

from . import recorder

PACKAGES = ("mindspore", "torch")
# Module of one of them -> module and function of ours. Ours are loaded when one of these is asked for: most Pythons of
# a process tree never do, and pay nothing.
HOOKS = {
    "mindspore": ("steps", "install_package"),
    "mindspore.dataset.engine.iterators": ("dataset", "install"),
    "mindspore.dataset.engine.datasets": ("dataset", "install_datasets"),
    "mindspore.dataset.engine.datasets_user_defined": ("callables", "install_sources"),
    "mindspore.dataset.transforms.py_transforms_util": ("callables", "install_functions"),
    "mindspore.dataset.dataloader.dataloader": ("dataloader", "install"),
    "mindspore.dataset.dataloader._utils.fetch": ("dataloader", "install_fetchers"),
    "mindspore.dataset.dataloader._utils.worker": ("dataloader", "install_workers"),
    "torch": ("optimizers", "install_package"),
    "torch._utils": ("dataloader", "install_torch_errors"),
    "torch.utils.data.dataloader": ("dataloader", "install_torch"),
    "torch.utils.data._utils.fetch": ("dataloader", "install_torch_fetchers"),
    "torchdata.stateful_dataloader.stateful_dataloader": ("dataloader", "install_stateful"),
    "torch.autograd": ("optimizers", "install_backward"),
    "torch.optim.optimizer": ("optimizers", "install"),
    "torch.autograd.profiler": ("profiler_guard", "install_torch"),
    "mindspore.common.tensor": ("syncs", "install_tensor"),
    "mindspore.hal.stream": ("syncs", "install_stream"),
    "mindspore.runtime.stream": ("syncs", "install_stream"),
    "mindspore.train.callback._callback": ("steps", "install_callbacks"),
    "mindspore.train.model": ("steps", "install_model"),
    "mindspore.train.serialization": ("around", "install_serialization"),
    "mindspore.nn.cell": ("steps", "install_cell"),
    "mindspore.nn.optim.optimizer": ("steps", "install_optimizer"),
    "mindspore.experimental.optim.optimizer": ("steps", "install_optimizer"),
    "mindspore.graph.api": ("steps", "install_executors"),
    "mindspore.common.api": ("steps", "install_executors"),
    "mindspore.profiler.profiler": ("profiler_guard", "install_classes"),
    "mindspore.profiler.platform.cpu_profiler": ("profiler_guard", "install_platform"),
    "mindspore.profiler.platform.npu_profiler": ("profiler_guard", "install_platform"),
    "mindspore.profiler.platform.gpu_profiler": ("profiler_guard", "install_platform"),
}


class Finder:
    """A meta-path finder that lets the others find, and wraps the loader's exec_module of the modules above."""

    def find_spec(self, name, path=None, target=None):
        """Spec of a hooked module, from the finders behind this one."""
        hook = HOOKS.get(name)
        if hook is None:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    _wrap(spec.loader, hook)
                return spec
        return None


def _ours(name):
    """A module of the probe, imported when it is first needed."""
    import importlib

    return importlib.import_module("." + name, __package__)


def _wrap(loader, hook):
    execute = loader.exec_module

    def exec_module(module):
        try:
            del loader.exec_module
        except AttributeError:
            pass
        if module.__name__ in PACKAGES:
            _began(module.__name__)
        execute(module)
        try:
            getattr(_ours(hook[0]), hook[1])(module)
        except Exception:
            recorder.REC.failed("hook " + module.__name__)

    loader.exec_module = exec_module


def _began(name):
    try:
        _ours("steps").package_import_began(name)
    except Exception:
        recorder.REC.failed("import")


def install_loaded():
    """Hook what was imported before us; the packages themselves are left to the caller."""
    for name, hook in HOOKS.items():
        module = sys.modules.get(name)
        if module is None or name in PACKAGES:
            continue
        try:
            getattr(_ours(hook[0]), hook[1])(module)
        except Exception:
            recorder.REC.failed("hook " + name)


def install():
    """Put the finder first."""
    sys.meta_path.insert(0, Finder())
