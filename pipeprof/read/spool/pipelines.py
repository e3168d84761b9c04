"""A process's dataset iterators: what they are made of, their queue samples, service times, fetches and CPU."""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeprof.errors import SourceError
from pipeprof.read import minddata
from pipeprof.read.spool.calls import add_calls, add_instructions, add_lock_waits
from pipeprof.read.spool.marks import OTHER_THREAD, Kind
from pipeprof.read.spool.process import LATEST, Process
from pipeprof.read.spool.step_rows import EVAL, Step, StepRows
from pipeprof.units import NS_PER_MS, ns_from_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pipeprof.read.tables.rows import RankRows

# Operators that only exist in the executed tree, or run inside their consumer: left out when trees are compared.
INLINED = frozenset([
    "EpochCtrlOp", "RepeatOp", "RenameOp", "ProjectOp", "TakeOp", "SkipOp", "ZipOp", "ConcatOp", "CacheOp",
    "CacheLookupOp", "CacheMergeOp", "SyncWaitOp", "BarrierOp", "DataQueueOp", "RootOp", "TransferOp", "DeviceQueueOp",
])  # fmt: skip
PYTHON_SOURCE = "GeneratorOp"
_SAVE = re.compile(r"[^.].*-[0-9]{1,18}")


@dataclass
class Pipeline:
    """One iterator of a process, and where it goes in the record."""

    number: int
    event: Mapping[str, Any]
    pipeline_id: int
    nodes: list[dict[str, Any]]
    key: str
    op_ids: dict[int, int] = field(default_factory=dict)  # node of the user's graph -> operator
    ready: Sequence[Mapping[str, Any]] = ()  # what was ready behind its batches
    weights: Sequence[Mapping[str, Any]] = ()  # how many bytes its batches hold
    records: list[minddata.FetchRecord] = field(default_factory=list)
    taken: Sequence[Mapping[str, Any]] = ()  # what was taken of MindSpore's records of its batches
    last_fetch_ns: int | None = None
    spacing_ms: int = 0  # of its last readings; 0: as it began
    is_sampled: bool = False

    @property
    def ahead(self) -> int | None:
        """Batches that a loader makes ahead; None where that is not known."""
        return self.nodes[0].get("capacity") if self.nodes else None


def pipeline_keys(process: Process) -> dict[int, str]:
    """Pipeline key per iterator number: equal for the same operators, names and creation site."""
    return {number: _key(event) for number, event in process.by_number("iterator").items()}


def add_pipelines(
    process: Process, out: RankRows, roles: Mapping[int, str], warnings: list[str]
) -> dict[int, Pipeline]:
    """Write the pipeline tables of a process and return its pipelines by iterator number."""
    closed = {number: events[-1] for number, events in _by_number(process.all("closed")).items()}
    closing = {number: events[-1]["took"] for number, events in _by_number(process.all("workers_ended")).items()}
    weights = _by_number(process.all("weights"))
    epochs_of = _epoch_batches(process)
    last_fetches = _last_fetches(process)
    ready = _by_number(process.all("ready"))
    spacings, taken = (_by_number(process.all(name)) for name in ("spacing", "batches"))
    pipelines: dict[int, Pipeline] = {}
    trees: dict[str, list[minddata.PipelineOp]] = {}
    for event in process.all("iterator"):
        number = int(event["number"])
        role = "hidden" if event.get("hidden") else roles.get(number, "other")
        nodes = flatten(event.get("graph") or {})
        pipeline = Pipeline(number, event, out.pipelines, nodes, _key(event, role))
        pipeline.taken, pipeline.last_fetch_ns = taken.get(number, ()), last_fetches.get(number)
        pipeline.ready = ready.get(number, ())
        pipeline.weights = weights.get(number, ())
        pipeline.spacing_ms = max((one["ms"] for one in spacings.get(number, ())), default=0)
        out.pipelines += 1
        pipelines[number] = pipeline
        queues = _add_samples(process, out, pipeline, trees, warnings)
        end = closed.get(number)
        epochs = event.get("epochs")
        out.add(
            "pipeline", pipeline_id=pipeline.pipeline_id, pipeline_key=pipeline.key, role=role,
            site=event.get("site") or None, created_ns=out.at(event["begin"]), ready_ns=out.at(event["end"]),
            closed_ns=out.at(end["t"]) if end else None,
            batch_size=next((node["batch"] for node in nodes if node.get("batch")), None),
            num_epochs=epochs if isinstance(epochs, int) and epochs > 0 else None, epoch_batches=epochs_of.get(number),
            batch_bytes=_first_bytes(pipeline), queues=queues,
            settings=json.dumps(event["settings"]) if event.get("settings") else None,
            iteration=event.get("iteration"), closing_ns=closing.get(number),
        )  # fmt: skip
    for pipeline in pipelines.values():
        if not pipeline.is_sampled:
            _add_unsampled(out, pipeline, trees.get(pipeline.key))
    _add_service(process, out, pipelines)
    add_calls(process, out, pipelines)
    add_lock_waits(process, out, pipelines)
    add_instructions(process, out, pipelines)
    _find_workers(process, out, pipelines)
    return pipelines


