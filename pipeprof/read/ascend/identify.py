"""Which file is which, by its content; and whose: its rank and the folder of its capture."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import NamedTuple

from pipeprof.read.source.content import BROKEN, cannot_read
from pipeprof.record.plain_file import open_file

_HEAD_BYTES = 1 << 16
_TAIL_BYTES = 1 << 16

# Kind -> the columns that make it; of a tuple, any one. The first that fits counts.
_COLUMNS: tuple[tuple[str, tuple[str | tuple[str, ...], ...]], ...] = (
    ("step_trace", ("step_num", "start_point", "end_point", "total", "fp_point")),
    ("aicpu", ("serial_number", "total_time", "dispatch_time", "run_start", "run_end")),
    ("aicore_type", (("kernel_type", "op_type"), ("total_time", "execution_time"), "execution_frequency", "percent")),
    ("cpu_type", ("op_type", "type_occurrences", "total_compute_time")),
    ("cpu_detail", ("op_side", "full_op_name", "op_total_time(ms)")),
    ("gpu_type", ("op_type", "type_occurrences", "total_time(us)")),
    ("gpu_detail", ("op_side", "op_full_name", "op_total_time(us)")),
    ("gpu_activity", ("name", "occurrences", "total_duration(us)")),
    ("aicore_detail", (("full_op_name", "full_kernel_name", "full_kernel_time"), "execution_time")),
    ("framework", ("task_id", "stream_id", "block_dim", "op_info")),
    ("timeline", ("op_name", "stream_id", "start_time(ms)", "duration(ms)")),
    ("hccl_raw", ("step_num", "communication_cost", "wait_cost", "link_info")),
    ("cluster_analyse", (("computation_time", "computation"), "communication_alone_time")),
    ("cluster_steps", ("iteration_interval", "fp_and_bp", "tail")),
    ("cluster_step_trace", ("Step", "Type", "Index", "Computing", "Free")),
    ("step_trace_time", ("Step", "Computing", "Communication(Not Overlapped)", "Free")),
    (
        "kernel_details",
        (("Name", "Op Name"), ("Start Time(us)", "Task Start Time(us)"), ("Duration(us)", "Task Duration(us)")),
    ),
    ("op_statistic", (("OP Type", "Op Type"), "Core Type", "Count", "Total Time(us)")),
    ("api_statistic", ("Level", "API Name", "Time(us)", "Count")),
    ("dataset", ("Operation", "Stage", "Occurrences")),
    ("operator_details", ("Name", "Host Self Duration(us)", "Host Total Duration(us)")),
    ("operator_memory", ("Name", "Size(KB)", "Allocation Time(us)")),
    ("memory_record", ("Component", "Timestamp(us)", ("Total Reserved(MB)", "Total Reserved(KB)"))),
    ("cpu_memory", ("Timestamp(ns)", "Total Allocated(Byte)")),
    ("flops", (("full_kernel_name", "op_full_name", "full_name"), ("FLOPs", "MFLOPs(10^6)", "MFLOPs(10^6 cube)"))),
)
# Kind -> what stands in the head of a JSON file (all of these).
_JSON: tuple[tuple[str, tuple[bytes, ...]], ...] = (
    ("point_info", (b'"fp_start"',)),
    ("communication", (b'"Communication Time Info"',)),
    ("communication_matrix", (b'"Transport Type"', b'"Transit Size(MB)"')),
    ("dynamic_shape", (b'"operator"', b'"op_side"', b'"shape_info"')),
    ("profiler_info", (b'"config"', b'"common_config"')),
    ("profiler_info", (b'"profiler_parameters"', b'"rank_id"')),
    ("profiler_info", (b'"context_mode"', b'"rank_id"')),
    ("profiler_metadata", (b'"ENV_VARIABLES"',)),
    ("profiler_metadata", (b'"parallel_group_info"',)),
    ("flops_summary", (b'"FLOPs"', b'"FLOPS"')),
    ("flops_summary", (b'"cube_FLOPs"', b'"vec_FLOPs"')),
    ("start_info", (b'"clockMonotonicRaw"', b'"collectionTimeBegin"')),
    ("device_info", (b'"DeviceInfo"', b'"jobInfo"')),
)
_EVENT_MARKS = (b'"Ascend Hardware"', b'"CANN"', b'"Overlap Analysis"', b'"CPU OP"', b'"HCCL"', b'"Step Trace')
_DEVICE_FILES = {
    "training_trace": re.compile(r"training_trace\..*\.slice_[0-9]+"),
    "ts_track": re.compile(r"ts_track\..*\.slice_[0-9]+|ts_track[._].*\.bin"),
    "graph_desc": re.compile(r"Framework\.host\.vm\.graph_desc_info\..*\.slice_[0-9]+"),
    "task_desc": re.compile(r"Framework\.host\.vm\.task_desc_info\..*\.slice_[0-9]+"),
    "point": re.compile(r"Framework\.host\.vm\.point\..*\.slice_[0-9]+"),
}
_CPU_LINE = re.compile(rb"[^;\n]{1,4096};HostCpuOps;")
_GPU_LINE = re.compile(rb"[^;\n]{1,4096};(?:GpuOps|Ops);")
_GPU_STEPS = re.compile(rb"\S{1,4096}(?:,[0-9]+)?[ \t]+(?:\S{1,4096},)?[0-9]+[, \t\r\n]")
_LAUNCH_LINE = re.compile(rb"[^;\n]*;[^;\n]*;[0-9]+;(?:input_1:|\r?\n)")
_OF_RANK = re.compile(rb'"[0-9]{1,6}"\s*:\s*\{\s*"Communication Time Info"')
_GROUP_FIRST = re.compile(rb'\{\s*"(?:p2p|collective|\([0-9, ]*\))"')
_RANK = re.compile(r"_([0-9]{1,6})(?:_detail_time|_type|_detail)?\.\w+(?:\.gz)?")
_DEVICE = re.compile(r"device_([0-9]{1,6})")
_FOLDER_RANK = re.compile(r"rank[_=-]?([0-9]{1,6})", re.IGNORECASE)
OUTPUT = "ASCEND_PROFILER_OUTPUT"
_INNER = re.compile(
    rf"{OUTPUT}|FRAMEWORK|timeline|summary|mindstudio_profiler_output|sqlite|data|device_[0-9]+|host|PROF_.*|profiler"
)
ABOUT_ALL = frozenset(["cluster_step_trace", "cluster_communication", "cluster_matrix"])  # ranks at once
NUMBERED = frozenset(  # these carry the rank in their name; the others are of one capture's folder
    ["step_trace", "aicpu", "aicore_type", "aicore_detail", "framework", "timeline", "hccl_raw", "cluster_analyse",
     "cluster_steps", "cpu_type", "cpu_detail", "cpu_memory", "cpu_exec", "cpu_launch", "gpu_type", "gpu_detail",
     "gpu_activity", "point_info", "gpu_exec", "gpu_steps", "flops", "flops_summary", "dynamic_shape"]
)  # fmt: skip
MANY = frozenset(["training_trace", "ts_track", "graph_desc", "task_desc", "point", "hccl_events", "task_events",
                  "merged_events", "step_events", "memory_record", "aicpu_log", "kernel_details"])  # fmt: skip


class SourceFile(NamedTuple):
    """A recognised file. `rank` as its name says, else None; `root` is the folder of its capture."""

    path: Path
    kind: str
    rank: int | None
    root: Path


def identify(path: Path) -> SourceFile | None:
    """What a file is; None for anything that is not known. Raises SourceError for a file that cannot be read."""
    name = path.name.removesuffix(".gz")
    try:
        with open_file(path) as file:
            head = file.read(_HEAD_BYTES)
            tail = b""
            if head.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"[") and file.seekable():
                file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
                tail = file.read(_TAIL_BYTES)
    except BROKEN as error:
        if not _named(name):
            raise cannot_read(path, error) from error
        head, tail = b"", b""
    kind = _by_content(head, tail, name) or _named(name)
    if kind is None:
        return None
    return SourceFile(path, kind, _rank(path, kind), root_of(path))


def root_of(path: Path) -> Path:
    """The folder that one capture of one rank was written to."""
    folder = path.parent
    while _INNER.fullmatch(folder.name) and folder.parent != folder:
        folder = folder.parent
    return folder


def folder_rank(folder: Path) -> int | None:
    """The rank in a folder's name or its parent's, as in `rank3_ascend_pt`."""
    for candidate in (folder, folder.parent):
        match = _FOLDER_RANK.search(candidate.name)
        if match:
            return int(match[1])
    return None


def _rank(path: Path, kind: str) -> int | None:
    """As the file's name says, else the folder of a device that it lies in."""
    match = _RANK.search(path.name) if kind in NUMBERED or kind == "profiler_info" else None
    if kind in ("training_trace", "graph_desc", "task_desc", "point", "ts_track", "aicpu_log"):
        match = re.search(r"\.([0-9]{1,6})\.slice_", path.name)
    match = match or _DEVICE.search(f"{path.parent.name}/{path.parent.parent.name}")
    return int(match[1]) if match else None


