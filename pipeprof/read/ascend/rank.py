"""All files of one rank, in the order in which they explain each other. A damaged one leaves the others alone.

Raw files of MindSpore's CPU profiler (folder FRAMEWORK): executions and launches, and the steps they tell.

Starts are ns since the epoch, durations decimal ms. There are no step numbers. In graph mode every operator runs once
per step, and steps do not overlap: the k-th execution of each is step k. In PyNative nothing tells the steps.
"""

from __future__ import annotations

from itertools import chain, islice, pairwise, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeprof.errors import SourceError
from pipeprof.read.ascend import communication, graph_ops, kernels, msprof, output, raw_trace, step_trace, trace_view
from pipeprof.read.ascend.communication import add_cluster
from pipeprof.read.ascend.out import Out
from pipeprof.read.mindspore_ops import LINE, executions, graph_collective, launches, op_type
from pipeprof.read.source.content import HINT, LONG_LINE, document, mapping
from pipeprof.read.tables.rows import MOST as MOST_OPERATORS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipeprof.read.ascend.trace_view import Names
    from pipeprof.read.tables.share import Outcome, Share
    from pipeprof.record.run import Run

_RAW = ("training_trace", "ts_track")  # a PROF folder has them whether they hold steps or not
_TOTALS = [kind for kind in graph_ops.TOTALS if kind != "op_statistic"]


def read_rank(share: Share, run: Run, progress: Callable[[str], None]) -> Outcome:
    """Read one rank into the run's folder. Raises RunError when it cannot be written; leaves no unfinished file."""
    out = Out(run, share.rank, share.zeros, progress)
    damage: list[SourceError] = []
    facts: dict[str, dict[str, Any]] = {"points": {}, "config": {}}
    with out:
        for number, files in enumerate(share.captures):
            if number:
                out.next_capture()
            read = RankFiles({kind: [Path(path) for path in paths] for kind, paths in files.items()}, out)
            read.read()
            damage += read.damage
            facts = {"points": read.points | facts["points"], "config": read.config | facts["config"]}
        add_cluster(share.rows, out)
    if out.steps.more:
        out.notes.add("steps", "there are too many steps: what belongs to the later ones has no step")
    return out.outcome(damage, steps=out.sources or out.steps.source, facts=facts)