def _epoch_batches(process: Process) -> dict[int, int]:
    """Batches of the longest epoch that ended, for each iterator."""
    fetches = process.marks.only(Kind.FETCH)
    fetches = fetches[np.argsort(fetches.subject, kind="stable")]
    numbers, first, group = np.unique(fetches.subject, return_index=True, return_inverse=True)
    rows = np.concatenate([[0], np.cumsum(fetches.rows)])  # before each fetch
    ends = np.flatnonzero(fetches.flag & ~np.uint8(OTHER_THREAD) == 1)
    before = np.concatenate([[-1], ends[:-1]])[: len(ends)]
    batches = rows[ends] - rows[np.maximum(before + 1, first[group[ends]])]
    longest = np.zeros(len(numbers), np.int64)
    np.maximum.at(longest, group[ends], batches)
    return {number: most for number, most in zip(numbers.tolist(), longest.tolist(), strict=True) if most}


def _last_fetches(process: Process) -> dict[int, int]:
    """When the last fetch from each iterator ended."""
    fetches = process.marks.only(Kind.FETCH)
    numbers, group = np.unique(fetches.subject, return_inverse=True)
    last = np.full(len(numbers), -LATEST)
    np.maximum.at(last, group, fetches.end)
    return dict(zip(numbers.tolist(), last.tolist(), strict=True))


def _first_bytes(pipeline: Pipeline) -> int | None:
    rows = (row for event in pipeline.weights for row in event["rows"])
    return next((size for number, size in rows if number == 0), None)


def _by_number(events: Iterable[Mapping[str, Any]]) -> dict[int, list[Mapping[str, Any]]]:
    """Events by the iterator that they are of."""
    grouped: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for event in events:
        grouped[event["number"]].append(event)
    return grouped


def roles_from_steps(steps: Iterable[Step]) -> dict[int, str]:
    """`train` or `eval` per iterator number, from the steps that used its rows."""
    rows = StepRows.of(steps)
    subjects, is_eval = rows.marks.subject[rows.fetched], (rows.kind == EVAL)[rows.of_fetch]
    trained = set(np.unique(subjects[~is_eval]).tolist())
    return {number: "train" if number in trained else "eval" for number in np.unique(subjects).tolist()}


def _add_samples(
    process: Process,
    out: RankRows,
    pipeline: Pipeline,
    trees: dict[str, list[minddata.PipelineOp]],
    warnings: list[str],
) -> str:
    """Operators, queue and CPU samples, if there are any; returns what to say in `pipeline.queues`.

    `trees` gets the executed tree of each pipeline key.
    """
    said = str(pipeline.event.get("queues") or "")
    data = None
    if not said:
        data, said = _load_samples(process, pipeline, warnings)
    if data is None:
        return said
    pipeline.is_sampled = True
    trees.setdefault(pipeline.key, data.ops)
    _add_executed(out, pipeline, data.ops)
    active = _active(process, pipeline)
    if pipeline.spacing_ms:
        minddata.thin_out(data, pipeline.spacing_ms * NS_PER_MS)
    for op in data.ops:
        _add_op_samples(out, pipeline.pipeline_id, op, data.times, active)
    return "recorded"


def _add_unsampled(out: RankRows, pipeline: Pipeline, tree: list[minddata.PipelineOp] | None) -> None:
    """Operators of a tree without samples: as another iterator of the same pipeline had them, else as described.

    MindSpore inserts operators and leaves out others (a repeat of 1), so the executed tree numbers them in its own way;
    one pipeline has one numbering, for it is summed over its iterators.
    """
    if tree is not None:
        _add_executed(out, pipeline, tree)
    else:
        _add_described(out, pipeline)
        pipeline.op_ids = {node["node"]: number for number, node in enumerate(pipeline.nodes) if "node" in node}