def _named(name: str) -> str | None:
    """Kinds that their names alone tell: what is wrong with such a file is said when it is read."""
    if re.fullmatch(r"step_trace_raw(_\d+)?_detail_time\.csv", name):
        return "step_trace"
    if name in ("kernel_details.csv", "trace_view.json", "communication.json", "communication_matrix.json",
                "step_trace_time.csv"):  # fmt: skip
        return name.rpartition(".")[0]
    return None


def _by_content(head: bytes, tail: bytes, name: str) -> str | None:
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    for kind, pattern in _DEVICE_FILES.items():  # these have no header to tell them by
        if pattern.fullmatch(name):
            return kind
    if b"Node:" in text[:200] and b"Run tart:" in text[:400]:  # records are parted by NUL
        return "aicpu_log"
    if text.startswith((b"[", b"{")):
        return _document_kind(text) or _events_kind(text, tail, name)
    return None if b"\0" in head else _text_kind(text, name)


def _text_kind(text: bytes, name: str) -> str | None:
    if _CPU_LINE.match(text):
        return "cpu_exec"
    if _GPU_LINE.match(text):
        return "gpu_exec"
    if name.startswith("step_trace_profiling") and _GPU_STEPS.match(text):
        return "gpu_steps"
    if _LAUNCH_LINE.match(text) and name.startswith("cpu_framework"):
        return "cpu_launch"
    return _csv_kind(text.partition(b"\n")[0].decode("utf-8", "replace"))


