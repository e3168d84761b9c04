"""Pipelines drawn at random from the same grammar, for a test that no rule was tuned on.

A draw is thrown away when its label would be a matter of opinion: the two largest loads between TIE and CLEAR apart,
nearly all cores needed, more than one kind of bottleneck possible, an interpreter so busy that stages which only wait
are slowed down too, stalls of a stage that is fast on average, or a rate that 4 s cannot show.
"""

from __future__ import annotations

import random

from labels import Label, label, loads
from pipelines import Batch, Branch, Consumer, Map, Pipeline, Source, Work

CLEAR = 1.3
CLOSE = 1.1
TIES = 0.1  # share of the drawn ones that may be ties
SLOWEST_BATCH_MS, FASTEST_BATCH_MS = 110.0, 2.0
MOST_CPU = 0.75
MOST_PYTHON = 0.5  # of the time per batch, when something else is the bottleneck
MOST_STALLS = 0.3
LOOP_BOUND = 0.2
HOWS = ("sleep", "sleep", "np", "py")


def drawn(seed: int, number: int) -> list[Pipeline]:
    """`number` pipelines; the same seed and number give the same ones, and a larger number allows more ties."""
    choose = random.Random(seed)  # noqa: S311 - reproducible on purpose
    found: list[Pipeline] = []
    ties = 0
    while len(found) < number:
        pipeline = _draw(choose, f"drawn_{seed}_{len(found):02d}")
        try:
            right = label(pipeline)
        except ValueError:
            continue
        tie = len(right.accepted) > 1
        if not _usable(pipeline, right) or (tie and ties + 1 > TIES * number):
            continue
        ties += tie
        found.append(pipeline)
    return found


def named(name: str) -> Pipeline:
    """The drawn pipeline of that name, such as drawn_20261122_07."""
    _, seed, number = name.split("_")
    return drawn(int(seed), int(number) + 1)[-1]


def _usable(pipeline: Pipeline, right: Label) -> bool:
    if not FASTEST_BATCH_MS <= right.batch_ms <= SLOWEST_BATCH_MS or right.cpu > MOST_CPU:
        return False
    others = [load for load in loads(pipeline) if load.stage not in right.accepted]
    pythons = [load for load in loads(pipeline) if load.py_ms]
    if not any(load.stage in right.accepted for load in pythons):
        python = sum(load.py_ms for load in pythons)
        if python > MOST_PYTHON * right.batch_ms:
            return False
    if any(load.ms > MOST_STALLS * right.batch_ms for load in others if load.kinds == ("burst",)):
        return False
    if len(right.accepted) > 1:
        return right.margin <= CLOSE and len(right.accepted) == 2
    return right.margin >= CLEAR and (right.kind != "poll" or len(right.kinds) == 1)


def _draw(choose: random.Random, name: str) -> Pipeline:
    """One pipeline: a scale of time, and one stage or the consumer made slow against it."""
    size = choose.choice((1, 2, 4, 4, 8, 8, 8, 16, 16, 32, 64))
    period = choose.uniform(4, 60) if size > 1 else choose.uniform(4, 12)
    scale = period / size
    join = choose.choice((None, None, None, None, "zip", "concat"))
    names = iter(("one", "two", "three", "four"))
    sides = ("left", "right") if join else ("source",)
    branches = tuple(_branch(choose, side, scale, names, joined=bool(join)) for side in sides)
    maps = _maps(choose, scale, names, 1) if join else ()
    batch = Batch(size, _work(choose, period), choose.choice((1, 1, 2))) if choose.random() < 0.25 else Batch(size)
    form = choose.choice(("sleep", "sleep", "sleep", "np"))
    bound = choose.random() < LOOP_BOUND
    consumer = Consumer(form, round(period * (choose.uniform(0.8, 1.4) if bound else choose.uniform(0.1, 0.6)), 2))
    epochs = choose.choice((1, 1, 1, 1, 3))
    return Pipeline(
        name, branches, join, maps,
        batch=batch,
        consumer=consumer,
        prefetch=choose.choice((16, 16, 16, 16, 8, 4, 2)),
        epochs=epochs,
        fresh=epochs > 1 and choose.random() < 0.5,
        style=choose.choice(("tuple", "tuple", "tuple", "dict")),
        repeat=choose.choice((1, 1, 1, 1, 2)),
    )  # fmt: skip


def _branch(choose: random.Random, side: str, scale: float, names: object, *, joined: bool) -> Branch:
    keep = choose.choice((1, 1, 1, 1, 2, 4)) if not joined else 1
    shuffle = choose.choice((0, 0, 0, 0, 64)) if not joined else 0
    form = choose.choice(("random", "random", "random", "generator", "slices", "text", "mindrecord"))
    form = form if not joined else choose.choice(("random", "random", "generator"))
    maps = _maps(choose, scale / keep, names, 1 if joined else 3, at_least=form == "text")
    if form not in ("random", "generator"):
        return Branch(Source(side, form), maps, keep, shuffle)
    many = form == "random" and choose.random() < 0.25
    source = Source(
        side, form, _work(choose, scale / keep), workers=2 if many else 1, processes=many and choose.random() < 0.3
    )
    return Branch(source, maps, keep, shuffle, choose.choice((1.0, 2.0)) if joined else 1.0)


def _maps(choose: random.Random, scale: float, names: object, most: int, *, at_least: bool = False) -> tuple[Map, ...]:
    number = choose.randint(1 if at_least else 0, most)
    made = []
    for _ in range(number):
        work = _work(choose, scale)
        processes = work.how == "py" and choose.random() < 0.4
        made.append(Map(next(names), work, choose.choice((1, 1, 2)), processes))  # type: ignore[call-overload]
    return tuple(made)


def _work(choose: random.Random, scale: float) -> Work:
    how = choose.choice(HOWS)
    each = round(scale * choose.choice((0.1, 0.2, 0.3, 1.0, 1.0)) * choose.uniform(0.8, 1.25), 3)
    if each < 0.15:
        return Work()
    if how == "sleep" and choose.random() < 0.25 and scale < 8:
        every = choose.choice((32, 48, 64))
        return Work(stall_ms=round(each * every, 1), every=every)
    return Work(how, each)  # type: ignore[arg-type]