def _add_executed(out: RankRows, pipeline: Pipeline, ops: Sequence[minddata.PipelineOp]) -> None:
    names = _names(pipeline.nodes, ops)
    pipeline.op_ids = {node["node"]: op_id for op_id, node in names.items() if "node" in node}
    for op in ops:
        node = names.get(op.op_id, {})
        out.add(
            "pipeline_op", pipeline_id=pipeline.pipeline_id, op_id=op.op_id, op_type=op.op_type,
            name=node.get("name") or None, workers=1 if node.get("iterated") else op.workers, capacity=op.capacity,
            is_python=node.get("python"), uses_processes=node.get("processes"), inlined=op.capacity is None,
            **_origin(node),
        )  # fmt: skip
        for child in op.children:
            out.add("pipeline_edge", pipeline_id=pipeline.pipeline_id, producer_id=child, consumer_id=op.op_id)


def _add_op_samples(
    out: RankRows, pipeline_id: int, op: minddata.PipelineOp, times: list[int], active: tuple[int, int]
) -> None:
    period = (times[-1] - times[0]) // max(1, len(times) - 1) if len(times) > 1 else 0
    begin, end = bisect_right(times, active[0]), bisect_right(times, active[1] + period)
    for time_ns, depth in zip(times[begin:end], op.depths[begin:end], strict=False):
        out.add(
            "queue", pipeline_id=pipeline_id, op_id=op.op_id, t_ns=out.at(time_ns), depth=depth, capacity=op.capacity
        )
    for time_ns, (user, system) in zip(times[begin:end], op.cpu[begin:end], strict=False):
        out.add(
            "cpu", t_ns=out.at(time_ns), scope="pipeline_op", pipeline_id=pipeline_id, op_id=op.op_id, user_ratio=user,
            sys_ratio=system,
        )  # fmt: skip


def _active(process: Process, pipeline: Pipeline) -> tuple[int, int]:
    """From the iterator's creation, or the recording's, to its last fetch: samples of an idle tree say nothing."""
    begin = max(int(pipeline.event["begin"]), int(process.about.get("started", 0)))
    return begin, begin if pipeline.last_fetch_ns is None else pipeline.last_fetch_ns


def _load_samples(process: Process, pipeline: Pipeline, warnings: list[str]) -> tuple[minddata.RankFiles | None, str]:
    folder = newest_save(process.folder / f"tree-{pipeline.number}")
    if folder is None:
        return None, "not_recorded: the process ended before the first queue samples were saved"
    try:
        data = minddata.read_folder(folder)
    except SourceError as error:
        process.notes.damaged(str(error))
        return None, "not_recorded: damaged files"
    pipeline.records = data.records
    warnings.extend(f"iterator {pipeline.number}: {note}" for note in data.said())
    if not data.ops:
        return None, "not_recorded: MindSpore wrote no samples"
    if pipeline.nodes and not _same_shape(pipeline.nodes, data.ops):
        return None, "not_attributable: the sampled tree is not this iterator's"
    return data, "recorded"


