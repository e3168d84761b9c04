"""Draws distributed trainings whose step times, slow-down and cause are known, and writes them as runs.

A job has pipeline, data and tensor parallel ranks, microbatches, the schedule 1F1B or its interleaved form, noise, and
at most one planted cause. It is executed step by step on paper: a pass begins when the pass before it on its rank and
its input are there, a transfer when both ends are, a collective when its last rank is. What the job costs, and what it
would cost when all operations of a type took as long, is known from the same execution with other durations
(the definition of S: "Understanding Stragglers in Large Model Training Using What-if Analysis", OSDI 2025).

Nothing here is shared with pipeprof/verdict: only the tables are written with its record.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from math import ceil, exp
from random import Random
from statistics import fmean, median
from typing import TYPE_CHECKING

from pipeprof.record import store
from pipeprof.record.run import Manifest, Run
from pipeprof.record.schema import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

CAUSES = (
    "slow_worker", "slow_link", "stage_imbalance", "last_stage", "input_length", "fail_slow", "host_gap", "none",
)  # fmt: skip
MS = 1_000_000  # ns
LAUNCH = 0.003  # of the longest operation: how late others are launched at most
SKEW = 20_000  # ns
PASSES = ("forward", "backward")
STAGES = ("stage_imbalance", "last_stage")
COMMUNICATION = {
    "send": "send", "recv": "receive", "tensor": "all_reduce", "gradients": "reduce_scatter",
    "parameters": "all_gather", "clip": "all_reduce",
}  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """How a job is divided: `pp` stages x `dp` replicas x `tp` ranks; `vpp` model chunks on each stage."""

    pp: int
    dp: int
    tp: int
    vpp: int
    microbatches: int
    steps: int

    @property
    def ranks(self) -> int:
        """Of the job."""
        return self.pp * self.dp * self.tp

    def rank(self, stage: int, replica: int, shard: int) -> int:
        """Its number; ranks of one stage follow each other."""
        return (stage * self.dp + replica) * self.tp + shard

    def place(self, rank: int) -> tuple[int, int, int]:
        """Its stage, replica and shard."""
        return rank // (self.dp * self.tp), rank // self.tp % self.dp, rank % self.tp


@dataclass
class Op:
    """One operation of a step. `after`: operations of the rank that must have ended; `group`: who must have begun."""

    rank: int
    kind: str
    name: str
    chunk: int
    microbatch: int
    after: list[int]
    group: tuple[object, ...] | None = None
    group_name: str = ""


@dataclass
class Job:
    """A drawn job: its operations in an order in which they can be executed, and their times in ns.

    `dur[step][op]` is computing or transfer, `gap[step][op]` what the host waits before it; `clock[rank]` is how far its
    clock is off.
    """

    shape: Shape
    cause: str
    ops: list[Op]
    dur: list[list[float]]
    gap: list[list[float]]
    clock: list[int] = field(default_factory=list)
    planted: dict[str, object] = field(default_factory=dict)
    truth: dict[str, float] = field(default_factory=dict)


def schedule(shape: Shape, stage: int) -> list[tuple[str, int, int]]:
    """(pass, chunk, microbatch) of a stage in order: 1F1B; with several chunks its interleaved form (Megatron-LM)."""
    total = shape.microbatches * shape.vpp
    ahead = shape.pp - stage - 1 if shape.vpp == 1 else 2 * (shape.pp - stage - 1) + (shape.vpp - 1) * shape.pp
    ahead = min(ahead, total)
    forward = [("forward", *_virtual(shape, number)) for number in range(total)]
    backward = [("backward", shape.vpp - 1 - chunk, batch) for _, chunk, batch in forward]
    order = forward[:ahead]
    for number in range(total):
        order += forward[ahead + number : ahead + number + 1]
        order.append(backward[number])
    return order


def _virtual(shape: Shape, number: int) -> tuple[int, int]:
    round_, inside = divmod(number, shape.pp * shape.vpp)
    return inside // shape.pp, round_ * shape.pp + inside % shape.pp


def operations(shape: Shape) -> list[Op]:
    """All operations of a step, each behind those that it waits for."""
    ops: list[Op] = []
    for rank in range(shape.ranks):
        _of_rank(shape, rank, ops)
    return _ordered(ops)


class _Builder:
    """Appends the operations of one rank; `last` holds the last one of each lane."""

    def __init__(self, rank: int, ops: list[Op]) -> None:
        self.rank, self.ops, self.last = rank, ops, {}

    def add(self, kind, name, chunk=0, microbatch=0, *, after=(), group=None, group_name="", lane=None):
        """The number of the new operation; `after` may hold None for what does not exist."""
        waits = [number for number in (*after, self.last.get(lane or kind)) if number is not None]
        self.ops.append(Op(self.rank, kind, name, chunk, microbatch, sorted(set(waits)), group, group_name))
        self.last[lane or kind] = len(self.ops) - 1
        return len(self.ops) - 1


def _of_rank(shape: Shape, rank: int, ops: list[Op]) -> None:
    stage, replica, shard = shape.place(rank)
    build = _Builder(rank, ops)
    data = f"dp-{stage}-{shard}"
    ready = None
    if shape.dp > 1:
        ready = build.add("parameters", "params-all-gather", group=("ag", stage, shard), group_name=data)
    previous: dict[str, int] = {}
    for kind, chunk, batch in schedule(shape, stage):
        behind = previous.get(kind, build.last.get("compute"))
        receive = _transfer(shape, rank, build, "recv", kind, chunk, batch, [behind])
        waits = [receive, ready, build.last.get("compute")]
        done = build.add(kind, f"{kind}-compute", chunk, batch, after=waits, lane="compute")
        if shape.tp > 1:
            group = ("tp", stage, replica, kind, chunk, batch)
            done = build.add("tensor", f"{kind}-tp-all-reduce", chunk, batch, after=[done], group=group, group_name=f"tp-{stage}-{replica}", lane="compute")  # fmt: skip
        previous[kind] = done
        _transfer(shape, rank, build, "send", kind, chunk, batch, [done])
    done = build.last["compute"]
    if shape.dp > 1:
        done = build.add("gradients", "grads-reduce-scatter", after=[done], group=("rs", stage, shard), group_name=data)
    done = build.add("clip", "optimizer-clip-main-grad", after=[done], group=("clip",), group_name="world")
    build.add("optimizer", "optimizer", after=[done], lane="compute")


def _transfer(shape, rank, build, side, kind, chunk, batch, after) -> int | None:
    """The end of a transfer on this rank; None where the pass is the model's first or last."""
    stage, replica, shard = shape.place(rank)
    depth = chunk * shape.pp + stage
    other = depth + (1 if (side == "send") == (kind == "forward") else -1)
    if not 0 <= other < shape.pp * shape.vpp:
        return None
    peer = shape.rank(other % shape.pp, replica, shard)
    source = depth if side == "send" else other
    group = ("p2p", replica, shard, kind, source, batch)
    pair = f"pp-{min(rank, peer)}-{max(rank, peer)}"
    return build.add(side, f"{kind}-{side}", chunk, batch, after=after, group=group, group_name=pair, lane=f"{kind}-{side}")  # fmt: skip


