"""Runs to report: nothing recorded, one rank, two ranks, and one full of characters that mean something."""

from itertools import accumulate

import pytest

from pipeprof.record.run import NotMeasured

MS = 1_000_000
RUN = {"path": "r", "state": "complete", "reason": None, "source": "collect", "command": ["python", "train.py"],
       "workdir": None, "git": None, "fingerprint": {}, "warnings": [], "reps": []}  # fmt: skip


def steps(rank=0, count=10, length=10 * MS, windowed=()):
    return [
        {
            "rank": rank, "step": n, "kind_step": n, "kind": "warmup" if not n else "train", "epoch": 0, "pipeline_id": 0,
            "start_ns": n * length, "fp_ns": n * length + 4 * MS, "bp_ns": n * length + 7 * MS if n in windowed else None,
            "end_ns": (n + 1) * length, "data_wait_ns": 4 * MS, "fetch_wait_ns": 4 * MS, "fp_source": "fetch",
            "in_window": n in windowed, "updates": 1,
        }
        for n in range(count)
    ]  # fmt: skip


def trained(*lengths, begin=0, warm=0, **more):
    """Steps of these lengths, one after the other, of which the first are warm-up."""
    ends = [begin + at for at in accumulate(lengths)]
    return [
        {"step": n, "kind_step": n, "kind": "train" if n >= warm else "warmup", "start_ns": end - length, "end_ns": end}
        | more
        for n, (end, length) in enumerate(zip(ends, lengths, strict=True))
    ]


def tables(rank=0, name="halve", **how):
    pipeline = {"rank": rank, "pipeline_id": 0}
    ops = [(0, "BatchOp", None, 8), (1, "MapOp", name, 8), (2, "GeneratorOp", "Source", 8)]
    return {
        "step": steps(rank, **how),
        "fetch": [
            {**pipeline, "fetch": n, "step": n, "start_ns": n * 10 * MS, "wait_ns": 4 * MS, "side": "iterator"} for n in range(10)
        ],
        "pipeline": [
            {**pipeline, "pipeline_key": "abc", "role": "train", "site": "train.py:7", "created_ns": 0, "ready_ns": 1,
             "batch_size": 4, "queues": "recorded"}
        ],
        "pipeline_op": [
            {**pipeline, "op_id": n, "op_type": kind, "name": name_, "workers": 2, "capacity": capacity, "inlined": False}
            for n, kind, name_, capacity in ops
        ],
        "pipeline_edge": [{**pipeline, "producer_id": n + 1, "consumer_id": n} for n in range(2)],
        "queue": [
            {**pipeline, "op_id": op, "t_ns": n * MS, "depth": depth, "capacity": 8}
            for op, depth in ((0, 0), (1, 0), (2, 8))
            for n in range(1, 100)
        ],
        "op_info": [{"rank": rank, "op_id": 0, "name": f"Default/{name}/MatMul-op0", "type": "MatMul", "phase": "forward"}],
        "op": [
            {"rank": rank, "op_id": 0, "step": 2, "start_ns": 25 * MS, "dur_ns": 500, "self_ns": 500, "track": "CPU"} for _ in range(3)
        ],
        "memory": [{"rank": rank, "t_ns": 1, "device": "host", "allocated_bytes": 1 << 30}],
        "stage": [{"rank": rank, "stage": "import", "start_ns": 0, "dur_ns": 5 * MS}],
    }  # fmt: skip


@pytest.fixture
def empty(make_run):
    missing = [NotMeasured(what="step", why="no training step was seen")]
    return make_run({}, state="failed", not_measured=missing)


@pytest.fixture
def normal(make_run):
    return make_run(tables(windowed=(2, 3)), state="complete")


@pytest.fixture
def unfetched(make_run):
    """A pipeline, and nothing that says what the loop took from it."""
    return make_run({name: rows for name, rows in tables().items() if name.startswith("pipeline")})


@pytest.fixture
def ranks(make_run):
    one, two = tables(0), tables(1, length=12 * MS)
    return make_run({name: one[name] + two[name] for name in one})


@pytest.fixture
def odd(make_run):
    """Names that Markdown, rich and a terminal would all like to interpret."""
    return make_run(tables(name="<b>a|b*_[red]\\x</b>"), command=["python", "tr|ain.py", "[bold]*x*"])


@pytest.fixture(scope="module")
def built():
    """{kind of run: its report}; making it takes longest of what is done with it here."""
    return {}