class RankFiles:
    """One rank's files and where they are written to. `damage` has what could not be read, `points` FP and BP."""

    def __init__(self, files: dict[str, list[Path]], out: Out) -> None:
        self.files = files
        self.out = out
        self.damage: list[SourceError] = []
        self.points: dict[str, Any] = {}
        self.config: dict[str, Any] = {}
        self._splits: list[dict[str, Any]] = []
        self._tags: dict[int, str] = {}
        self._names: dict[Path, Names] = {}
        self._clock = msprof.Clock("raw", 0)

    def read(self) -> None:
        """Read everything. Raises nothing for damaged files."""
        self._facts()
        self._steps()
        self._operators()
        self._output()
        self._prof()
        self.out.checks.close()

    def _paths(self, kind: str) -> list[Path]:
        return self.files.get(kind, [])

    def _try(self, read: Callable[..., Any], *given: Any, **named: Any) -> Any:
        try:
            return read(*given, **named)
        except SourceError as error:
            self.damage.append(error)
            return None

    def _each(self, kind: str, read: Callable[..., Any], *given: Any, **named: Any) -> list[Any]:
        """What `read` makes of each file of a kind; None of a damaged one."""
        results = []
        for path in self._paths(kind):
            self.out.progress(f"rank {self.out.rank}: {path.name}")
            results.append(self._try(read, path, *given, **named))
        return results

    def _facts(self) -> None:
        """What other files need: FP and BP, parameters, descriptions of operators, the clock of a PROF folder."""
        out = self.out
        for kind, name in (("profiler_info", None), ("profiler_metadata", "metadata"), ("flops_summary", "flops")):
            for said in self._each(kind, document):
                self._note_config(name, mapping(said))
        for said in self._each("device_info", document):
            devices = mapping(said).get("DeviceInfo")
            self._note_config("device", mapping(devices[0]) if isinstance(devices, list) and devices else {})
        for path in self._paths("cluster_analyse")[:1]:
            self._note_config("parallel", communication.parallelism(path))
        for points in self._each("point_info", document):
            one = points[0] if isinstance(points, list) and points else points
            self.points |= {name: value for name, value in mapping(one).items() if isinstance(value, str)}
        self._tags = self._try(raw_trace.point_names, self._paths("point")) or {}
        named = {"fp_start": self._tags.get(raw_trace.FP), "bp_end": self._tags.get(raw_trace.BP)}
        self.points = {name: value for name, value in named.items() if value} | self.points
        self._each("framework", graph_ops.read_framework, out)
        self._each("flops", graph_ops.read_flops, out)
        self._each("graph_desc", graph_ops.read_descriptions, out)
        for path in self._paths("start_info"):
            self._clock = self._try(msprof.read_clock, path) or self._clock

    def _note_config(self, name: str | None, said: dict[str, Any]) -> None:
        """What a profiler said of itself: its parameters, or all short values where these are not apart."""
        own = mapping(said.get("config")) or mapping(said.get("profiler_parameters"))
        parameters = own or {key: value for key, value in said.items() if name or not isinstance(value, (dict, list))}
        if name is None:
            self.config |= parameters
        elif parameters:
            self.config[name] = parameters

    def _steps(self) -> None:
        """The steps, from the first kind of file that has some; the others must not add theirs."""
        out = self.out
        for path in self._paths("trace_view"):
            self._names[path] = trace_view.names_of(path)
        sources: list[tuple[str, Callable[[], None]]] = [
            ("step_trace", self._step_trace),
            ("training_trace", lambda: raw_trace.read_training_trace(self._paths("training_trace"), self._tags, out)),
            ("gpu_steps", self._gpu_steps),
            ("ts_track", lambda: raw_trace.read_ts_track(self._paths("ts_track"), out)),
            ("step_events", lambda: msprof.read_steps(self._paths("step_events"), out, self._clock)),
        ]
        for kind, read in sources:
            paths = self._paths(kind)
            if paths and len(out.steps):
                out.notes.add("two_step_sources", f"`{paths[0].name}` was left out: the steps are from another file")
            elif paths:
                self._try(self._read_steps, kind, read)
        for path in self._paths("cluster_steps"):
            out.notes.add(
                "left_out", f"`{path.name}` was left out: its phases are those of the step trace, without times"
            )
        if not len(out.steps):
            for names in self._names.values():
                trace_view.add_steps(names, out)

    def _read_steps(self, kind: str, read: Callable[[], None]) -> None:
        """What the device wrote has no steps where operators are called one by one: beside other files no damage."""
        try:
            read()
        except step_trace.NoStepError as error:
            if kind not in _RAW or len(self.files) == 1:
                raise
            self.out.notes.add("no_steps", error.message)

    def _step_trace(self) -> None:
        path = self._paths("step_trace")[0]
        step_trace.add_steps(path, step_trace.read_steps(path, self.out), self.out)

    def _gpu_steps(self) -> None:
        self.points = step_trace.read_gpu_steps(self._paths("gpu_steps")[0], self.out) | self.points

    def _operators(self) -> None:
        out = self.out
        stated = {kind: self._each(kind, graph_ops.read_totals, kind, out) for kind in _TOTALS}
        self._each("timeline", graph_ops.read_timeline, out)
        if self._paths("aicpu"):
            self._each("aicpu", graph_ops.read_aicpu, graph_ops.aicpu_rows, out)
        else:
            self._each("aicpu_log", graph_ops.read_aicpu, graph_ops.aicpu_records, out)
        self._each("hccl_raw", communication.read_hccl, out)
        self._each("cluster_analyse", communication.read_cluster_analyse, out)
        launches = next(iter(self._paths("cpu_launch")), None)
        wanted = not len(out.steps)
        seen = self._each("cpu_exec", read_executions, launches, out, steps=wanted)
        for path, totals in zip(self._paths("cpu_detail"), stated["cpu_detail"], strict=True):
            if totals and seen and seen[0]:
                output.check_cpu_totals(path, totals, seen[0], out)
        self._each("gpu_exec", read_executions, None, out, steps=False, device="GPU", unit="us")
        self._each("dynamic_shape", graph_ops.read_dynamic_shapes, out)
        self._each("cpu_memory", output.read_cpu_memory, out)

    def _output(self) -> None:
        """ASCEND_PROFILER_OUTPUT."""
        out = self.out
        for rows in self._each("step_trace_time", output.read_step_split, out):
            self._splits += rows or []
        totals: kernels.Totals = {}
        read = self._each("kernel_details", kernels.read_kernels, out, totals)  # in several pieces when it is long
        for path in self._paths("op_statistic"):
            stated = self._try(graph_ops.read_totals, path, "op_statistic", out)
            if stated is not None and read and all(read):
                output.check_statistic(path, stated, totals, out)
        self._each("communication", communication.read_operators, communication.costs, out)
        self._each("communication_matrix", communication.read_operators, communication.links, out)
        self._each("operator_details", output.read_operator_details, out)
        self._each("memory_record", output.read_memory_record, out)
        self._each("operator_memory", output.read_operator_memory, out)
        self._each("trace_view", self._trace)

    def _trace(self, path: Path) -> None:
        out = self.out
        trace_view.add_fetches(self._names[path], out)
        wanted = {"ops": not out.has("op"), "collectives": not out.has("collective")}
        sums = trace_view.read_trace(path, self._names[path], out, **wanted)
        output.check_overlap(path, sums, self._splits, out)

    def _prof(self) -> None:
        """Folder PROF_*."""
        out, clock = self.out, self._clock
        if not self.out.has("op"):
            self._each("task_events", msprof.read_tasks, out, clock)
        wanted = not self.out.has("collective")
        if self._paths("trace_view"):  # has both
            return
        self._each("hccl_events", msprof.read_communication, out, clock, collectives=wanted)
        self._each("merged_events", msprof.read_host, out, clock)