def _csv_kind(line: str) -> str | None:
    try:
        names = {name.strip() for name in next(csv.reader([line.strip()], skipinitialspace=True), [])}
    except csv.Error:
        return None
    for kind, wanted in _COLUMNS:
        if all(one in names if isinstance(one, str) else names.intersection(one) for one in wanted):
            return kind
    return None


def _document_kind(text: bytes) -> str | None:
    kind = next((kind for kind, marks in _JSON if all(mark in text for mark in marks)), None)
    if kind == "communication" and _OF_RANK.search(text):
        return "cluster_communication"
    return "cluster_matrix" if kind == "communication_matrix" and _GROUP_FIRST.match(text) else kind


def _events_kind(text: bytes, tail: bytes, name: str) -> str | None:
    if not (text.startswith(b"[") and (b'"ph"' in text or name == "trace_view.json")):
        return None
    if "timeline_display" in name:
        return None  # derived from files that are read, and cut at 20 MB without saying so
    if b'"Step Trace"' in text and b'"Iteration ' in text:
        return "step_events"
    for kind in ("hccl", "task_time", "msprof"):
        if re.fullmatch(kind + r"(_[0-9]+)+\.json", name) and any(mark in text for mark in _EVENT_MARKS):
            return {"hccl": "hccl_events", "task_time": "task_events", "msprof": "merged_events"}[kind]
    if name == "trace_view.json" or any(mark in text or mark in tail for mark in _EVENT_MARKS):
        return "trace_view"
    return None
