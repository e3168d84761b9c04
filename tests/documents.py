"""A document of each verb, from content as its JSON has it, for the tests of the formats that show it."""

from comparisons import comparison, metric

from pipeprof.experiment.tune.patch import EXIT
from pipeprof.report import bisect_text, qualify_text, runs, speedup_text, status, tune_text, verify
from pipeprof.report.compare import sections as compare_sections
from pipeprof.report.ops import sections as ops_sections
from pipeprof.report.ops.content import Content, Part
from pipeprof.report.words import waiting

WHAT = [
    {"op": "MapOp 1", "op_id": 1, "node": 1, "name": "rotate", "place": "train.py:9", "change": {"workers": [1, 2]}}
]
FINAL = {
    "a": [10.0] * 4, "b": [19.0] * 4, "batches": "same", "verdict": "improved", "ratio": 1.9, "low": 1.85, "high": 1.95,
    "p_value": 0.99999999, "alpha": 0.002, "looks": [4], "error": "",
}  # fmt: skip
PATCH = {
    "diff": "--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-a = a.map(f)\n+a = a.map(f, num_parallel_workers=2)\n",
    "by_hand": [
        {"place": "lib.py:7", "what": "num_parallel_workers=2", "why": "outside", "detail": ""},
        {"place": "train.py:8", "what": "num_parallel_workers=2", "why": "expression", "detail": "args.workers"},
    ],
    "shared": ["train.py:9"],
}
SEEN = [
    {
        "not_worth": [{"what": WHAT, "ratio": 1.01}], "other_sites": [], "process": None,
        "caches": [{"op_type": "MapOp", "op_id": 2, "name": "decode", "site": "train.py:9", "bytes": 2**20, "ratio": 1.66,
                    "disk_ratio": 0.5, "changes": None}],
        "outside": [{"part": "evaluation", "detail": None, "cause": None, "share": 0.25}],
    }
]  # fmt: skip


def trial(verdict, **more):
    return {
        "key": "1:workers=2", "what": WHAT, "prediction": {"ratio": 1.9, "low": 1.7, "high": 2.1}, "a": [10.0, 10.1],
        "b": [19.0, 19.3], "interval": [1.8, 2.0], "ratio": 1.9, "verdict": verdict, "predicted_wrong": False, "error": "",
        "saved": None, "stopped": "decided", "batches": "same",
    } | more  # fmt: skip


RECORDED = {"not_worth": [], "other_sites": [], "operators": [{"op_id": 1, "node": 1}, {"op_id": 2, "node": 2}]}


def tuned(verdict, final=None, trials=(), **more):
    return {
        "verdict": verdict, "exit_code": EXIT[verdict], "goal": "time", "command": ["python", "train.py", "--name", "a`b"],
        "spent_s": 61.0, "next_budget_s": 150.0, "ended": "nothing_left", "seen": [RECORDED], "trials": list(trials),
        "final": final, "patch": None, "lacks_time": False, "settings": {"operators": [{"node": 1}]},
    } | more  # fmt: skip


def _rate(sessions=500):
    return {
        "rate": 0.5, "low": 0.4, "high": 0.6, "sessions": sessions, "verdicts": {"unchanged": sessions}, "mean_repetitions": 3,
    }  # fmt: skip


