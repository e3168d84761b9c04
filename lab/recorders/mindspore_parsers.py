"""What MindSpore's own parsers make of raw files: `mindspore_parsers.py 1.0|2.0 FOLDER`, FOLDER of ascend_files_of_a_job.py.

With 1.0 (MindSpore 1.0.0, Python 3.7; of its wheel only `mindspore/log.py` and `mindspore/profiler` are needed, with
empty `__init__.py` in these two): the older trace, the descriptions, the AI CPU's log, and the pipeline of `one_rank`.
With 2.0 (MindSpore 2.0.0, Python 3.9): the newer trace.
"""

import csv
import shutil
import sys
from pathlib import Path

# The columns of framework_raw as later versions write them: the name twice, whole and its end.
COLUMNS = [
    "task_id",
    "stream_id",
    "block_dim",
    "full_kernel_name",
    "op_name",
    "kernel_name",
    "kernel_type",
    "subgraph",
    "op_info",
]


def older(folder):
    from mindspore.profiler.parser.aicpu_data_parser import DataPreProcessParser
    from mindspore.profiler.parser.framework_parser import FrameworkParser
    from mindspore.profiler.parser.minddata_pipeline_parser import MinddataPipelineParser
    from mindspore.profiler.parser.step_trace_parser import StepTraceParser

    job, parsed, aicpu, one = (folder / name for name in ("job", "parsed_job", "parsed_aicpu", "one_rank"))
    parsed.mkdir()
    aicpu.mkdir()
    FrameworkParser._raw_data_dir = str(folder)
    framework = FrameworkParser("job", "0", str(parsed))
    framework.parse()
    for name, skipped in (("", False), ("_skip1", True)):
        path = parsed / "step_trace_raw_0_detail_time{}.csv".format(name)  # noqa: UP032 - in the form of its Python
        steps = StepTraceParser(str(job), str(path), skip_first_step=skipped)
        steps.update_tag_op_type_map(framework.point_info)
        steps.parse_and_save()
    steps.record_point_info(framework.point_info, str(one / "step_trace_point_info.json"))
    shutil.copy(str(parsed / "step_trace_raw_0_detail_time.csv"), str(one / "step_trace_raw_1_detail_time.csv"))
    with (parsed / "framework_raw_0.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    with (one / "framework_raw_1.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([COLUMNS] + [row[:4] + row[3:] for row in rows])
    MinddataPipelineParser(str(one), "1", str(one)).parse()
    log, out = folder / "job_aicpu", aicpu / "output_data_preprocess_aicpu_0.txt"
    DataPreProcessParser(str(log), str(out)).execute()


def newer(folder):
    from mindspore.profiler.parser.step_trace_parser import AscendStepTraceParser

    # Task numbers and streams as the trace has them: a point is the operator beside the one that marks it.
    names = {"0_1": "Default/Profiling-op1", "0_2": "Default/Profiling-op2", "0_3": "Default/Cast-op7",
             "0_4": "Default/Profiling-op3", "0_5": "Default/Profiling-op4"}  # fmt: skip
    for index, stream in enumerate((11, 12, 13)):
        for task, name in enumerate(("Profiling-op6", f"grad_reducer/AllReduce-op{60 + index}", "Profiling-op9")):
            names["{}_{}".format(stream, 6 + 3 * index + task)] = "Default/" + name  # noqa: UP032
    derived = folder / "two_ranks"
    for rank in ("0", "1"):
        path = derived / ("step_trace_raw_" + rank + "_detail_time.csv")
        steps = AscendStepTraceParser(str(folder / "job_track" / ("rank" + rank)), str(path))
        steps.set_task_id_op_name_dict(names)
        steps.parse_and_save()
        steps.record_point_info(str(derived / ("step_trace_point_info_" + rank + ".json")))


if __name__ == "__main__":
    (older if sys.argv[1] == "1.0" else newer)(Path(sys.argv[2]).resolve())
