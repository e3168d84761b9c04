"""diagnose/mindspore against MindSpore's own analysis of the same folders, executed."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from random import Random

import pytest
from captured import outside, own
from minddata_record import tables_from
from typed_rows import of_dicts

from pipeprof.query.engine import Engine
from pipeprof.report.words.verdict import worded
from pipeprof.verdict import compatible

verdicts = of_dicts(compatible.verdicts)

pytestmark = pytest.mark.slow  # starts MindSpore

MODULE = "mindspore.profiler.analysis.viewer.ms_minddata_viewer"


def originals(folders):
    if find_spec("mindspore") is None:
        pytest.skip("MindSpore is not installed")
    command = [sys.executable, str(Path(__file__).with_name("minddata_original.py")), *map(str, folders)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if "ModuleNotFoundError" in done.stderr:
        pytest.skip(f"this MindSpore has no {MODULE}")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def ours(make_run, folder):
    with Engine.open(make_run(tables_from(folder))) as engine:
        rows = engine.rows("diagnose/mindspore")
    return rows, worded(verdicts(mindinsight=[], advice=[], mindspore=rows, autotune=[]))["mindspore"]


def theirs_in(details, finding_of):
    """{operator label: finding} from their sentences."""
    return {text.removeprefix("Leaf op ").split(")")[0] + ")": finding_of(text) for text in details}


def cpu_finding(text):
    return "high" if "might bring extra performance" in text else "low"


def queue_finding(text):
    return "leaf" if text.startswith("Leaf op") else "device_queue" if "empty" in text else "inner"


def ours_in(details):
    return {f"{item['op_type'][:-2]}(id={item['op_id']})": item["finding"] for item in details}


def compare(make_run, folder, summary):
    rows, part = ours(make_run, folder)
    if summary is None or "avg_cpu_pct_per_worker" not in summary:
        assert part["named"] is None
        assert part["missing"]
        return
    assert part["missing"] is None
    assert [row["op_id"] for row in rows] == summary["op_ids"]
    for column in (
        "queue_average_size", "queue_utilization_pct", "queue_empty_freq_pct", "avg_cpu_pct", "avg_cpu_pct_per_worker",
    ):  # fmt: skip
        found = [-1 if row[column] is None else row[column] for row in rows]
        assert found == pytest.approx(summary[column], abs=0.0101), column
    assert part["warning"] == summary.get("bottleneck_warning", [None])[0]
    assert part["named"] == ([] if part["warning"] is None else [part["op_id"]])
    if part["suggestion"]:
        assert ("num_parallel_workers" in part["suggestion"]) == (
            "num_parallel_workers" in summary["bottleneck_suggestion"][0]
        )
    assert ours_in(part["cpu_details"]) == theirs_in(summary.get("cpu_analysis_details", []), cpu_finding)
    assert ours_in(part["queue_details"]) == theirs_in(summary.get("queue_analysis_details", []), queue_finding)


CAPTURES = [own("minddata") / "profiles", *outside("minddata_suite", "ascend/minddata_cpu_2.10")]


@pytest.mark.parametrize("captures", CAPTURES, ids=lambda path: path.name)
def test_real_captures(make_run, captures):
    folders = sorted(path for path in captures.iterdir() if path.is_dir())
    for folder, summary in originals(folders).items():
        assert summary, folder
        compare(make_run, Path(folder), summary)


INLINED = ("RenameOp", "ZipOp", "ConcatOp", "RepeatOp", "DeviceQueueOp")
TYPES = ["BatchOp", "MapOp", "MapOp", "FilterOp", "ShuffleOp", *INLINED]


def write_folder(folder, chance):
    """A random tree in the files that MindSpore writes; now and then a file is missing."""
    folder.mkdir()
    ops, busy = [], []
    # No counts with a mean that lies between two decimals: there Python rounds to even, the query up.
    samples = chance.choice([1, 3, 7, 41])

    def add(depth):
        number = len(ops)
        kind = "GeneratorOp" if depth == 0 else chance.choice(TYPES)
        # Half of the values are at the ends, where the thresholds are.
        level, width = chance.choice([0, 1, 5, 8, 16]), chance.choice([0, 0, 3])
        sizes = [min(16, max(0, level + chance.randint(-width, width))) for _ in range(samples)]
        entry = {"op_id": number, "op_type": kind, "num_workers": chance.choice([1, 1, 2, 4])}
        entry["metrics"] = None if kind in INLINED else {"output_queue": {"length": 16, "size": sizes}}
        ops.append(entry)
        cores = chance.choice([0, 0, 10, 40, 80, 160, 320])
        busy.append([cores + chance.randint(0, 9) for _ in range(samples)])
        if depth:
            children = 2 if kind in ("ZipOp", "ConcatOp") else 1
            entry["children"] = [add(depth - 1) for _ in range(children)]
        return number

    add(chance.randint(1, 5))
    folder.joinpath("pipeline_profiling_0.json").write_text(json.dumps({"sampling_interval": 10, "op_info": ops}))
    metrics = [
        {"op_id": number, "metrics": {"user_utilization": values, "sys_utilization": [0] * samples}}
        for number, values in enumerate(busy)
    ]
    if chance.random() < 0.1:
        metrics.pop()
    usage = {"cpu_processor_num": 2, "time_stamp": list(range(samples)), "op_info": metrics}
    folder.joinpath("minddata_cpu_utilization_0.json").write_text(json.dumps(usage))
    if chance.random() < 0.9:
        lines = [
            f"{kind} {extra} {batch} 0 {batch}" for batch in (1, 2) for kind, extra in ((0, 1), (0, 2), (0, 0), (1, 16))
        ]
        folder.joinpath("dataset_iterator_profiling_0.txt").write_text("\n".join(lines))


def test_made_folders(make_run, tmp_path):
    chance = Random(20260203)  # noqa: S311 - test data
    folders = [tmp_path / f"made-{number}" for number in range(60)]
    for folder in folders:
        write_folder(folder, chance)
    found = originals(folders)
    named = [
        summary["bottleneck_warning"][0] for summary in found.values() if summary and "bottleneck_warning" in summary
    ]
    assert len(named) > 10
    assert None in found.values()
    for folder, summary in found.items():
        compare(make_run, Path(folder), summary)