def newest_save(folder: Path) -> Path | None:
    """A save holds everything so far, so only the newest complete one counts."""
    saves = [path for path in folder.glob("*-*") if _SAVE.fullmatch(path.name)] if folder.is_dir() else []
    return max(saves, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


def _same_shape(nodes: Sequence[Mapping[str, Any]], ops: Sequence[minddata.PipelineOp]) -> bool:
    """Whether the sampled tree has the described sources: optimisation may insert or fuse others, never those.

    Only Python sources are compared by name. What MindSpore calls its other sources is not what their classes are
    called (Cifar10Dataset is read by a CifarOp, TFRecordDataset by a TFReaderOp), so those only have to be as many.
    """
    described = [node["type"] for node in nodes if not node["children"]]
    sampled = [op.op_type for op in ops if not op.children]
    return described.count(PYTHON_SOURCE) == sampled.count(PYTHON_SOURCE) or len(described) != len(sampled)


def _names(nodes: Sequence[dict[str, Any]], ops: Sequence[minddata.PipelineOp]) -> dict[int, dict[str, Any]]:
    """Described node per sampled operator: the k-th of its kind, where both trees have the same number of the kind.

    A kind is a type, or all sources that MindSpore reads by itself: those are not called what their classes are.
    In a chain there may be more than were described: MindSpore puts its own next to the source (such as the map that
    parses the rows of a TFRecord).
    """
    is_chain = all(len(op.children) < 2 for op in ops)
    node_of: dict[int, dict[str, Any]] = {}
    sampled, described = defaultdict(list), defaultdict(list)
    for op in ops:
        sampled[_kind(op.op_type, op.children)].append(op.op_id)
    for node in nodes:
        described[_kind(node["type"], node["children"])].append(node)
    for kind, op_ids in sampled.items():
        if len(op_ids) == len(described[kind]) or (is_chain and len(op_ids) > len(described[kind])):
            node_of.update(zip(op_ids, described[kind], strict=False))
    return node_of


def _kind(op_type: str, children: Sequence[object]) -> str:
    return op_type if children or op_type == PYTHON_SOURCE else "source"


def _add_described(out: RankRows, pipeline: Pipeline) -> None:
    """Operators numbered as described, without capacities."""
    for number, node in enumerate(pipeline.nodes):
        out.add(
            "pipeline_op", pipeline_id=pipeline.pipeline_id, op_id=number, op_type=node["type"],
            name=node.get("name") or None, workers=node.get("workers"), is_python=node.get("python"),
            uses_processes=node.get("processes"), inlined=bool(node.get("inlined")) or node["type"] in INLINED,
            capacity=node.get("capacity"),
            **_origin(node),
        )  # fmt: skip
        if node["parent"] is not None:
            out.add("pipeline_edge", pipeline_id=pipeline.pipeline_id, producer_id=number, consumer_id=node["parent"])


def flatten(graph: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Nodes in pre-order from the sink, each with the index of its consumer."""
    nodes: list[dict[str, Any]] = []
    todo: list[tuple[Mapping[str, Any], int | None]] = [(graph, None)] if graph else []
    while todo:
        node, parent = todo.pop()
        children = node.get("children") or []
        nodes.append({**node, "parent": parent, "children": [child["type"] for child in children]})
        number = len(nodes) - 1
        todo.extend((child, number) for child in reversed(children))
    return nodes


def _key(event: Mapping[str, Any], role: str = "") -> str:
    nodes = flatten(event.get("graph") or {})
    facts = [[node["type"], node.get("name"), node["parent"]] for node in nodes]
    return hashlib.sha256(json.dumps([facts, event.get("site"), role]).encode()).hexdigest()[:12]


def _add_service(process: Process, out: RankRows, pipelines: Mapping[int, Pipeline]) -> None:
    for event in process.all("service"):
        pipeline = pipelines.get(int(event["pipeline"]))
        if pipeline is None:
            continue
        for row in event["ops"]:
            figures = _service_figures(row)
            if figures is None:
                text = f"an impossible timing line of iterator {event['pipeline']} was left out: {row}"
                process.notes.damaged(text)
                continue
            out.add(
                "op_service", pipeline_id=pipeline.pipeline_id, t_ns=out.at(event["t"]), source="log", batches=1,
                **figures,
            )  # fmt: skip


def _service_figures(row: Sequence[str]) -> dict[str, int | None] | None:
    """Columns of op_service from a timing line; None when one of them is no possible number."""
    _, op_id, average, largest, smallest, rows, reading = row
    try:
        figures = {
            "op_id": int(op_id), "avg_ns": ns_from_text(average, "ms"), "max_ns": _optional(largest),
            "min_ns": _optional(smallest), "rows": int(rows), "io_ns": _optional(reading),
        }  # fmt: skip
    except ValueError:
        return None
    return figures if all(value is None or abs(value) <= LATEST for value in figures.values()) else None


def _find_workers(process: Process, out: RankRows, pipelines: Mapping[int, Pipeline]) -> None:
    """Tell the rank's rows whose a worker process is; of several stages that share it the one that computes most."""
    spent: Counter[tuple[int, int]] = Counter()
    for event in process.all("calls"):
        number, node, cpu, calls, timed = map(event.get, ("pipeline", "node", "cpu", "calls", "timed"))
        if number is not None and node is not None and cpu and calls and timed:
            spent[number, node] += cpu * calls // timed
    for event in process.all("workers"):
        number, node = event.get("pipeline"), event.get("node")
        if number is None or node is None or number not in pipelines:
            continue
        pipeline = pipelines[number]
        stages = [one for one in pipeline.nodes if one.get("inlined") and one.get("processes")]
        shared = [(spent[number, own], -own) for one in stages if (own := one.get("node")) is not None]
        if any(-own == node for _, own in shared):
            node = -max(shared)[1]
        op_id = pipeline.op_ids.get(node)
        if op_id is not None:
            out.workers.update((int(pid), (pipeline.pipeline_id, op_id)) for pid in event["pids"])


def _origin(node: Mapping[str, Any]) -> dict[str, Any]:
    """Where an operator comes from, as the columns of pipeline_op."""
    origin = {name: node.get(name) or None for name in ("site", "callers", "code")}
    own = {name: node.get(name) for name in ("node", "iterated", "wrapped")}
    return origin | own | {"source_rows": node.get("rows")}


def _optional(text: str) -> int | None:
    return ns_from_text(text, "ms") if text and text != "/" else None
