"""Steps of PyTorch: updates by its optimizers, which `steps` records as it does MindSpore's, and backward passes.

PyTorch itself wraps the `step` of each class of optimizers when the first object of that class is made. Right after
that it gets a hook of ours. What is compiled calls the original alone, so that no graph breaks at the hook.
"""

import functools
import sys

from . import recorder, sections, steps, torch_ops, trains, workers

HOOKED = "_pipeprof_hook"


def install_package(module):
    """Torch has been imported."""
    steps.package_imported("torch", getattr(module, "__version__", ""))


def install_backward(module):
    """torch.autograd: the function that every backward pass of a loss goes through.

    Where a device works beside Python, how long Python was in it says nothing, and it is not recorded.
    """
    workers.wrap(module, "backward", _with_section)


def _with_section(original):
    torch = sys.modules.get("torch")

    @functools.wraps(original)
    def backward(*args, **kwargs):
        if torch.compiler.is_compiling():
            return original(*args, **kwargs)
        rec = recorder.REC
        begin = None if rec.off else recorder.guarded("sections", _begin, args[0] if args else kwargs.get("tensors"))
        try:
            result = original(*args, **kwargs)
        except BaseException as error:
            recorder.unseen(error)
            raise
        if begin is not None:
            recorder.guarded("sections", rec.mark, recorder.SECTION, sections.BACKWARD, 0, 0, begin, recorder.now())
        return result

    return backward


def _begin(tensors):
    """When a backward pass begins; None for one that is not to be recorded."""
    first = next(iter(tensors), None) if isinstance(tensors, (tuple, list)) else tensors
    on_cpu = getattr(getattr(first, "device", None), "type", None) == "cpu"
    return recorder.now() if on_cpu and recorder.REC.folder is not None and not steps.LOOP.inside else None


def install(module):
    """torch.optim.optimizer: the class of all optimizers."""
    workers.wrap(module.Optimizer, "_patch_step_function", _with_hook)


def _with_hook(original):
    def _patch_step_function(self):
        original(self)
        recorder.guarded("optimizer", _hook, type(self))

    return _patch_step_function


def _hook(kind):
    if not getattr(kind.step, HOOKED, False):
        kind.step = _timed(kind.step)


def _timed(original):
    torch = sys.modules["torch"]

    @functools.wraps(original)
    def step(self, *args, **kwargs):
        if torch.compiler.is_compiling():
            return original(self, *args, **kwargs)
        try:
            return steps._timed(original, self, args, kwargs, steps.OPTIMIZER, trains.identity, _updates)
        except BaseException as error:
            recorder.unseen(error)
            raise

    setattr(step, HOOKED, True)
    return step


def _updates(optimizer):
    """An optimizer always updates. What the training runs on is told with the first one."""
    device = next((one.device.type for group in optimizer.param_groups for one in group["params"]), None)
    steps.tell_torch_context(device)
    recorder.guarded("window", torch_ops.prepare, device)
    return True
