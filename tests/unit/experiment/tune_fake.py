"""A bench whose runs follow a known response surface, on a clock of its own: tunings without trainings."""

import random
from dataclasses import replace

from cache_points import cache_point

from pipeprof.errors import WorkloadError
from pipeprof.experiment.tune.bench import Recording, RunResult
from pipeprof.experiment.tune.rows import Column, Epoch
from pipeprof.verdict.candidate import Recorded
from pipeprof.verdict.capacity import Loop, Stage

SITE = "train.py:30"
TYPES = ("BatchOp", "MapOp", "GeneratorOp")
COMMAND = ("python", "train.py")


def epoch(order="in order", rows="all rows", number=96, *, whole=True, columns=()):
    return Epoch(batches=12, rows=number, sum=rows, ordered=order, whole=whole, columns=tuple(columns))


def column(name, drawn="", form="float32", order="in order"):
    """A column whose values depend on what was drawn; "" for none."""
    least = tuple(f"{name} {drawn} {number}" for number in range(8))
    return Column(name=name, ordered=f"{drawn} {order}", sum=drawn, form=form, least=least)


def pipeline(*work_ms, consumer=200.0, kinds=("wait", "wait", "wait"), is_python=True):
    """A loop of batch, map and source, each with one worker that takes so many ms for a batch."""
    stages = tuple(
        Stage(
            number, TYPES[number], workers=1, work_ns=ms * 1e6, rate=1000 / ms, cores=0.05, utilisation=0.9,
            kind=kinds[number], row_ns=ms * 1e6 / 8, rows=8.0, is_python=is_python, capacity=16, name=f"op{number}",
        )
        for number, ms in enumerate(work_ms)
    )  # fmt: skip
    rate = min(consumer, *(stage.rate for stage in stages))
    return Loop(stages, consumer=consumer, rate=rate, free_cores=6.0, process_cores=0.5, cpu_count=8, gil_share=0.05)


class FakeBench:
    """`truth(settings)` is the speed in steps/s, by default `by_workers`; the recording shows `loop` with the settings.

    `noise`: relative spread of a run. `handed(settings, number)`: the fingerprints of the run of that number.
    `whole(settings, number)`: its epochs, where rows are compared, `reseeded(settings)`: with other seeds. `breaks`:
    settings whose runs fail. `later(rate, settings)`: the speed from the second epoch on. `need(settings)`: what a run
    needs of what is to be saved. `interrupt_after`: a run after which the process is interrupted, as by Ctrl-C.
    `ended_after`: steps after which a recording was ended.
    """

    def __init__(self, loop, truth=None, noise=0.005, seed=1, run_s=5.0, **given):
        self.loop, self.truth, self.noise, self.run_s = loop, truth or by_workers(loop), noise, run_s
        self.random = random.Random(seed)  # noqa: S311 - reproducible on purpose
        self.clock, self.runs, self.looks, self.longest_looks = 0.0, [], [], []
        self.handed = lambda _settings, _number: ("one", "two")
        self.whole = lambda _settings, _number: [epoch()]
        self.reseeded = lambda _settings: [epoch("x", "reseeded")]
        self.compared = []
        self.breaks = lambda _settings: False
        self.interrupt_after = self.stop_after = self.ended_after = None
        self.steps_of_runs = []
        self.need = lambda _settings: None
        self.caches, self.epochs = (), 1
        self.waits_elsewhere = lambda _settings: False
        self.look_s, self.proof_noise = [], None
        self.later = lambda rate, _settings: rate
        vars(self).update(given)

    def now(self):
        return self.clock

    def look(self, settings, path, longest_s=None):
        self.longest_looks.append(longest_s)
        if path.exists():
            return self._seen(settings)
        path.mkdir(parents=True)
        self.clock += self.look_s.pop(0) if self.look_s else 2 * self.run_s
        self.looks.append(settings)
        return self._seen(settings)

    def run(self, settings, folder, name, longest_s):  # noqa: ARG002 - the real one takes it
        if self.interrupt_after is not None and len(self.runs) >= self.interrupt_after:
            raise KeyboardInterrupt
        self.clock += self.run_s
        self.runs.append((folder.name, name, settings))
        self.steps_of_runs.append(self.stop_after)
        if self.breaks(settings):
            raise WorkloadError("it does not pickle")
        noise = self.proof_noise if self.proof_noise and folder.name == "final" else self.noise
        rate = self.truth(settings) * self.random.lognormvariate(0.0, noise)
        need = self.need(settings)
        need = None if need is None else need * self.random.lognormvariate(0.0, self.noise)
        return RunResult(rate, self.run_s, self.handed(settings, len(self.runs)), need, self.later(rate, settings))

    def rows(self, settings, folder, longest_s, *, other_seed=False):  # noqa: ARG002 - the real one takes them
        self.clock += self.run_s
        self.compared.append(settings)
        return self.reseeded(settings) if other_seed else self.whole(settings, len(self.compared))

    def _seen(self, settings):
        new = {one.node: one for one in settings.operators}
        stages = []
        for stage in self.loop.stages:
            one = new.get(stage.op_id)
            workers = (one and one.workers) or stage.workers
            processes = stage.uses_processes if one is None or one.processes is None else one.processes
            rate = stage.rate * workers / stage.workers
            stages.append(replace(stage, workers=workers, uses_processes=processes, rate=rate))
        loop = replace(self.loop, stages=tuple(stages), rate=self.truth(settings))
        same = ("op_id", "op_type", "name", "workers", "uses_processes", "capacity")
        places = [{"node": one.op_id, "site": f"train.py:{one.op_id + 9}"} for one in stages]
        ops = [{name: getattr(one, name) for name in same} | at for one, at in zip(stages, places, strict=True)]
        return Recording(
            loop, ops, SITE, 2 * self.run_s, recorded=Recorded(self.caches), epochs=self.epochs,
            ended_after=self.ended_after, waits_elsewhere=self.waits_elsewhere(settings),
        )  # fmt: skip


def workers_of(settings, node):
    return next((one.workers or 1 for one in settings.operators if one.node == node), 1)


def by_workers(loop):
    """The truth where the model is right: each stage in proportion to its workers, then the consumer."""

    def truth(settings):
        return min(loop.consumer, *(one.rate * workers_of(settings, one.op_id) for one in loop.stages))

    return truth


def slow_map(truth=None, source=6, **given):
    """A training that its map makes four times as slow as the loop could be; whose source may be slow, too."""
    return FakeBench(pipeline(6, 40, source, consumer=100.0), truth, **given)


def with_a_cache(epochs, **given):
    """A slow map that no workers help; a cache behind it makes all but the first epoch four times as fast."""
    behind_map = cache_point(op_id=1, name=None, row_bytes=10, rows=100, ratio=4.0)
    bench = FakeBench(pipeline(6, 40, 6, consumer=100.0, kinds=("cpu", "cpu", "cpu")), lambda _settings: 25.0)
    bench.caches, bench.epochs = [cache_point(op_id=2, op_type="GeneratorOp"), behind_map], epochs
    bench.later = lambda rate, settings: rate * (4 if settings.keeps_rows else 1)
    vars(bench).update(given)
    return bench


def verdicts(state):
    return [(one.key, one.verdict) for one in state.trials]


def which(state):
    """The verdicts that trials had."""
    return {one.verdict for one in state.trials}
