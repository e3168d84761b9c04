"""The end of the backward pass in steps without recorded operators: by what the loop called."""

import pytest

from pipeprof.read.spool.backward import SOURCES, UNKNOWN, backward_ends
from pipeprof.read.spool.marks import Kind, Mark, Marks
from pipeprof.read.spool.step_rows import Step, StepRows

OPTIMIZER, GRAPH, JIT, GRADIENT, BACKWARD = 0, 1, 2, 3, 2
STEPS = [
    Step("train", 100 * n, 100 * n + 100, fetches=[Mark(Kind.FETCH, 0, 0, n, 100 * n, 100 * n + 10)]) for n in range(4)
]


def marks(*parts):
    """The same in every step: (kind, flag, begin, end) since its start."""
    return [
        Mark(kind, flag, 1, 0, step.start + begin, step.start + end)
        for step in STEPS
        for kind, flag, begin, end in parts
    ]


FORWARD, UPDATE = (Kind.CALL, GRADIENT, 12, 12), (Kind.UPDATE, OPTIMIZER, 70, 90)
GRAPH_CALL = (Kind.UPDATE, GRAPH, 20, 90)


def ends(recorded, measured=(), steps=STEPS, **how):
    """(end, source, error or None) of each step by its index."""
    found = backward_ends(StepRows.of(steps), Marks.of(recorded), dict(measured), **how)
    errors = [None if error == UNKNOWN else error for error in found.error.tolist()]
    rows = zip(found.end.tolist(), [SOURCES[source] for source in found.source], errors, strict=True)
    return {index: row for index, row in enumerate(rows) if row[1]}


@pytest.mark.parametrize(
    ("parts", "at", "source"),
    [
        ([FORWARD, UPDATE], 70, "update"),
        ([UPDATE], 70, "update"),
        ([FORWARD, UPDATE, (Kind.UPDATE, OPTIMIZER, 91, 95)], 70, "update"),
        ([FORWARD, (Kind.UPDATE, OPTIMIZER, 30, 35), (Kind.CALL, GRADIENT, 40, 40), UPDATE], 70, "update"),
        ([(Kind.UPDATE, JIT, 12, 60), UPDATE], 60, "call"),
        ([(Kind.CALL, JIT, 12, 20), FORWARD, UPDATE], 70, "update"),
    ],
    ids=["gradient and update", "of a Model", "two optimizers", "two networks in turn", "compiled gradients", "compiled loss"],
)  # fmt: skip
def test_the_loop_tells_it_in_every_step(parts, at, source):
    assert ends(marks(*parts)) == {n: (100 * n + at, source, None) for n in range(4)}


@pytest.mark.parametrize(
    ("parts", "measured", "how", "found"),
    [
        # two updates without any call between tell nothing, and an evaluation has no backward pass
        ([UPDATE, (Kind.UPDATE, OPTIMIZER, 91, 95)], {}, {}, {}),
        ([FORWARD, UPDATE], {}, {"steps": [Step("eval", 0, 100)]}, {}),
        # what operators tell counts; one that the user named is not what the loop calls
        ([FORWARD, UPDATE], {1: 168}, {}, {1: (168, "op", 0), 2: (270, "update", None)}),
        ([FORWARD, UPDATE], {1: 155}, {"is_named": True}, {1: (155, "op", 0), 2: (255, "share", None)}),
        # a step that is one call ends it at the same share of the call as where operators were recorded
        ([GRAPH_CALL], {}, {}, {}),
        ([GRAPH_CALL], {1: 160, 2: 270}, {},
         {0: (65, "share", 5), 1: (160, "op", 0), 2: (270, "op", 0), 3: (365, "share", 5)}),
        # where the call returns before its graph has run it is a share of what follows the batch
        ([(Kind.UPDATE, GRAPH, 12, 20)], {1: 155, 2: 255}, {}, {3: (355, "share", None)}),
    ],
)  # fmt: skip
def test_operators_tell_it_and_a_share_where_the_loop_does_not(parts, measured, how, found):
    there = ends(marks(*parts), measured, **how)
    assert {step: there[step] for step in found or there} == found


def test_how_far_pynative_ran_behind_is_how_much_later_it_may_be():
    late = [Mark(Kind.SECTION, BACKWARD, us, 0, 120, 160) for us in (3, 5, 40)]
    assert ends([*marks(FORWARD, UPDATE), *late])[2][2] == 5_000


def test_time_for_compiling_is_no_part_that_a_share_is_of():
    found = ends([Mark(Kind.COMPILE, 0, 0, 0, 25, 50), *marks(GRAPH_CALL)], {1: 155, 2: 255})
    assert (found[0][0], found[3][0]) == (70, 355)


def test_where_the_loop_waits_for_its_gradients_nothing_runs_behind():
    """A line that waits behind the backward pass in a recorded step does so in every step; one in the forward does not."""
    section = [Mark(Kind.SECTION, BACKWARD, 40, 0, 120, 160)]
    exact = [Mark(Kind.SYNC, 0, 7, 0, 100 * n + 62, 100 * n + 68) for n in (1, 2)]
    early = [Mark(Kind.SYNC, 0, 8, 0, 100 * n + 15, 100 * n + 18) for n in (1, 3)]
    found = ends(marks(FORWARD, UPDATE) + section + exact + early, {1: 160})
    assert {n: found[n][2] for n in (0, 2, 3)} == {0: 40_000, 2: 0, 3: 40_000}
