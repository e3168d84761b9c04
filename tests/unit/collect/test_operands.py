"""What Python calls operators with, in one step: recorded once, and the classes are as before afterwards."""

import sys
import types

import pytest


class Tensor:
    def __init__(self, *shape):
        self.shape = shape
        self.dtype = "Float32"


@pytest.fixture
def mindspore(monkeypatch):
    """A package with operators as MindSpore's: classes that share a call, or have one of their own."""

    class Primitive:
        def __init__(self, name, **attributes):
            self.name = name
            vars(self).update(attributes)

        def __call__(self, *args):
            return args[0]

    class Own(Primitive):
        def __call__(self, *args):
            return super().__call__(*args), Tensor(1)

    package = types.ModuleType("mindspore")
    package.get_context = lambda _name: package.mode
    package.mode = 1
    primitive = types.ModuleType("mindspore.ops.primitive")
    primitive.Primitive, primitive.Own = Primitive, Own
    monkeypatch.setitem(sys.modules, "mindspore", package)
    monkeypatch.setitem(sys.modules, "mindspore.ops.primitive", primitive)
    return types.SimpleNamespace(package=package, Primitive=Primitive, Own=Own)


@pytest.fixture
def operands(probe, rec):
    rec.open()
    return probe.operands.Operands()


@pytest.fixture
def events(rec, monkeypatch):
    """Events in place of the file that they are flushed to."""
    found = []
    monkeypatch.setattr(rec, "event", lambda name, **fields: found.append((name, fields)))
    return found


def watch(mindspore, operands):
    """A step with one call."""
    operands.start()
    mindspore.Primitive("Add")(Tensor(1))
    operands.stop()


def test_calls_of_a_step_have_types_shapes_and_attributes(mindspore, operands, events):
    conv, add = mindspore.Primitive("Conv2D", kernel_size=(3, 3), other="x"), mindspore.Own("Add")
    operands.start()
    conv(Tensor(1, 3, 8, 8), Tensor(8, 3, 3, 3))
    add(Tensor(4), (Tensor(2), 7))
    conv(Tensor(1, 3, 8, 8), Tensor(8, 3, 3, 3))
    operands.step_done()
    image, weight = ("float32", (1, 3, 8, 8)), ("float32", (8, 3, 3, 3))
    assert events == [
        (
            "operands",
            {
                "kinds": [
                    ["Conv2D", (image, weight), (image,), (("kernel_size", (3, 3)),)],
                    ["Add", (("float32", (4,)), ("float32", (2,))), (("float32", (4,)), ("float32", (1,))), ()],
                ],
                "calls": [0, 1, 0],
            },
        )
    ]


def test_afterwards_the_classes_are_as_before_and_nothing_is_recorded_again(mindspore, operands, events):
    before = [vars(kind)["__call__"] for kind in (mindspore.Primitive, mindspore.Own)]
    watch(mindspore, operands)
    assert [vars(kind)["__call__"] for kind in (mindspore.Primitive, mindspore.Own)] == before
    watch(mindspore, operands)
    assert len(events) == 1


def test_a_step_without_calls_is_not_the_one(mindspore, operands, events):
    operands.start()
    operands.step_done()
    mindspore.Primitive("Add")(Tensor(1))
    operands.step_done()
    assert len(events) == 1


def test_a_graph_has_no_calls(mindspore, operands, events):
    mindspore.package.mode = 0
    watch(mindspore, operands)
    assert events == []


def test_an_operator_that_raises_still_does_and_a_shape_that_does_is_our_failure(mindspore, operands, rec, events):
    class Torn:
        @property
        def shape(self):
            raise RuntimeError("torn")

    operands.start()
    with pytest.raises(IndexError):
        mindspore.Primitive("Add")()
    torn = Torn()
    assert mindspore.Primitive("Add")(torn) is torn
    assert rec._warned == {"probe_failed:operands"}
    assert mindspore.Primitive("Add")(1) == 1
