"""Rows of tables as most queries want them; what a test is about it gives itself."""

MS = 1_000_000
KEY = {"pipeline_id": 0}
ENDS = range(100, 4001, 100)  # when the batches of `fed` come, ms


def step(number, start, end, kind="train", **more):
    """A step outside of op windows."""
    times = {"start_ns": start, "end_ns": end}
    return {"step": number, "kind_step": number, "kind": kind, "in_window": False, **times, **more}


def steps(*kinds, length=100, **more):
    """Steps of these kinds, one after the other."""
    return [step(n, n * length, (n + 1) * length, kind, **more) for n, kind in enumerate(kinds)]


def phased_step(number=0, start=0, fp=20, bp=70, end=100, **more):
    """A step with its phases."""
    return step(number, start, end, **{"fp_ns": fp, "bp_ns": bp, **more})


def op(op_id, dur, step=0, start=0, **more):
    """An execution of an operator, all of whose time is its own."""
    times = {"start_ns": start, "dur_ns": dur, "self_ns": dur}
    return {"op_id": op_id, "step": step, "track": "0", **times, **more}


def fed(*ops, edges=None, wait=60, ends=ENDS, **more):
    """Tables of a training whose loop waits `wait` of every 100 ms for a batch; operators as (type, facts), the sink first."""
    edges = [(number + 1, number) for number in range(len(ops) - 1)] if edges is None else edges
    return {
        "pipeline": [KEY | {"pipeline_key": "a", "role": "train"}],
        "pipeline_op": [
            KEY | {"op_id": number, "op_type": kind, "workers": 1, "capacity": 4} | facts
            for number, (kind, facts) in enumerate(ops)
        ],
        "pipeline_edge": [KEY | {"producer_id": up, "consumer_id": down} for up, down in edges],
        "fetch": [
            KEY | {"fetch": n, "start_ns": (end - wait) * MS, "wait_ns": wait * MS, "side": "iterator"}
            for n, end in enumerate(ends)
        ],
    } | more


def depths(op_id, depth, ends=ENDS):
    """Samples of an operator's queue for four batches."""
    return [KEY | {"op_id": op_id, "t_ns": end * MS, "depth": depth, "capacity": 4} for end in ends]


def times(op_id, source, avg_ms, ends=ENDS, rows=1, **more):
    """How long an operator worked for a batch."""
    row = {"op_id": op_id, "source": source, "avg_ns": round(avg_ms * MS), "rows": rows, "batches": 1} | more
    return [KEY | row | {"t_ns": end * MS} for end in ends]


def collectives(durations, count=1, **more):
    """Tables of collectives one after the other in each of so many steps: {name: a duration for each rank, or None}."""
    ranks = range(max(len(values) for values in durations.values()))
    return {
        "step": [row for rank in ranks for row in steps(*["train"] * count, length=1000, rank=rank)],
        "collective": [
            {
                "rank": rank,
                "step": n,
                "name": name,
                "kind": "all_reduce",
                "start_ns": 1000 * n + 100 * place,
                "dur_ns": dur,
            }
            | more
            for n in range(count)
            for place, (name, values) in enumerate(durations.items())
            for rank, dur in enumerate(values)
            if dur is not None
        ],
    }


def own_times(times, length=1000):
    """Tables of ranks, {rank: own time in each step}: an all-reduce is the rest of it. None: the rank has no such step."""
    found = {"step": [], "collective": []}
    for rank, owns in times.items():
        for number, own in enumerate(owns):
            if own is None:
                continue
            begin, here = number * length, {"rank": rank, "step": number}
            found["step"].append(phased_step(number, begin, begin, begin + own, begin + length, rank=rank))
            found["collective"].append({**here, "start_ns": begin + own, "dur_ns": length - own})
    return found