def _ordered(ops: list[Op]) -> list[Op]:
    """The same so that each stands behind what it waits for, members of a group behind what any of them waits for."""
    members = defaultdict(list)
    for number, op in enumerate(ops):
        members[op.group or number].append(number)
    key_of = {number: key for key, numbers in members.items() for number in numbers}
    waits = {key: {key_of[other] for number in numbers for other in ops[number].after} for key, numbers in members.items()}  # fmt: skip
    order, done = [], set()
    while len(done) < len(members):
        free = [key for key in members if key not in done and waits[key] <= done]
        assert free, "the schedule waits for itself"
        order += [number for key in free for number in members[key]]
        done.update(free)
    place = {number: index for index, number in enumerate(order)}
    for op in ops:
        op.after = [place[number] for number in op.after]
    return [ops[number] for number in order]


def execute(
    ops: Sequence[Op], dur: Sequence[float], gap: Sequence[float] | None = None
) -> tuple[list[float], list[float]]:
    """Start and end of each operation, in ns from the begin of the step."""
    start, end = [0.0] * len(ops), [0.0] * len(ops)
    waiting: dict[tuple[object, ...], list[int]] = defaultdict(list)
    size: dict[tuple[object, ...], int] = defaultdict(int)
    for op in ops:
        if op.group:
            size[op.group] += 1
    for number, op in enumerate(ops):
        start[number] = max((end[other] for other in op.after), default=0.0) + (gap[number] if gap else 0.0)
        if op.group is None:
            end[number] = start[number] + dur[number]
            continue
        met = waiting[op.group]
        met.append(number)
        if len(met) == size[op.group]:
            begin = max(start[member] for member in met)
            for member in met:
                end[member] = begin + dur[member]
    return start, end


