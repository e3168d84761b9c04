"""diagnose/mindinsight and its advice against MindInsight 2.3.1's recorded answers on the same data."""

import json

from captured import outside, own
from every import every
from typed_rows import of_dicts

from pipeprof.query.engine import Engine
from pipeprof.verdict import compatible

verdicts = of_dicts(compatible.verdicts)

OUTSIDE = [
    "mi231_on_ms210_slow_leaf_cpu", "mi231_on_ms210_slow_leaf_io", "mi231_on_ms210_slow_map_cpu",
    "mi231_on_ms210_slow_map_io", "mi_profiler_dev0", "mi_profiler_dev1", "mi_run1_dev1", "mi_run2_dev1", "mi_run3_dev1",
    "mi_run4_dev1", "mi_ut_minddata_pipeline_1", "mi_ut_minddata_pipeline_3",
]  # fmt: skip
ANSWERS = [
    *sorted((own("ascend") / "answers").glob("*.json")), *outside(*(f"ascend/oracle/{name}.json" for name in OUTSIDE)),
]  # fmt: skip
# Counts, labels and links: no advice.
NOT_ADVICE = ("minddata_device_queue", "minddata_get_next_queue", "common-profiler_tutorial")


def tables_of(answer):
    """The data as MindInsight shows it: its rows of operators, queue sizes per batch, idle shares and mean interval."""
    key = {"pipeline_id": 0}
    ops = answer["minddata_pipeline"].get("all", {}).get("object", [])
    queue = [
        {**key, "op_id": op[0], "t_ns": at, "depth": depth, "capacity": op[5]}
        for op in ops
        for at, depth in enumerate(op[3] or [])
    ]
    fetch = [
        {**key, "fetch": at, "depth": depth, "side": side}
        for side, part in (("host_queue", "device_queue"), ("data_queue", "get_next"))
        for at, depth in enumerate(answer["minddata"][part]["queue"].get("info", {}).get("queue", []))
    ]
    idle = answer["minddata_cpu_utilization"].get("device_info", {}).get("idle_utilization", {}).get("metrics", [])
    interval_ns = int(answer["step_trace"].get("summary", {}).get("iteration_interval", 0) * 1_000_000)
    return {
        "pipeline": [{**key, "pipeline_key": "a", "role": "train"}],
        "pipeline_op": [{**key, "op_id": op[0], "op_type": op[1], "workers": op[2], "capacity": op[5],
                         "inlined": op[5] is None} | {"stated_fill_ratio": op[6] if op[5] else None} for op in ops],
        "pipeline_edge": [{**key, "producer_id": op[0], "consumer_id": op[8]} for op in ops if op[8] is not None],
        "queue": queue, "fetch": fetch,
        "cpu": [{"scope": "host", "t_ns": at, "idle_ratio": share / 100} for at, share in enumerate(idle)],
        "step": [{"step": step, "kind": "train", "start_ns": 0, "fp_ns": step * interval_ns, "end_ns": 10**12}
                 for step in range(2 if interval_ns else 0)],
    }  # fmt: skip


def keys(answer):
    return {key for key in answer or {} if key not in NOT_ADVICE and not key.endswith("_label")}


@every(ANSWERS, lambda path: path.stem)
def test_verdicts_and_advice_are_those_of_mindinsight(path, make_run):
    answer = json.loads(path.read_text(encoding="utf-8"))
    with Engine.open(make_run(tables_of(answer))) as engine:
        rows, advice = engine.rows("diagnose/mindinsight"), engine.rows("diagnose/mindinsight_advice")
    part = verdicts(mindinsight=rows, advice=advice, mindspore=[], autotune=[])["mindinsight"]

    warned = [key for key, value in answer["minddata"]["queue_summary"].items() if value.get("status") == "warning"]
    names = {"data_process": "data_processing"}
    assert part["queues"] == (names.get(warned[0], warned[0]) if warned else None)
    flagged = answer["minddata_pipeline"].get("outside_threshold_[0.8,0.6]", {}).get("object", [])
    assert [item["op_id"] for item in part["ops"]] == [op[0] for op in flagged]
    if "__error__" in answer["minddata_pipeline"]:
        assert part["named"] is None

    proposed = keys(answer["proposer_step_trace"]) | keys(answer["proposer_minddata"])
    assert {item["key"] for item in part["advice"]} == proposed | keys(answer["proposer_minddata_pipeline"])
    assert {item["key"] for item in part["advice"] if item["shown"]} == keys(answer["compose"])
    names = {op["op_id"]: op["op_type"] for op in part["ops"]}
    for item in part["advice"]:
        if "op_ids" in item:
            joined = "/".join(f"{names[op_id]}_{op_id}" for op_id in item["op_ids"])
            assert [joined] == answer["proposer_minddata_pipeline"][item["key"]]