QUALIFIED = {
    "pool": {"spread": {"step_time_median": 0.012}, "repetitions": 32, "rounds": 8, "seconds": 600.0, "seconds_per_repetition": 19.0},
    "false_alarms": _rate(), "alpha": 0.01, "notes": [],
    "slow_downs": [_rate() | {"injected": 0.05, "measured": 4.9, "measured_low": 4.0, "measured_high": 6.0, "how": "sleep"}],
    "sees": [{"change": n / 100, "repetitions": n, "counts": n > 2, "minutes": 1234.5 * n} for n in range(1, 6)],
}  # fmt: skip
_COMMITS = [
    {"revision": "3f2a91c4d5" * 4, "subject": "Larger pictures, and another augmentation for those of the night", "runs": 12,
     "probability": chance} for chance in (0.9999, 0.5, 0.00001)
]  # fmt: skip
BISECTED = {
    "verdict": "range", "stopped": "budget", "metric": "step_time_median", "ratio": 1.052, "range": _COMMITS,
    "candidates": _COMMITS, "headline": "", "because": "because work of `decode` per batch grew to 2.1x", "runs": 44, "commits": 64,
    "good": _COMMITS[0], "bad": _COMMITS[-1],
    "cannot_be_measured": _COMMITS, "session": {"seconds": 1234.5, "folder": "pipeprof-bisect-0123456789ab"},
}  # fmt: skip
MEASURED = {
    "measured": {"ratio": 1.6, "low": 1.5, "high": 1.7, "interval": [1.41, 1.82], "decided": "above", "verdict": "faster", "pairs": 3,
                 "stopped": "decided", "speeds": [], "speeds_of": None},
    "runs": [{"name": f"{side}{pair}", "side": side, "pair": pair, "steps_per_second": 10.0 + pair + 6 * (side == "b"), "speeds": []}
             for pair in range(3) for side in "ab"],
    "notes": ["the changed runs trained on one batch again and again"],
}  # fmt: skip
_OP = {"op_id": 3, "op_type": "MapOp", "name": "rotate", "node": 2}
PREDICTED = MEASURED | {
    "op": _OP, "change": {"workers": [1, 2]}, "error": 0.031,
    "prediction": {"ratio": 1.65, "low": 1.6, "high": 1.7, "basis": ["a row takes 3.2 ms, of which 3.0 ms wait"], "limited_by": "consumer"},
}  # fmt: skip
_STACK = ["/job/train.py:7 in load", "/job/train.py:40 in <module>"]
_STUCK = {
    "pid": 9, "for_s": 300.0, "op_type": "MapOp", "name": "decode", "site": "d.py:4", "function": "decode", "line": "q.get()",
    "stack": _STACK,
}  # fmt: skip
_WAITS = {
    "rep": 0, "rank": 3, "pid": 42, "code": "script", "for_s": 12.4, "site": "train.py:7", "function": "load",
    "line": "lock.acquire()", "in_callback": False, "queue": {"depth": 16, "capacity": 16}, "stack": _STACK, "stuck": [_STUCK],
    "missing": [], "call": None,
}  # fmt: skip
STATUS = {
    "schema_version": 1, "run": {"path": "run", "run_id": "x", "repetitions": 1}, "state": "recording",
    "ranks": [_WAITS | {"rank": rank, "text": waiting.sentence(_WAITS | {"rank": rank})} for rank in (0, 1)],
}  # fmt: skip
_RUN = dict.fromkeys(runs.COLUMNS) | {"started_at": "2026-01-02T03:04:00+00:00"}
RUNS = [
    _RUN | {"path": "slow", "state": "complete", "step_ns": 13_000_000.0, "verdict": "input_bound", "op_name": "decode",
            "cause": "input_bound", "cause_text": "input-bound: decode",
            "command": ["python", "train.py", "--name", "with blanks"]},
    _RUN | {"path": "a/rather/long/path/of/a/run-from-the-cluster", "state": "partial", "step_ns": 1.5e9, "verdict": "balanced",
            "cause": "host_gap", "cause_text": "host-bound",
            "command": ["msrun", "--worker_num=8", "--a-very-long-option-that-is-cut=" + "x" * 80]},
    _RUN | {"path": "torn", "state": "damaged", "problem": "`torn/run.json` ends too early"},
]  # fmt: skip
VERIFIED = {
    "run": {"path": "run", "run_id": "x", "made_by": "1.0"}, "verdict": "damaged", "exit_code": 3, "files": 7, "bytes": 12345,
    "changes": [{"file": "step/rep=0/rank=0/part-00000.parquet", "code": "size", "found": "7 bytes", "expected": "9 bytes"}],
}  # fmt: skip
_OPERATOR = {
    "rep": 0, "rank": 0, "position": 1, "name": "conv(b)[4]", "type": "ConvolutionForward", "opr_id": "4", "op_id": 4, "count": 2,
    "self_ns": 6000.0, "share": 6 / 13, "cumulative_ns": 6000.0, "cumulative_share": 6 / 13, "computation": 9000.0,
    "computation_count": 1, "flops": 1.5e9, "memory": 4096.0, "bandwidth": 6.8e8, "in_shapes": "[[1,3],[8,3,224,224]]",
    "in_strides": None, "out_shapes": "[[1,3]]",
}  # fmt: skip
_GROUP = {
    "rep": 0, "rank": 0, "name": "Default/network-WithLossCell/_backbone-SequentialCell/0-Dense/MatMul-op0", "phase": "forward",
    "in_shapes": "[[4,8],[16,8]]", "count": 15, "self_ns": 144_000.0, "share": 0.613, "total_ns": 144_000.0, "total_share": 0.613,
    "mean_ns": 9590.0, "max_ns": 51_600.0, "cumulative_share": 0.613, "memory_bytes": 4096.0, "computation": 9000.0,
    "computation_count": 15,
}  # fmt: skip
SINGLE = Content(
    "single", [Part("device", [_OPERATOR, _OPERATOR | {"position": 2, "name": "a", "in_shapes": None}], 5)],
    summary={"total device time": 13_000.0}, busy=["the device runs an operator in 40 % of the time"], total={"count": 5},
)  # fmt: skip
GROUPS = Content(
    "groups", [Part("device", [_GROUP, _GROUP | {"name": "ReLU"}], 2)], total={"count": 2}, footer={"Self CPU time total": 7.0}
)  # fmt: skip
DOCUMENTS = {
    "ops single": lambda: ops_sections.document(SINGLE, "profile.json", ""),
    "ops groups": lambda: ops_sections.document(GROUPS, "run", ""),
    "runs": lambda: runs.document(runs.content_of("folder", RUNS)),
    "status": lambda: status.document(STATUS, stacks=True),
    "verify": lambda: verify.document(VERIFIED),
    "whatif": lambda: speedup_text.whatif(PREDICTED),
    "headspace": lambda: speedup_text.headspace(MEASURED),
    "headspace --op": lambda: speedup_text.headspace(MEASURED | {"part": {"op": _OP, "mode": "alone"}}),
    "tune": lambda: tune_text.document(
        tuned("proven", FINAL, [trial("accepted"), trial("failed", ratio=None, error="it broke")], patch=PATCH, seen=SEEN),
        ["patch.diff", "settings.json"], "tuned",
    ),
    "tune --goal memory": lambda: tune_text.document(tuned("nothing_to_gain", None, [trial("no_gain", saved=1.6)], goal="memory")),
    "compare": lambda: compare_sections.document(comparison(metrics=[
        metric(verdict="regressed"), *(metric(f"op/{n}", family="secondary", reps_new=n) for n in range(9))
    ])),
    "qualify": lambda: qualify_text.document(QUALIFIED),
    "bisect": lambda: bisect_text.document(BISECTED),
}  # fmt: skip
