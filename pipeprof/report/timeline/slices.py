"""What becomes a slice: stages, steps and their phases, waits for data, operators, collectives and other intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from pipeprof.report.timeline.counters import SIDES
from pipeprof.report.timeline.read import Source, batches, distinct, integers
from pipeprof.report.timeline.text import NONE, Body, Slices, args, body
from pipeprof.report.timeline.tracks import COLLECTIVE, FETCH, PHASES, SETUP, STEPS, TRACK
from pipeprof.report.words.names import INTERVALS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from pipeprof.record.run import Share
    from pipeprof.report.timeline.text import Bodies
    from pipeprof.report.timeline.tracks import Tracks

TABLES = ("stage", "step", "fetch", "op", "span", "collective")
_SHAPES = 160  # characters of shapes that are shown
# Categories by which other programs tell operators from device work; see pipeprof.read.chrome.rows.
_KNOWN = frozenset({"cpu_op", "user_annotation", "python_function", "kernel", "gpu_memcpy", "gpu_memset", "hpu_op"})
_UNNAMED = "(unknown)"
_COLLECTIVE = ("track", "name", "kind", "group_name", "bytes")


class SliceRows:
    """Makes slices of the tables of one rank; one without a time or a duration has NONE for it."""

    def __init__(
        self, files: Callable[[str], Sequence[Share]], tracks: Tracks, bodies: Bodies, names: Callable[[object], str]
    ) -> None:
        self.files, self.tracks, self.bodies = files, tracks, bodies
        self._pipeline = names
        self._ops: dict[tuple[object, ...], Body] = {}
        self._infos: dict[object, dict[str, object]] | None = None

    def sources(self) -> list[Source]:
        """Everything that is a slice. Those of one list share tracks, so they are merged."""
        timed = ("start_ns", "dur_ns")
        steps = ("start_ns", "fp_ns", "bp_ns", "end_ns", "step", "kind", "epoch")
        return [
            Source(self.files("stage"), (*timed, "stage"), self._stages),
            Source(self.files("step"), steps, self._steps),
            Source(self.files("step"), steps, self._phases),
            Source(self.files("fetch"), ("start_ns", "wait_ns", "step", "pipeline_id", "side"), self._fetches),
            Source(self.files("op"), (*timed, "op_id", "step", "track", "side", "exec_id"), self._op_rows),
            Source(self.files("span"), (*timed, "track", "category", "name"), self._spans),
            Source(self.files("collective"), (*timed, *_COLLECTIVE, "step"), self._collectives),
        ]

    def _stages(self, table: pa.Table) -> Slices:
        kinds, keys = distinct(table, ("stage",))
        made = [body("stage", _name(stage)) for (stage,) in keys]
        return self._slices(table, "dur_ns", [(SETUP, "set-up")] * len(made), made, kinds)

    def _steps(self, table: pa.Table) -> Slices:
        kinds, keys = distinct(table, ("kind", "epoch"))
        start = ',"cat":"step","name":"step '
        made = [Body(start, '","args":{' + args(kind=kind, epoch=epoch) + "}}", numbered=True) for kind, epoch in keys]
        dur = pc.subtract(table.column("end_ns"), table.column("start_ns"))
        table = table.append_column("dur_ns", dur)
        return self._slices(table, "dur_ns", [(STEPS, "steps")] * len(made), made, kinds)

    def _phases(self, table: pa.Table) -> Slices:
        """The phases up to FP, up to BP, and the tail; what follows the fetch when BP is not known."""
        both = pc.is_valid(table.column("bp_ns"))
        parts = [
            self._phase(table, INTERVALS["data_wait"], "start_ns", "fp_ns"),
            self._phase(table.filter(both), INTERVALS["forward_backward"], "fp_ns", "bp_ns"),
            self._phase(table.filter(both), INTERVALS["tail"], "bp_ns", "end_ns"),
            self._phase(table.filter(pc.invert(both)), INTERVALS["compute"], "fp_ns", "end_ns"),
        ]
        return Slices.joined(parts)

    def _phase(self, table: pa.Table, name: str, begin: str, end: str) -> Slices:
        table = table.filter(pc.and_(pc.is_valid(table.column(begin)), pc.is_valid(table.column(end))))
        start = integers(table, begin)
        tid, made = self.tracks.number(PHASES, "step phases"), self.bodies.number(body("phase", name, with_step=True))
        same = np.full(len(start), 1, np.int64)
        return Slices(start, integers(table, end) - start, same * tid, same * made, integers(table, "step", NONE), same)

    def _fetches(self, table: pa.Table) -> Slices:
        kinds, keys = distinct(_marked(table), ("pipeline_id", "side", "has_step"))
        made = [
            body("fetch", "wait for a batch", args(pipeline=pipeline), with_step=bool(step))
            for pipeline, _, step in keys
        ]
        return self._slices(table, "wait_ns", [(FETCH, self._source(*key[:2])) for key in keys], made, kinds)

    def _source(self, pipeline: object, side: object) -> str:
        """The track of its waits: the loop's own, and each queue between host and device, apart."""
        of = [] if pipeline is None else [self._pipeline(pipeline)]
        of += [] if side in (None, "iterator") else [SIDES.get(str(side), str(side))]
        return f"data: {' · '.join(of)}" if of else "data"

    def _spans(self, table: pa.Table) -> Slices:
        kinds, keys = distinct(table, ("track", "category", "name"))
        made = [body(str(category or "span"), _name(name)) for _, category, name in keys]
        return self._slices(table, "dur_ns", [(TRACK, _name(track)) for track, _, _ in keys], made, kinds)

    def _collectives(self, table: pa.Table) -> Slices:
        kinds, keys = distinct(_marked(table), (*_COLLECTIVE, "has_step"))
        made = [
            body("collective", _name(name), args(kind=kind, group=group, bytes=moved), with_step=bool(step))
            for _, name, kind, group, moved, step in keys
        ]
        tracks = [(COLLECTIVE, f"collectives: {_name(track)}") for track, *_ in keys]
        return self._slices(table, "dur_ns", tracks, made, kinds)

    def _op_rows(self, table: pa.Table) -> Slices:
        kinds, keys = distinct(_marked(table), ("op_id", "side", "has_step", "track"))
        made = [self._op(*key[:3]) for key in keys]
        return self._slices(table, "dur_ns", [(TRACK, _name(key[3])) for key in keys], made, kinds)

    def _op(self, *key: object) -> Body:
        if key not in self._ops:
            op_id, side, with_step = key
            info = self._info().get(op_id, {})
            name, kind, phase = info.get("name"), info.get("type"), info.get("phase")
            shapes = info.get("in_shapes")
            arguments = args(
                op_id=op_id,
                type=kind if kind != name else None,
                phase=phase if phase != "other" else None,
                in_shapes=None if shapes is None else str(shapes)[:_SHAPES],
            )
            self._ops[key] = body(_category(info, side), _name(name), arguments, with_step=bool(with_step))
        return self._ops[key]

    def _info(self) -> dict[object, dict[str, object]]:
        if self._infos is None:
            columns = ("op_id", "name", "type", "phase", "device", "category", "in_shapes")
            rows = (row for table in batches(self.files("op_info"), columns) for row in table.to_pylist())
            self._infos = {row["op_id"]: row for row in rows}
        return self._infos

    def _slices(
        self,
        table: pa.Table,
        length: str,
        tracks: Sequence[tuple[int, str]],
        made: Sequence[Body],
        kinds: NDArray[np.int64],
    ) -> Slices:
        """One slice per row; `tracks` and `made` by the row's kind."""
        tids = np.array([self.tracks.number(*track) for track in tracks], np.int64)
        numbers = np.array([self.bodies.number(one) for one in made], np.int64)
        number = integers(table, "step", NONE) if "step" in table.column_names else np.full(table.num_rows, NONE)
        start, dur = integers(table, "start_ns", NONE), integers(table, length, NONE)
        order = integers(table, "exec_id") if "exec_id" in table.column_names else np.zeros(table.num_rows, np.int64)
        return Slices(start, dur, tids[kinds], numbers[kinds], number, order)


def _marked(table: pa.Table) -> pa.Table:
    return table.append_column("has_step", pc.is_valid(table.column("step")))


def _name(text: object) -> str:
    return _UNNAMED if text in (None, "") else str(text)


def _category(info: dict[str, object], side: object) -> str:
    """The source's own category where other programs know it, else `kernel` for work of a device, else `cpu_op`."""
    if info.get("category") in _KNOWN:
        return str(info["category"])
    on_device = side == "device" or (side is None and info.get("device") not in (None, "CPU", "host"))
    return "kernel" if on_device else "cpu_op"
