"""What Python calls operators with, in one step: recorded once, and the classes are as before afterwards."""

import sys
from types import ModuleType, SimpleNamespace

import pytest


class Tensor:
    def __init__(self, *shape):
        self.shape = shape
        self.dtype = "Float32"


@pytest.fixture
def operators(mindspore, monkeypatch):
    """Operators as MindSpore's: classes that share a call, or have one of their own."""

    class Primitive:
        def __init__(self, name, **attributes):
            self.name = name
            vars(self).update(attributes)

        def __call__(self, *args):
            return args[0]

    class Own(Primitive):
        def __call__(self, *args):
            return super().__call__(*args), Tensor(1)

    mindspore.get_context = lambda _name: mindspore.mode
    mindspore.mode = 1
    primitive = ModuleType("mindspore.ops.primitive")
    primitive.Primitive, primitive.Own = Primitive, Own
    monkeypatch.setitem(sys.modules, "mindspore.ops.primitive", primitive)
    return SimpleNamespace(package=mindspore, Primitive=Primitive, Own=Own)


@pytest.fixture
def operands(probe, rec):
    rec.open()
    return probe.operands.Operands()


def test_calls_of_a_step_have_types_shapes_and_attributes(operators, operands, said):
    conv, add = operators.Primitive("Conv2D", kernel_size=(3, 3), other="x"), operators.Own("Add")
    operands.start()
    conv(Tensor(1, 3, 8, 8), Tensor(8, 3, 3, 3))
    add(Tensor(4), (Tensor(2), 7))
    conv(Tensor(1, 3, 8, 8), Tensor(8, 3, 3, 3))
    operands.step_done()
    image, weight = ("float32", (1, 3, 8, 8)), ("float32", (8, 3, 3, 3))
    four, two, one = (("float32", (size,)) for size in (4, 2, 1))
    kinds = [["Conv2D", (image, weight), (image,), (("kernel_size", (3, 3)),)], ["Add", (four, two), (four, one), ()]]
    assert said == [("operands", {"kinds": kinds, "calls": [0, 1, 0]})]


def test_one_step_with_calls_is_recorded_and_afterwards_the_classes_are_as_before(operators, operands, said):
    kinds = operators.Primitive, operators.Own
    before = [vars(kind)["__call__"] for kind in kinds]
    for mode in (0, 1, 1):  # a graph, which has no calls, and two steps
        operators.package.mode = mode
        operands.start()
        operators.Primitive("Add")(Tensor(1))
        operands.stop()
        assert [vars(kind)["__call__"] for kind in kinds] == before
        assert len(said) == (mode == 1)


def test_a_step_without_calls_is_not_the_one(operators, operands, said):
    operands.start()
    operands.step_done()
    assert said == []
    operators.Primitive("Add")(Tensor(1))
    operands.step_done()
    assert len(said) == 1


def test_an_operator_that_raises_still_does_and_a_shape_that_does_is_our_failure(operators, operands, failures):
    torn = type("Torn", (), {"shape": property(lambda _self: 1 / 0)})()
    operands.start()
    with pytest.raises(IndexError):
        operators.Primitive("Add")()
    assert operators.Primitive("Add")(torn) is torn
    assert failures == ["operands"]
    assert operators.Primitive("Add")(1) == 1