def type_of(op: Op) -> str:
    """Operations of one type are peers."""
    return op.name


def ideal(ops: Sequence[Op], dur: Sequence[Sequence[float]]) -> list[float]:
    """Of each operation the mean of its type over ranks and steps; of communication the median."""
    values = defaultdict(list)
    for step in dur:
        for op, value in zip(ops, step, strict=True):
            values[type_of(op)].append(value)
    middle = {op.name: (median if op.group else fmean) for op in ops}
    usual = {name: middle[name](found) for name, found in values.items()}
    return [usual[type_of(op)] for op in ops]


def replaced(ops: Sequence[Op], dur: Sequence[Sequence[float]], usual: Sequence[float], keep) -> float:
    """Mean step time in ns where operations for which `keep(op)` holds are as they were, and the others ideal."""
    mixed = ([value if keep(op) else best for op, value, best in zip(ops, step, usual, strict=True)] for step in dur)
    return fmean(max(execute(ops, step)[1]) for step in mixed)


def measure(job: Job) -> dict[str, float]:
    """The truth: S, S of each stage and replica, M_S, M_W, and how much longer a step is for gaps of the host."""
    ops, dur, shape = job.ops, job.dur, job.shape
    usual = ideal(ops, dur)
    best = max(execute(ops, usual)[1])
    taken = replaced(ops, dur, usual, lambda _: True)
    whole = fmean(max(execute(ops, step, gap)[1]) for step, gap in zip(dur, job.gap, strict=True))
    stages = [replaced(ops, dur, usual, lambda op, s=s: shape.place(op.rank)[0] == s) / best for s in range(shape.pp)]
    replicas = [replaced(ops, dur, usual, lambda op, d=d: shape.place(op.rank)[1] == d) / best for d in range(shape.dp)]
    scores = {rank: min(stages[shape.place(rank)[0]], replicas[shape.place(rank)[1]]) for rank in range(shape.ranks)}
    slowest = set(sorted(scores, key=lambda rank: (-scores[rank], rank))[: ceil(0.03 * shape.ranks)])
    lost = taken - best
    without_workers = replaced(ops, dur, usual, lambda op: op.rank not in slowest)
    without_last = replaced(ops, dur, usual, lambda op: shape.place(op.rank)[0] != shape.pp - 1)
    return {
        "slowdown": taken / best, "launch": whole / taken, "step_ns": whole,
        "m_w": (taken - without_workers) / lost if lost else 0.0,
        "m_s": (taken - without_last) / lost if lost else 0.0,
        **{f"stage_{number}": value for number, value in enumerate(stages)},
        **{f"replica_{number}": value for number, value in enumerate(replicas)},
    }  # fmt: skip


def draw_shape(chance: Random, cause: str, *, most_ranks: int = 16) -> Shape:
    """A shape in which the cause can be told from others: a slow worker has peers, a slow link at least two."""
    while True:
        pp, dp, tp = chance.choice([1, 2, 2, 4, 4]), chance.choice([1, 2, 3, 4, 4]), chance.choice([1, 1, 2])
        vpp = chance.choice([1, 1, 2]) if pp > 1 else 1
        microbatches = pp * chance.choice([1, 2, 3]) if vpp > 1 else chance.choice([4, 6, 8])
        shape = Shape(pp, dp, tp, vpp, microbatches, chance.choice([8, 10, 12]))
        pairs = pp if vpp > 1 and pp > 2 else pp - 1
        fits = {
            "slow_worker": dp * tp >= 2, "fail_slow": dp * tp >= 2, "slow_link": pairs * dp * tp >= 3,
            "stage_imbalance": pp >= 2, "last_stage": pp >= 2, "input_length": dp >= 2 or pp >= 2,
        }  # fmt: skip
        if 2 <= shape.ranks <= most_ranks and fits.get(cause, True):
            return shape


