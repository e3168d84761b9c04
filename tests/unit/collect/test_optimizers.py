"""Updates by optimizers of PyTorch, here of a stand-in that wraps `step` as PyTorch does."""

import functools
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

UPDATE, OTHER_CALL, SECTION = 10, 11, 14


class Device:
    type = "cpu"


@pytest.fixture
def torch(probe, rec, monkeypatch):
    """The stand-in, hooked: its class of optimizers, and whether it is compiling."""

    class Optimizer:
        def __init__(self):
            self.param_groups = [{"params": []}, {"params": [SimpleNamespace(device=Device)]}]
            self._patch_step_function()

        def _patch_step_function(self):
            kind = type(self)
            if not getattr(kind.step, "hooked", None):
                original = kind.step
                kind.step = functools.wraps(original)(lambda *args: original(*args))  # noqa: PLW0108 - another function
                kind.step.hooked = True

        def step(self, closure=None):
            return None if closure is None else closure()

    made = SimpleNamespace(Optimizer=Optimizer, compiling=False, __version__="2.13.0")
    made.compiler = SimpleNamespace(is_compiling=lambda: made.compiling)
    monkeypatch.setitem(sys.modules, "torch", made)
    monkeypatch.delitem(sys.modules, "mindspore", raising=False)  # of another test's: it has a context of its own
    made.backward = lambda tensors, run=lambda: None: run()  # noqa: ARG005 - its name is part of the call
    hooks = import_module(f"{probe.package.__name__}.optimizers")
    hooks.install(made)
    hooks.install_backward(made)
    return made


@pytest.fixture
def kinds(probe, rec):
    """`kinds()`: the kinds of the marks that were written, or with their units."""

    def of(*, units=False):
        rec.flush()
        marks = probe.marks.MARK.iter_unpack(Path(rec.folder, "marks.bin").read_bytes())
        return [(mark[0], mark[2]) if units else mark[0] for mark in marks]

    return of


def test_each_step_of_an_optimizer_is_an_update_of_its_own_unit(torch, kinds, told):
    class Own(torch.Optimizer):
        def step(self, closure=None):
            return super().step(closure)

    first, second = torch.Optimizer(), Own()
    assert (first.step(), second.step(lambda: 5), second.step()) == (None, 5, None)
    units = [unit["number"] for unit in told("unit")]
    assert kinds(units=True) == [(UPDATE, units[0]), (UPDATE, units[1]), (UPDATE, units[1])]
    assert [unit["owner"] for unit in told("unit")] == ["Optimizer", "Own"]
    assert [context["device_target"] for context in told("context")] == ["CPU"]
    assert first.step.__wrapped__.hooked


def test_a_step_that_raises_is_no_update_and_its_error_has_no_frame_of_ours(torch, kinds, own_frames):
    optimizer = torch.Optimizer()
    with pytest.raises(ZeroDivisionError) as caught:
        optimizer.step(lambda: 1 // 0)
    assert kinds() == [OTHER_CALL]
    found, most = own_frames(caught)
    assert found <= most


def test_what_is_compiled_sees_the_original_alone(torch, rec):
    optimizer, torch.compiling = torch.Optimizer(), True
    assert optimizer.step(lambda: 3) == 3
    assert rec.folder is None


def loss(device="cpu"):
    return SimpleNamespace(device=SimpleNamespace(type=device))


def test_a_backward_pass_on_the_cpu_is_a_section(torch, kinds):
    optimizer = torch.Optimizer()
    torch.backward(loss())  # before anything that trains was seen
    optimizer.step()
    assert torch.backward(loss(), lambda: 3) == 3
    torch.backward(tensors=[loss(), loss("cuda")])
    for other in (loss("cuda"), (), None):
        torch.backward(other)
    torch.compiling = True
    torch.backward(loss())
    assert kinds() == [UPDATE, SECTION, SECTION]


def test_a_backward_pass_that_raises_is_none(torch, kinds, own_frames):
    torch.Optimizer().step()
    with pytest.raises(ZeroDivisionError) as caught:
        torch.backward(loss(), lambda: 1 // 0)
    assert kinds() == [UPDATE]
    found, most = own_frames(caught)
    assert found <= most


def test_a_closure_of_an_optimizer_is_part_of_its_update(torch, kinds):
    """LBFGS calls the network and its gradients itself, more than once."""
    torch.Optimizer().step(lambda: torch.backward(loss()))
    assert kinds() == [UPDATE]
