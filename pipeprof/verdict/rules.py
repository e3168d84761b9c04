"""Which stage of a training pipeline limits, and why: every threshold, rule, kind and doubt of that decision.

Data, no code. Of each table the first entry counts whose clauses all hold; of DOUBTS all of them. A clause compares
one fact, which `facts.py` defines, with one threshold. `decision.py` applies the tables. A new rule is one entry here
and one line of words in `report/words/evidence.py`; `docs/rules.md` is made from both.

How sure a verdict is: high without doubts, a grade lower for each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.verdict.clause import (
    Code,
    Rule,
    above,
    at_least,
    at_most,
    below,
    known,
    not_above,
    noted,
    short_of,
    unknown,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


# The loop's waiting, as share of its time.
MODERATE_WAIT = 0.05  # below it the data is in time: the band of TensorFlow's input-pipeline analyzer
HIGH_WAIT = 0.20  # up to it waiting may be variation alone: the next band

# Utilisation of a stage: the loop's pace over what the stage could make.
BUSY = 0.80  # limits: timed work misses at most a fifth of what an operator does
USED = 0.20  # from here on a stage can hold others up; below it is hardly ever at work
REST_USED = 0.50  # below it no timed stage can be the one that limits
CLEAR_MARGIN = 0.20  # ahead of the next stage; closer ones change places from run to run
EQUAL_PACE = 1.15  # ratio of loop and pipeline: making one faster buys no more than this

# The drop of queue fill at a stage, 1 when its input is always full and its output always empty.
CLEAR_DROP = 0.40  # drops along a chain add up to 1, so that at most one other stage can have as much
WHOLE_DROP = 0.80  # nothing is left for another stage

# The interpreter's lock: cores of Python inside the process, and the share of the time that the lock is held.
PYTHON_CORES = 0.60  # with a lock that is seen to be held
PYTHON_CORE = 0.85  # nearly the one core that the lock gives away
ONE_LOCK_CORES = 1.30  # more than one core and a third cannot be Python under one lock: part of it is in C++
OTHERS_PYTHON = 0.50  # of all Python: the busiest stage has less, so that another one keeps the lock from it
LOCK_HELD = 0.25  # computing without the lock (numpy, C++) stays far below
LOCK_BESIDE_LOOP = 0.40  # loops that are slow by themselves show at most 0.23
LOCK_MOST = 0.60  # most of the time, so that fewer cores say enough
UNTIMED_CORES = 0.30  # of an operator beyond its timed work; of 35 loops that limit beside Python 34 show at most 0.09
DOUBTED_CORES = 0.30  # of Python beside a loop that limits, from which the lock is a doubt

LOCK_WAITS = 0.20  # of a stage's working time in which its threads wait for the lock, as the kernel tells

FREED = 1.10  # times as fast if the loop had its pipeline's CPU: interventions bring about that much, and more
MAY_BE_FREED = 1.05  # from here on that is a doubt about a loop that limits
CROWDED_IDLE = 0.12  # of the cores: a loop that its own threads hold up leaves that much although it is short of CPU
CROWDED_CORES = 0.50  # and so many: kernels want several cores at once, and a thread that launches them leaves one idle
CONTENDING_CORES = 0.30  # of CPU: the stage that takes most where no stage is busy

# What a stage does while it is busy.
COMPUTES = 0.50  # of its working time on a CPU
LOCKED_CORES = 0.50  # of Python in one stage, while the lock is held
POLL_LEAST, POLL_TIMED, POLL_UNTIMED = 0.70, 1.25, 1.10  # time between rows over what the master's sleeps allow
STALL_VARIATION = 1.5  # standard deviation over mean of the work of batches
STALL_BATCHES = 3.3  # the usual longest row, in batches' work
STALL_INTERVALS = 0.50  # of the intervals had a row that took far longer than the others

# The machine, as shares of its cores.
SHORT_IDLE = 0.10  # less is a machine without room
OTHERS_SHARE = 0.25  # that other programs use

# Other programs keep the machine busy: what would be `cpu` is `host_saturated`.
SATURATED = (below("idle_share", SHORT_IDLE), at_least("others_share", OTHERS_SHARE))

PREFILLED = 1.2  # times what a stage can deliver: above, the training used up batches that were prepared before
APART = 3.0  # times: the steady state and all steps differ so much where the batches are not those of one loop
ENOUGH_BATCHES = 20  # of the steady state; fewer are a doubt
LEAST_STEPS = 5  # that were finished and no warm-up; fewer are a doubt of their own
QUEUE_EMPTY = 0.30  # of the batches found the queue empty: MindInsight's bound

# The rules, from the first to the last: name, code that reports state, stage that then limits, and the conditions.
RULES = (
    # The loop's own work waits for the lock that the pipeline's Python holds.
    Rule("lock_beside_loop", "gil", "lock_holder", (
        at_most("wait_share", HIGH_WAIT),
        at_least("python_cores", PYTHON_CORES), at_least("gil_share", LOCK_BESIDE_LOOP)), kind="gil"),
    # A loop that computes beside it is slow for want of cores, which looks as if it limited.
    Rule("takes_cpu", "shared_cpu", "taker", (
        at_most("wait_share", HIGH_WAIT),
        below("idle_room", 1.0), at_least("freed", FREED), at_least("share_over_wait", 0.0),
        noted("pipeline_share")), kind="cpu"),
    Rule("data_in_time", "consumer", "loop", (below("wait_share", MODERATE_WAIT),)),
    # The stage that waits for the lock looks slow, the one that holds it does not.
    Rule("lock_held", "gil", "lock_holder", (
        at_least("python_cores", PYTHON_CORE), at_least("gil_share", LOCK_HELD),
        below("busiest_python_share", OTHERS_PYTHON)), kind="gil"),
    Rule("lock_mostly_held", "gil", "lock_holder", (
        at_least("python_cores", PYTHON_CORES), at_least("gil_share", LOCK_MOST),
        below("busiest_python_share", OTHERS_PYTHON)), kind="gil"),
    Rule("lock_not_measured", "gil", "lock_holder", (
        at_least("python_cores", PYTHON_CORE), at_most("python_cores", ONE_LOCK_CORES), unknown("gil_share"),
        below("busiest_python_share", OTHERS_PYTHON)), kind="gil"),
    Rule("busier_than_loop", "utilisation", "busiest", (at_least("busy", BUSY), at_least("busy_over_loop", 0.0))),
    # No timed stage is that busy, so it is the one without times where the queues run empty.
    Rule("drop_without_times", "untimed", "drop_stage", (at_least("untimed_drop", CLEAR_DROP),)),
    # What little the loop waits is variation: it is busier than every stage, and none stalls.
    Rule("waiting_varies", "consumer", "loop", (
        at_most("wait_share", HIGH_WAIT), below("stalling", USED), at_most("busy_over_loop", 0.0))),
    Rule("busiest", "utilisation", "busiest", (at_least("busy", BUSY),)),
    # Nobody is busy: what takes the CPU holds the others up, unless times and queues agree on a stage.
    Rule("most_cpu", "contention", "contender", (
        at_least("contending_cores", CONTENDING_CORES), below("drop_at_busiest", CLEAR_DROP))),
    Rule("no_clear_sign", "weak", "best_guess", (noted("busy"), noted("drop"))),
)  # fmt: skip

VERDICTS = (
    Code("balanced", (at_least("wait_share", MODERATE_WAIT), below("pace_ratio", EQUAL_PACE)),
            only=("consumer", "utilisation")),
    Code("balanced", (at_most("wait_share", HIGH_WAIT),), only=("gil", "shared_cpu")),
    Code("consumer_bound", only=("consumer",)),
    Code("input_bound"),
)  # fmt: skip

# What is missing for high confidence. Where the loop was seen not to wait, other stages and queues say nothing against
# it; the rules about the lock are there because times and queues mislead.
DOUBTS = (
    Code("not_busy", (short_of("first_utilisation", BUSY),), never=("gil", "untimed", "shared_cpu")),
    Code("close", (at_least("wait_share", MODERATE_WAIT), not_above("margin", CLEAR_MARGIN)),
            never=("gil", "untimed", "shared_cpu")),
    Code("no_queues", (unknown("drop"), at_least("queued", 1))),
    Code("queues_elsewhere", (at_least("wait_share", MODERATE_WAIT), known("drop_elsewhere")),
            never=("gil", "shared_cpu")),
    Code("few_batches", (short_of("batches", ENOUGH_BATCHES),)),
    Code("prefilled", (above("over_capacity", PREFILLED),)),
    Code("overrun", (above("overrun", PREFILLED),), never=("consumer",)),
    Code("holds_lock", (at_least("gil_share", LOCK_HELD), at_least("python_cores", DOUBTED_CORES)),
            only=("consumer",)),
    Code("untimed_cpu", (at_least("untimed_cores", UNTIMED_CORES),), only=("consumer",)),
    Code("shares_cpu", (below("idle_room", 1.0), at_least("freed", MAY_BE_FREED),
                           at_least("share_over_wait", 0.0)),
            only=("consumer", "shared_cpu")),
    Code("other_load", SATURATED),
    Code("indirect", (short_of("drop", WHOLE_DROP),), only=("untimed",)),
    Code("indirect", (at_most("busy", 0.0),), only=("untimed",)),
    Code("indirect", (at_least("busy", REST_USED),), only=("untimed",)),
    Code("indirect", (unknown("gil_share"),), only=("gil",)),
    Code("indirect", only=("contention",)),
    Code("indirect", (at_most("busy", 0.0),), only=("weak",)),
    Code("none_busy", only=("contention", "weak")),
)  # fmt: skip

# The kind of a stage, from its own facts. Timing lines of a source with a master show the master's sleeps, so that
# their variation does not count.
KINDS = (
    Code("poll", (below("worker_law_ratio", 1.0),
                     at_least("row_law_ratio", POLL_LEAST), at_most("row_law_ratio", POLL_TIMED))),
    Code("poll", (unknown("worker_law_ratio"),
                     at_least("row_law_ratio", POLL_LEAST), at_most("row_law_ratio", POLL_UNTIMED))),
    # Waits for the lock make single rows long, too. Python that itself holds it most of the time is `gil` below.
    Code("lock_wait", (at_least("lock_share", LOCK_WAITS), below("gil_share", LOCK_HELD))),
    Code("burst", (above("work_cv", STALL_VARIATION), unknown("law_row_ns"))),
    Code("burst", (above("longest_batches", STALL_BATCHES),)),
    Code("burst", (at_least("burst_share", STALL_INTERVALS), below("cpu_share", COMPUTES))),
    Code("gil", (at_least("python_cores", LOCKED_CORES), at_least("gil_share", LOCK_HELD))),
    Code("lock_wait", (at_least("lock_share", LOCK_WAITS),)),
    Code("cpu", (at_least("cpu_share", COMPUTES),)),
    Code("wait", (below("cpu_share", COMPUTES),)),
)  # fmt: skip

# The kind of a stage without times that is named by the queues.
UNTIMED_KINDS = (
    Code("cpu", (at_least("cores_per_worker", COMPUTES),)),
    Code("wait", (below("cores_per_worker", COMPUTES),)),
)

# In sink mode: the side that is late. Without sizes of the host queue neither is said.
SINK_STAGES = (
    Code("data_processing", (above("host_empty_share", QUEUE_EMPTY),)),
    Code("data_transmission", (at_most("host_empty_share", QUEUE_EMPTY), above("device_empty_share", QUEUE_EMPTY))),
)


GRADES = ("high", "medium", "low")
# On a busy machine no time is that of a quiet one; shares that contradict each other decide nothing. Others weigh 1.
WEIGHTS = {"other_load": 2, "shares_differ": 2}


def graded(doubts: Sequence[Mapping[str, Any]], without: str = "high") -> str:
    """The confidence with these doubts, where it would be `without` if there were none."""
    lower = sum(WEIGHTS.get(doubt["code"], 1) for doubt in doubts)
    return GRADES[min(len(GRADES) - 1, GRADES.index(without) + lower)]
