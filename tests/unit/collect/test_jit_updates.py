"""Whether a jit function trains, told from its code without running it."""

import functools
import types

import pytest


class Optimizer:
    """Stands for MindSpore's base class of optimizers."""

    def __call__(self, _gradients):
        raise AssertionError("it was called")


class Momentum(Optimizer):
    pass


optimizer = Momentum()
gradient = types.FunctionType((lambda fn: fn).__code__, globals(), "value_and_grad")
gradient.__module__ = "mindspore.ops.composite"


def net(x):
    return x


def straight(x):
    return optimizer(net(x))


def helper(x):
    return straight(x)


def through_helpers(x):
    return helper(x)


def by_gradient(x):
    return gradient(net)(x)


def inside(x):
    def hidden(y):
        return optimizer(y)

    return hidden(x)


def only_looks(x):
    return net(net(x))


def endless(x):
    return endless(other_endless(x))


def other_endless(x):
    return endless(x)


def closed_over(inner):
    return lambda x: (inner(x),)


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        return args

    return wrapper


class Trainer:
    def __init__(self):
        self.optimizer = Momentum()
        self.net = net

    def train(self, x):
        return self.optimizer(self.net(x))

    def look(self, x):
        return self.net(x)


@pytest.fixture
def updates(probe):
    probe.trains.OPTIMIZERS.append(Optimizer)
    return lambda function, owner=None: probe.trains.jit_updates(types.SimpleNamespace(fn=function, obj=owner))


TRAINING = [straight, helper, through_helpers, by_gradient, inside, decorated(straight), Trainer().train]
TRAINING += [closed_over(Momentum()), closed_over(helper)]
LOOKING = [only_looks, net, endless, closed_over(net), decorated(net), print]


@pytest.mark.parametrize("function", TRAINING)
def test_a_function_that_reaches_an_optimizer_or_a_gradient_trains(updates, function):
    assert updates(function)


@pytest.mark.parametrize("function", LOOKING)
def test_a_function_that_reaches_none_does_not(updates, function):
    assert not updates(function)


def test_a_plain_function_trains_by_what_it_uses_of_its_owner(updates):
    assert updates(Trainer.train, Trainer())
    assert not updates(Trainer.look, Trainer())


def test_a_closure_that_is_still_empty_is_no_error(updates):
    def outer():
        def looks():
            return later

        found = updates(looks)
        later = 1
        return found, later

    assert outer()[0] is False
