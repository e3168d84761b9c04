"""A bench without processes for sweeps: a clock that repetitions move on, made-up stages, deaths at chosen moments."""

from pipeprof.errors import WorkloadError
from pipeprof.experiment.sweep.bench import SweepBench

SPREAD = (1.0, 1.01, 0.99, 1.005, 0.995)


class Killed(BaseException):
    """What a kill is to a test: nothing of ours runs after it."""


class FakeSweepBench(SweepBench):
    """`steady(order)`: ns of a steady step. `fails(order, number)`: whether the repetition fails; number from 1."""

    def __init__(self, steady, *, seconds=10.0, fails=None, dies_at=None, setup=None):
        self.steady, self.seconds, self.fails, self.dies_at = steady, seconds, fails, dies_at
        self.setup = setup or (lambda _order: 2e9)
        self.time = 1000.0
        self.orders = []
        self.prepared, self.unprepared = [], False

    def now(self):
        return self.time

    def prepare(self, order):
        self.prepared.append(order)
        self.time += 30.0
        if self.unprepared:
            raise WorkloadError("exit code 1; it said `no cache`")

    def run(self, order, spec):  # noqa: ARG002 - the stages are made up
        self.orders.append(order)
        number = len(self.orders)
        if number == self.dies_at:
            raise Killed
        self.time += self.seconds
        if self.fails and self.fails(order, number):
            raise WorkloadError("exit code 1; it said `no such layer`")
        factor = SPREAD[(number * 7) % len(SPREAD)]
        steady, setup = self.steady(order) * factor, self.setup(order) * factor
        return {
            "configure": setup, "warmup_first": setup / 10, "setup": setup * 1.1, "steady": steady,
            "throughput": 1e9 / steady, "peak_memory": 2.0**30, "total": self.seconds * 1e9,
        }  # fmt: skip


def by_env(name, **values):
    """`by_env("A", one=1e6)`: the number for the value of a variable; 100 ms for any other."""
    return lambda order: values.get(order.env.get(name), 100e6)