CLOCK = "epoch"
MOST = 1_000_000  # executions that are put in order


class Execution(NamedTuple):
    """One execution; `item` is its position in its operator's line."""

    start_ns: int
    dur_ns: int
    name: str
    item: int


def read_executions(
    path: Path, launch_list: Path | None, out: Out, *, steps: bool, device: str = "CPU",
    unit: str = "ms",
) -> dict[str, list[int]]:  # fmt: skip
    """Executions of one rank, with types and shapes from the launch list; steps too, where they are wanted and told.

    `unit`: of their durations. Returns (count, total in ns) by name, for the check.
    """
    rest = _executions(path, unit, out)
    recorded = sorted(islice(rest, MOST))
    if not recorded:
        raise SourceError(f"no execution in `{path}`, expected lines `name;HostCpuOps;start,duration,flag ...`", HINT)
    whole_file = len(recorded) < MOST
    windows = _windows(recorded) if whole_file else []
    if not whole_file:
        out.notes.add("steps", f"`{path.name}`: steps are not known: more than {MOST:,} executions are too many")
    elif steps and windows:
        _add_steps(recorded, windows, out)
    elif steps:
        out.notes.add("steps", f"`{path.name}`: operators run several times per step (PyNative): steps cannot be found")
    described = chain(_launches(launch_list if whole_file else None, recorded, out), repeat((None, None)))
    sums: dict[str, list[int]] = {}
    for execution, (stated, shapes) in zip(chain(recorded, rest), described, strict=False):
        step = out.steps.position(execution.item) if steps and windows else out.steps.at(execution.start_ns, CLOCK)
        _add(execution, stated or op_type(execution.name), shapes, step, device, out)
        if execution.name in sums or len(sums) < MOST_OPERATORS:
            entry = sums.setdefault(execution.name, [0, 0])
            entry[0] += 1
            entry[1] += execution.dur_ns
    return sums