def draw(seed: int, cause: str, *, most_ranks: int = 16, least_cost: float = 0.05, exact: bool = False) -> Job:
    """A job with this cause, which takes at least `least_cost` of its step; with its truth.

    Of a slow stage, what an equal division of its work would bring. Unless it is `exact`, every operation is launched a
    little late, and clocks of ranks differ by up to 20 us.
    """
    chance = Random(seed)  # noqa: S311 - test data
    while True:
        shape = draw_shape(chance, cause, most_ranks=most_ranks)
        ops = operations(shape)
        clean = _noisy(chance, ops, shape)
        late = 0.0 if exact else LAUNCH * max(clean[0])
        gaps = [[chance.uniform(0, late) for _ in ops] for _ in clean]
        clock = [0 if exact else chance.randrange(-SKEW, SKEW) for _ in range(shape.ranks)]
        job = Job(shape, cause, ops, [list(step) for step in clean], gaps, clock)
        job.gap = [list(gap) for gap in gaps]
        _PLANT[cause](chance, job)
        job.truth = measure(job)
        better = _evenly(job, clean) if cause in STAGES else clean
        before = fmean(max(execute(ops, *both)[1]) for both in zip(better, gaps, strict=True))
        job.truth["cost"] = 1 - before / job.truth["step_ns"]
        if cause == "none" or job.truth["cost"] >= least_cost:
            return job


def _evenly(job: Job, clean: Sequence[Sequence[float]]) -> list[list[float]]:
    """The work of the job, divided equally: nobody can take the layers of a long stage away."""
    times = {}
    for kind in PASSES:
        mine = [number for number, op in enumerate(job.ops) if op.kind == kind]
        before, after = (sum(step[number] for step in dur for number in mine) for dur in (clean, job.dur))
        times[kind] = after / before
    return [[value * times.get(op.kind, 1.0) for op, value in zip(job.ops, step, strict=True)] for step in clean]


def _noisy(chance: Random, ops: Sequence[Op], shape: Shape) -> list[list[float]]:
    forward = chance.uniform(8, 30) * MS
    part = {
        "forward": forward, "backward": forward * chance.uniform(1.8, 2.2), "optimizer": forward * 0.3,
        "send": forward * chance.uniform(0.01, 0.05), "tensor": forward * 0.05, "gradients": forward * 0.8,
        "parameters": forward * 0.4, "clip": forward * 0.05,
    }  # fmt: skip
    part["recv"] = part["send"]
    noise = chance.choice([0.005, 0.01, 0.02, 0.04])
    wire = chance.choice([0.02, 0.05, 0.1])
    found = []
    for _ in range(shape.steps):
        same: dict[object, float] = {}
        step = []
        for number, op in enumerate(ops):
            spread = wire if op.group else noise
            times = same.setdefault(op.group or number, exp(chance.gauss(0, spread)))
            step.append(part[op.kind] * times)
        found.append(step)
    return found


def _nothing(_chance: Random, _job: Job) -> None:
    """A healthy job."""


def _slow_worker(chance: Random, job: Job, since: int = 0) -> None:
    rank, times = chance.randrange(job.shape.ranks), chance.uniform(1.25, 2.0)
    job.planted = {"rank": rank, "times": times, "since": since}
    _scale(job, times, lambda op: op.rank == rank and op.kind in PASSES, since)


