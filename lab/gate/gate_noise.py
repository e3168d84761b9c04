"""Repetitions to try the gate on: synthetic regimes of noise. Sizes of the noise: docs/gate-numbers.md."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# The five metrics of a repetition, with a level of each: ns, and bytes for memory.
LEVELS = {
    "step_time_median": 100e6, "step_time_p90": 100e6, "data_wait": 20e6, "first_step_time": 2e9, "peak_memory": 2**30,
}  # fmt: skip
NAMES = tuple(LEVELS)
STEPS = 100
ROWS = 1000  # trials drawn at once, so that memory stays small


@dataclass(frozen=True)
class Regime:
    """Log standard deviations; each pair is a range that every trial draws its own value from.

    `rho`: lag-1 autocorrelation of steps. `tails`: degrees of freedom of Student's t that process effects are drawn
    from; 0, normal. `drift`: of a slow wave over the whole job. `spikes`: share of steps that take longer, by a factor
    e on average times 0.5. `job`: effect of a side's own job. `disturbed`: share of processes that something makes 1.5
    to 20 times as slow as a whole.
    """

    name: str
    rho: tuple[float, float]
    step: tuple[float, float]
    process: tuple[float, float]
    tails: int = 0
    drift: float = 0.0
    spikes: float = 0.0
    job: float = 0.0
    disturbed: float = 0.0


QUIET = Regime("quiet", (0.5, 0.5), (0.03, 0.03), (0.005, 0.005), spikes=0.01)
SAMEJOB = Regime("samejob", (0.6, 0.6), (0.08, 0.08), (0.015, 0.015), tails=4, drift=0.01, spikes=0.02)
SATURATED = Regime("saturated", (0.5, 0.8), (0.437, 0.842), (0.17, 0.31))
DIFFJOB = Regime("diffjob", (0.6, 0.6), (0.08, 0.08), (0.015, 0.015), tails=4, drift=0.01, spikes=0.02, job=0.054)
HEAVY = Regime("heavy", (0.6, 0.6), (0.08, 0.08), (0.05, 0.3), tails=2, spikes=0.02, disturbed=0.10)
SYNTHETIC = (QUIET, SAMEJOB, SATURATED, DIFFJOB, HEAVY)


def repetitions(regime, trials, reps, seed):
    """Values of the five metrics, (trials, 2 sides, metrics, reps), interleaved ABBA within a job."""
    random = np.random.default_rng(seed)
    parts = [_some(regime, min(ROWS, trials - start), reps, random) for start in range(0, trials, ROWS)]
    return np.concatenate(parts)


def steps(regime, trials, reps, seed):
    """Step times in ns, (trials, 2 sides, reps, steps)."""
    random = np.random.default_rng(seed)
    settings = _settings(regime, trials, random)
    shape = (trials, 2, reps)
    process = _process(regime, settings, shape, random) + _shared(regime, shape, random)
    process += _disturbed(regime, shape, random)
    series = _series(regime, settings, shape, random)
    return LEVELS["step_time_median"] * np.exp(np.moveaxis(series, 0, -1) + process[..., None])


LONGEST = 300.0  # of the logarithm of a time: heavy tails know no end, numbers do


def _some(regime, trials, reps, random):
    shape = (trials, 2, reps)
    settings = _settings(regime, trials, random)
    shared = _shared(regime, shape, random)
    process = _process(regime, settings, shape, random) + _disturbed(regime, shape, random)
    median, p90 = _quantiles(_series(regime, settings, shape, random))
    wait, _ = _quantiles(_series(regime, settings, shape, random))
    waits = 0.6 * process + 0.8 * _process(regime, settings, shape, random)
    first = process + settings["step"] * random.standard_normal(shape)
    logs = (median + process, p90 + process, wait + waits, first, _process(regime, settings, shape, random))
    # Drift and job effects are the machine's: memory does not know them.
    table = np.stack([log + (0 if at == 4 else shared) for at, log in enumerate(logs)], axis=2)
    return np.exp(np.minimum(table, LONGEST)) * np.array(list(LEVELS.values()))[:, None]


def _settings(regime, trials, random):
    ranges = {"rho": regime.rho, "step": regime.step, "process": regime.process}
    return {name: random.uniform(*ends, trials)[:, None, None] for name, ends in ranges.items()}


def _process(regime, settings, shape, random):
    draws = random.standard_t(regime.tails, shape) / np.sqrt(2) if regime.tails else random.standard_normal(shape)
    return settings["process"] * draws


def _disturbed(regime, shape, random):
    """What is added to the logarithm of every time of a process that something disturbs."""
    if not regime.disturbed:
        return np.zeros(shape)
    return (random.random(shape) < regime.disturbed) * random.uniform(np.log(1.5), np.log(20), shape)


def _shared(regime, shape, random):
    """What the job does to a repetition: a wave over its course, and a level of each side's own job."""
    trials, _, reps = shape
    place = np.arange(2 * reps)
    base = place[(place % 4 == 0) | (place % 4 == 3)]
    new = place[(place % 4 == 1) | (place % 4 == 2)]
    periods, phase = random.uniform(10, 80, (trials, 1, 1)), random.uniform(0, 2 * np.pi, (trials, 1, 1))
    wave = np.sqrt(2) * regime.drift * np.sin(2 * np.pi * np.stack([base, new])[None] / periods + phase)
    return wave + regime.job * random.standard_normal((trials, 2, 1))


def _series(regime, settings, shape, random):
    """AR(1) log deviations of steps, (steps, *shape), with spikes."""
    rho = settings["rho"].astype(np.float32)
    out = random.standard_normal((STEPS, *shape), dtype=np.float32)
    fresh = np.sqrt(1 - rho**2)
    for at in range(1, STEPS):
        out[at] = rho * out[at - 1] + fresh * out[at]
    out *= settings["step"].astype(np.float32)
    if regime.spikes:
        hit = random.random(out.shape, dtype=np.float32) < regime.spikes
        out[hit] += random.exponential(0.5, int(hit.sum())).astype(np.float32)
    return out


def _quantiles(series):
    ranked = np.partition(np.moveaxis(series, 0, -1).reshape(-1, STEPS), (49, 50, 89, 90), axis=-1)
    shape = series.shape[1:]
    return (ranked[:, 49:51].mean(axis=-1).reshape(shape), ranked[:, 89:91].mean(axis=-1).reshape(shape))


def operators(trials, reps, seed, count=41):
    """Values of `count` operators x 5 statistics in us, (trials, 2, metrics, reps): a common part, an own one, noise."""
    random = np.random.default_rng(seed)
    common = 0.02 * random.standard_normal((trials, 2, 1, 1, reps))
    own = 0.015 * random.standard_normal((trials, 2, count, 1, reps))
    noise = 0.006 * random.standard_normal((trials, 2, count, 5, reps))
    return 3000 * np.exp(common + own + noise).reshape(trials, 2, 5 * count, reps)
