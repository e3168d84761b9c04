"""A bench without processes: a clock that repetitions move on, made-up step times, and deaths at chosen moments."""

from pipeprof.errors import WorkloadError
from pipeprof.experiment.repetition import Bench
from pipeprof.record.measures import Measures, Repetition

STEP = "step_time_median"


class Killed(BaseException):
    """What a kill is to a test: nothing of ours runs after it."""


class FakeBench(Bench):
    """`steps`: command's first word -> step times in ns, in turn. `dies_at`: the call that never returns.

    `steals`: repetition's name -> share of its CPU time that other machines take. `fails`: names of repetitions that
    end with exit code 1. `compares` keeps the sides that were judged.
    """

    def __init__(self, steps=None, *, seconds=10.0, dies_at=None, fails=(), compare=None, steals=None):
        self.steps = steps or {}
        self.seconds = seconds
        self.dies_at = dies_at
        self.fails = set(fails)
        self.calls = 0
        self.time = 1000.0
        self.ran = []
        self.environments = []
        self.places = []
        self.measures = {}
        self.compares = []
        self.decides = compare
        self.alive = []
        self.steals = steals or {}
        self.used, self.stolen = 0.0, 0.0

    def _point(self):
        self.calls += 1
        if self.calls == self.dies_at:
            raise Killed

    def now(self):
        self._point()
        return self.time

    def clock(self, ahead_s):
        return f"T+{self.time - 1000 + ahead_s:.0f}"

    def run(self, command, env, workdir, path, slow_down=None):
        self._point()
        path.mkdir()
        self._point()
        self.ran.append(path.name)
        self.environments.append(env)
        self.places.append(workdir)
        self.time += self.seconds(path.name) if callable(self.seconds) else self.seconds
        share = self.steals(path.name) if callable(self.steals) else self.steals.get(path.name, 0.0)
        self.used, self.stolen = self.used + 10.0 * (1 - share), self.stolen + 10.0 * share
        if path.name in self.fails:
            raise WorkloadError("exit code 1; it said `no such layer`", f"all it said is in `{path}.log`")
        (path / "step").write_text(str(self._step(command[0], path.name, slow_down)))

    def _step(self, word, name, slow_down):
        number = int(name.rpartition("-")[2]) if name[-1].isdigit() else 0
        series = self.steps.get(word, (1e6, 1.01e6, 0.99e6, 1.005e6, 0.995e6))
        return series[number % len(series)] * (1 + (slow_down or 0.0))

    def cpu(self):
        return self.used, self.stolen

    def measure(self, path):
        self._point()
        value = float((path / "step").read_text())
        return Measures(
            label=str(path), workload="train", reps={0: Repetition(order=0)}, values={STEP: {0: value}},
            fingerprint={"cpu_model": "one"},
        )  # fmt: skip

    def compare(self, base, new, policy, plan):
        self._point()
        self.compares.append((base, new, policy))
        if self.decides is None:
            return super().compare(base, new, policy, plan)
        return self.decides(len(base.reps), [look.reps for look in plan])

    def still_running(self, path):  # noqa: ARG002 - whatever the path
        return self.alive


def says(verdict, at=None, *, hopeless=None):
    """A gate that is undecided until `at` repetitions, then says `verdict`; from `hopeless` on it gives up."""

    def decide(reps, looks):
        decided = at is not None and reps >= at
        following = None if decided or reps >= looks[-1] else min(k for k in looks if k > reps)
        word = verdict if decided else "inconclusive"
        return {
            "schema_version": 1, "verdict": word, "exit_code": {"regressed": 1, "inconclusive": 4}.get(word, 0),
            "headline": f"{word} at {reps}", "notes": [], "note_facts": [], "metrics": [], "next_look": following,
            "hopeless": hopeless is not None and reps >= hopeless,
        }  # fmt: skip

    return decide