def _fail_slow(chance: Random, job: Job) -> None:
    _slow_worker(chance, job, since=chance.randrange(job.shape.steps // 3, 2 * job.shape.steps // 3 + 1))


def _slow_link(chance: Random, job: Job) -> None:
    pair = chance.choice(sorted({op.group_name for op in job.ops if op.kind == "send"}))
    times = chance.uniform(8, 40)
    job.planted = {"link": pair, "times": times}
    _scale(job, times, lambda op: op.group_name == pair and op.kind in ("send", "recv"))


def _stage_imbalance(chance: Random, job: Job) -> None:
    stage, times = chance.randrange(job.shape.pp), chance.uniform(1.2, 1.7)
    job.planted = {"stage": stage, "times": times}
    _scale(job, times, lambda op: job.shape.place(op.rank)[0] == stage and op.kind in PASSES)


def _last_stage(chance: Random, job: Job) -> None:
    last, times = job.shape.pp - 1, chance.uniform(1.3, 2.0)
    job.planted = {"stage": last, "times": times}
    _scale(job, times, lambda op: job.shape.place(op.rank)[0] == last and op.kind in PASSES and op.chunk == job.shape.vpp - 1)  # fmt: skip


def _input_length(chance: Random, job: Job) -> None:
    spread = chance.uniform(0.15, 0.5)
    job.planted = {"spread": spread}
    for step in job.dur:
        length: dict[tuple[int, int], float] = {}
        for number, op in enumerate(job.ops):
            if op.kind in PASSES:
                key = (job.shape.place(op.rank)[1], op.microbatch)
                long = length.setdefault(key, exp(chance.gauss(0, spread)))
                step[number] *= 0.7 * long + 0.3 * long * long  # attention grows with the square of the length


def _host_gap(chance: Random, job: Job) -> None:
    share, times = chance.uniform(0.05, 0.3), chance.uniform(0.5, 2.0)
    job.planted = {"share": share, "times": times}
    for step, gap in zip(job.dur, job.gap, strict=True):
        for number, op in enumerate(job.ops):
            if op.kind in PASSES and chance.random() < share:
                gap[number] += times * step[number]


def _scale(job: Job, times: float, chosen, since: int = 0) -> None:
    for step in job.dur[since:]:
        for number, op in enumerate(job.ops):
            if chosen(op):
                step[number] *= times


_PLANT = {
    "none": _nothing, "slow_worker": _slow_worker, "slow_link": _slow_link,
    "stage_imbalance": _stage_imbalance, "last_stage": _last_stage, "input_length": _input_length,
    "fail_slow": _fail_slow, "host_gap": _host_gap,
}  # fmt: skip


def write(job: Job, folder: Path) -> Run:
    """The job as a run of pipeprof: tables `step`, `op`, `op_info` and `collective` of each rank."""
    run = Run(folder, Manifest(run_id=f"20260101T000000-{job.cause[:6]}", started_at="2026-01-01T00:00:00Z", pipeprof_version="0", source="import:fleet", state="complete"))  # fmt: skip
    folder.mkdir(parents=True)
    rows: dict[tuple[str, int], list[dict[str, object]]] = defaultdict(list)
    begin = MS
    for number, (dur, gap) in enumerate(zip(job.dur, job.gap, strict=True)):
        start, end = execute(job.ops, dur, gap)
        finish = begin + round(max(end))
        for rank in range(job.shape.ranks):
            rows["step", rank].append({"step": number, "kind_step": number, "kind": "train", "start_ns": begin, "end_ns": finish, "in_window": False})  # fmt: skip
        for op, first, last in zip(job.ops, start, end, strict=True):
            clock = job.clock[op.rank] if job.clock else 0
            timed = {"step": number, "start_ns": begin + round(first) + clock, "dur_ns": round(last) - round(first)}
            _row(op, timed, rows)
        begin = finish
    for (table, rank), found in rows.items():
        _write(run, table, rank, found)
    run.save()
    return run


def _row(op: Op, timed: dict[str, object], rows: dict[tuple[str, int], list[dict[str, object]]]) -> None:
    name = f"chunk{op.chunk}/{op.name}"
    if op.group is not None:
        rows["collective", op.rank].append({**timed, "name": name, "kind": COMMUNICATION[op.kind], "group_name": op.group_name, "track": op.name, "bytes": 1 << 20})  # fmt: skip
        return
    infos = rows["op_info", op.rank]
    found = next((info for info in infos if info["name"] == name), None)
    if found is None:
        found = {"op_id": len(infos), "name": name, "type": op.name, "scope": f"chunk{op.chunk}", "phase": op.kind, "category": "pass"}  # fmt: skip
        infos.append(found)
    rows["op", op.rank].append({**timed, "op_id": found["op_id"], "track": "compute", "side": "device"})


def _write(run: Run, table: str, rank: int, rows: list[dict[str, object]]) -> None:
    columns = BY_NAME[table].column_names
    ordered = sorted(rows, key=lambda row: (row.get("start_ns", 0), row.get("track", "")))
    run.manifest.tables[table] = run.manifest.tables.get(table, 0) + store.write(run, table, 0, rank, [[row.get(column) for column in columns] for row in ordered])  # fmt: skip
