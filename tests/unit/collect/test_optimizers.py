"""Updates by optimizers of PyTorch, here of a stand-in that wraps `step` as PyTorch does."""

import functools
import sys
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
    probe.optimizers.install(made)
    probe.optimizers.install_backward(made)
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


def test_a_step_or_a_backward_pass_that_raises_is_none_and_its_error_has_no_frame_of_ours(
    torch, kinds, has_few_own_frames
):
    optimizer = torch.Optimizer()
    with pytest.raises(ZeroDivisionError) as caught:
        optimizer.step(lambda: 1 // 0)
    assert kinds() == [OTHER_CALL]
    assert has_few_own_frames(caught)
    optimizer.step()
    with pytest.raises(ZeroDivisionError) as caught:
        torch.backward(loss(), lambda: 1 // 0)
    assert kinds() == [OTHER_CALL, UPDATE]
    assert has_few_own_frames(caught)


def loss(device="cpu"):
    return SimpleNamespace(device=SimpleNamespace(type=device))


def test_a_backward_pass_on_the_cpu_is_a_section_outside_of_an_update_and_of_what_is_compiled(torch, kinds):
    optimizer = torch.Optimizer()
    torch.backward(loss())  # before anything that trains was seen
    optimizer.step(lambda: torch.backward(loss()))  # LBFGS calls the network and its gradients itself, more than once
    assert torch.backward(loss(), lambda: 3) == 3
    torch.backward(tensors=[loss(), loss("cuda")])
    for other in (loss("cuda"), (), None):
        torch.backward(other)
    torch.compiling = True
    torch.backward(loss())
    assert optimizer.step(lambda: 3) == 3
    assert kinds() == [UPDATE, SECTION, SECTION]
