"""What counted work notices of a change of a map, and what it does not: drawn functions, counted by the recorder's counter."""

from __future__ import annotations

import math
from statistics import median

import numpy as np

from pipeprof.collect.probe.instructions import Window
from pipeprof.verdict import judge

DRAWS, SEED, ROWS = 40, 20261129, 8
GROWTH = (0.0, 0.01, 0.03, 0.10)
SIZES = (30, 3_000)  # rounds of a function's loop, log-uniform; a round takes 9 to 10 instructions
POLICY = {"metrics": {"instructions": "decides", "bytes/row/map": "decides"}}


def loop(rounds, row):
    """Plain Python."""
    total = row
    for each in range(rounds):
        total += each * 3 % 7
    return total


def rounds_more(rounds, grown, random):
    """A loop with more rounds."""
    more = round(rounds * (1 + grown))
    return lambda row: loop(more, row), 8


def helper(rounds, grown, random):
    """A function that is called in addition."""
    return (lambda row: loop(rounds, row) + (loop(round(rounds * grown), row) if grown else 0)), 8


def inlined(rounds, grown, random):
    """The same loop over what is made first, as a list: more for each element."""
    share = round(rounds * grown)
    return lambda row: loop(rounds, row) + sum([each * 3 for each in range(share)]), 8


def within_c(rounds, grown, random):
    """More within one call of C, which sorts."""
    values = [float(each) for each in range(round(rounds * (1 + grown)))]
    return lambda row: sorted(values)[row % 7], 8


def other_c(rounds, grown, random):
    """Another function of C in its place, which takes longer."""
    values, add = [0.1] * rounds, math.fsum if grown else sum
    return lambda _row: add(values), 8


def larger(rounds, grown, random):
    """Rows of more bytes; NumPy does the work."""
    size = round(rounds * (1 + grown))
    return lambda row: np.full(size, row), 8 * size


def waits(rounds, grown, random):
    """Waiting for a disk or a network; nothing is executed meanwhile."""
    return lambda row: loop(rounds, row), 8


def augments(rounds, grown, random):
    """A loop with more rounds, in every second row by chance, without a seed."""
    more = round(rounds * (1 + grown))
    return lambda row: loop(more, row) if random.random() < 0.5 else loop(more // 2, row), 8


def settings(rounds, grown, random):
    """More workers, another order, or a longer queue: the work of a row is the same."""
    return lambda row: loop(rounds, row), 8


# What it is called; the function; whether it varies by chance, so that five repetitions a side are judged.
KINDS = {
    "a loop of Python has more rounds": (rounds_more, False),
    "a Python function is called in addition": (helper, False),
    "a list is made in addition": (inlined, False),
    "the same, in half of the rows by chance (no seed)": (augments, True),
    "rows hold more bytes, NumPy fills them": (larger, False),
    "more within one call of C": (within_c, False),
    "another call of C in its place": (other_c, False),
    "waiting takes longer": (waits, False),
    "workers, order or queues": (settings, False),
}


def side(kind, rounds, grown, random, reps, calls):
    """{metric: value of each repetition}, as a recording has them."""
    values = {"instructions": [], "bytes/row/map": []}
    for _ in range(reps):
        function, size = kind(rounds, grown, random)
        window = Window()
        for row in range(calls):
            call = window.next()
            if call is not None:
                window.counted(call, function, row)
        values["instructions"].append(float(median(window.take())))
        values["bytes/row/map"].append(float(size))
    return values


def counted_work():
    """Kind -> growth -> share of the drawn functions of which (instructions, bytes) say that they regressed."""
    found = {}
    for number, (name, (kind, varies)) in enumerate(KINDS.items()):
        random = np.random.default_rng([SEED, number])
        reps, calls, largest = (5, 32, 300) if varies else (1, ROWS, SIZES[1])
        cells = {grown: [0, 0] for grown in GROWTH}
        for _ in range(DRAWS):
            rounds = round(math.exp(random.uniform(math.log(SIZES[0]), math.log(largest))))
            base = side(kind, rounds, 0.0, random, reps, calls)
            for grown, cell in cells.items():
                verdict = judge(base, side(kind, rounds, grown, random, reps, calls), POLICY)
                for at, metric in enumerate(base):
                    cell[at] += verdict.metric(metric).verdict == "regressed"
        found[name] = {grown: tuple(count / DRAWS for count in cell) for grown, cell in cells.items()}
    return found