def _add(execution: Execution, kind: str, shapes: str | None, step: int | None, device: str, out: Out) -> None:
    start = out.at(execution.start_ns, CLOCK)
    out.at(execution.start_ns + execution.dur_ns, CLOCK)
    out.add(
        "op", op_id=out.operator(execution.name, kind, device, shapes), step=step, start_ns=start,
        dur_ns=execution.dur_ns, self_ns=execution.dur_ns, track=device,
    )  # fmt: skip
    if communication := graph_collective(kind):
        out.add(
            "collective", step=step, name=execution.name, kind=communication, track=device, start_ns=start,
            dur_ns=execution.dur_ns,
        )  # fmt: skip


def _executions(path: Path, unit: str, out: Out) -> Iterator[Execution]:
    def count(number: int, _text: str, expected: str) -> None:
        if expected == LINE:
            out.odd(path, "line that is not `name;HostCpuOps;...`", f"line {number}")
        else:
            out.notes.count(path, "execution without a start and a duration")

    return map(Execution._make, executions(path, unit, count))


def _windows(recorded: list[Execution]) -> list[tuple[int, int]]:
    """(first start, last end) of each step; empty when executions do not fall into steps."""
    counts: dict[str, int] = {}
    for execution in recorded:
        counts[execution.name] = max(counts.get(execution.name, 0), execution.item + 1)
    if len(set(counts.values())) != 1 or len(counts) < 2:
        return []
    length = next(iter(counts.values()))
    windows = [(1 << 62, 0)] * length
    for execution in recorded:
        start, end = windows[execution.item]
        windows[execution.item] = min(start, execution.start_ns), max(end, execution.start_ns + execution.dur_ns)
    ordered = all(one[1] <= other[0] for one, other in pairwise(windows))
    return windows if ordered else []


def _add_steps(recorded: list[Execution], windows: list[tuple[int, int]], out: Out) -> None:
    """A step begins where the one before ended, the first with its first operator."""
    out.steps.source = "cpu_exec"
    forward: dict[int, int] = {}
    backward: dict[int, int] = {}
    for execution in recorded:
        if execution.name.startswith("Gradients/"):
            end = execution.start_ns + execution.dur_ns
            backward[execution.item] = max(backward.get(execution.item, 0), end)
        elif _is_forward(execution.name):
            forward.setdefault(execution.item, execution.start_ns)
    previous = windows[0][0]
    for number, (_, end) in enumerate(windows):
        fp, bp = forward.get(number), backward.get(number)
        fp = max(fp, previous) if fp is not None else None
        bp = bp if fp is not None and bp is not None and bp >= fp else None
        out.add_step(number, (previous, fp, bp, end), CLOCK, in_window=True)
        previous = end


def _is_forward(name: str) -> bool:
    if not name.startswith("Default/") or "optimizer" in name or "grad_reducer-" in name:
        return False
    return graph_collective(op_type(name)) is None and not op_type(name).startswith(("Assign", "Apply"))


def _launches(
    path: Path | None, recorded: list[Execution], out: Out
) -> Iterator[tuple[str | None, str | None]]:  # fmt: skip
    """(type, shapes) per execution in time order, joined by position; nothing known when the lists do not match."""
    if path is None or not _match(path, recorded, out):
        yield from repeat((None, None))
        return
    for kind, _, shapes in launches(path, LONG_LINE):
        yield kind, shapes


def _match(path: Path, recorded: list[Execution], out: Out) -> bool:
    """Whether there are as many launches as executions, of the same operators where the launch has a name."""
    count = 0
    for count, (_, name, _) in enumerate(launches(path, LONG_LINE), 1):
        if name is not None and count <= len(recorded) and name != recorded[count - 1].name.rpartition("/")[2]:
            return False
    shown = f"{len(recorded)} executions"
    return out.checks.that(count == len(recorded), path, count, "as many launches as executions", shown)
