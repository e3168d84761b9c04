"""The planes of an XSpace, to the events that the other traces have.

The numbers of fields are those of tsl/profiler/protobuf/xplane.proto, the form of values protobuf's wire format. A
plane has the names of its events behind them, so that it is held as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pipeprof.errors import SourceError
from pipeprof.read.chrome.container import CHUNK, Batch, TraceFile
from pipeprof.read.chrome.dialect import DEVICE_PROCESS, STEP
from pipeprof.read.chrome.events import Args, Event, us_text
from pipeprof.read.source.content import Content
from pipeprof.read.source.wire import BAD, BYTES, fields, signed, varint

LARGEST = 1 << 30  # bytes of a file
HOST = "/host:CPU"
_PLANE, _HOSTNAME = 1, 4  # of an XSpace
_NAME, _LINE, _EVENT_NAMES, _STAT_NAMES = 2, 3, 4, 5  # of an XPlane
_LINE_ID, _LINE_NAME, _LINE_START, _EVENT, _LINE_SHOWN = 1, 2, 3, 4, 11  # of an XLine
_META, _OFFSET, _DURATION, _STAT = 1, 2, 3, 4  # of an XEvent
_VALUES = (3, 4)  # of an XStat: uint64 and int64
_SHOWN = 4  # of an XEventMetadata: a shorter name than that of field 2
_BATCH = 20_000


class _Names(NamedTuple):
    """Of a plane: names of events and of their stats, by number."""

    events: dict[int, str]
    stats: dict[int, str]


def is_space(head: bytes) -> bool:
    """Whether a file begins as an XSpace: with a plane whose name is a path, or what the task ran in."""
    try:
        tag, at = varint(head, 0)
        _, at = varint(head, at)
        while tag == _PLANE << 3 | BYTES:
            key, at = varint(head, at)
            value, at = varint(head, at)
            if key == _NAME << 3 | BYTES:
                return head[at : at + value].startswith((b"/host:", b"/device:", b"Task Environment", b"#Chip"))
            if key != 1 << 3:
                return False
    except BAD:
        pass
    return False


class Space(TraceFile):
    """One file of that form."""

    def batches(self) -> Iterator[Batch]:
        """The events. Raises SourceError when the file cannot be opened, or is larger than LARGEST."""
        data = self._whole()
        part = 1
        try:
            for field, value in fields(data):
                part += 1
                if field == _HOSTNAME and isinstance(value, bytes):
                    self.header.fields.setdefault("host_name", _text(value))
                elif field == _PLANE and isinstance(value, bytes):
                    yield from self._plane(value)
        except BAD:
            self._note(f"the file is damaged, or ends too early, in its part {part}")

    def _whole(self) -> bytes:
        """The file, up to where it is damaged."""
        parts, size = [], 0
        with Content(self.path) as file:
            while part := self._read(file, CHUNK):
                parts.append(part)
                size += len(part)
                if size > LARGEST:
                    raise SourceError(
                        f"`{self.path}` is larger than {LARGEST >> 20} MiB",
                        "profile fewer steps, or import its trace.json.gz",
                    )
        return b"".join(parts)

    def _plane(self, data: bytes) -> Iterator[Batch]:
        """The events of a plane of the host or of a device; others hold programs and settings."""
        lines: list[bytes] = []
        names = _Names({}, {})
        plane = ""
        for field, value in fields(data):
            if field == _NAME and isinstance(value, bytes):
                plane = _text(value)
            elif field == _LINE and isinstance(value, bytes):
                lines.append(value)
            elif field in (_EVENT_NAMES, _STAT_NAMES) and isinstance(value, bytes):
                _name(names.events if field == _EVENT_NAMES else names.stats, value)
        if plane == HOST or plane.startswith(DEVICE_PROCESS):
            yield Batch([Event(ph="M", name="process_name", pid=plane, args=Args(name=plane))], b"")
            for number, line in enumerate(lines):
                yield from _line(line, number, plane, names)


def _line(data: bytes, number: int, plane: str, names: _Names) -> Iterator[Batch]:
    """The events of a thread of the host, or of a line of a device."""
    about: dict[int, int | bytes] = {}
    found: list[bytes] = []
    for field, value in fields(data):
        if field == _EVENT and isinstance(value, bytes):
            found.append(value)
        else:
            about[field] = value
    shown = about.get(_LINE_SHOWN) or about.get(_LINE_NAME) or b""
    start = about.get(_LINE_START, 0)
    if not isinstance(shown, bytes) or not isinstance(start, int):
        raise ValueError  # noqa: TRY004 - it is the file that is damaged
    yield Batch([Event(ph="M", name="thread_name", pid=plane, tid=number, args=Args(name=_text(shown)))], b"")
    for at in range(0, len(found), _BATCH):
        events = [_event(one, signed(start) * 1000, plane, names) for one in found[at : at + _BATCH]]
        for event in events:
            event.tid = number
        yield Batch(events, b"")


def _event(data: bytes, start_ps: int, plane: str, names: _Names) -> Event:
    """An event; those of the host that are no operator of XLA have a category that says so."""
    about: dict[int, int] = {}
    stats: dict[str, int] = {}
    for field, value in fields(data):
        if field == _STAT and isinstance(value, bytes):
            stat = dict(fields(value))
            number = stat.get(_META)
            known = next((one for kind in _VALUES if isinstance(one := stat.get(kind), int)), 0)
            stats[names.stats.get(number, "") if isinstance(number, int) else ""] = known
        elif isinstance(value, int):
            about[field] = value
    begin = start_ps + signed(about.get(_OFFSET, 0))
    end = begin + signed(about.get(_DURATION, 0))
    name = names.events.get(about.get(_META, 0), "")
    category: str | None = None
    if plane == HOST:
        category = "xla_op" if "hlo_op" in stats else "python_function" if name.startswith("$") else "user_annotation"
        if "step_num" in stats:
            name = f"{STEP}{stats['step_num']}"
    return Event(
        ph="X" if end > begin else "i", cat=category, name=name.removeprefix("$"), pid=plane, ts=us_text(begin // 1000),
        dur=us_text(end // 1000 - begin // 1000),
    )  # fmt: skip


def _name(names: dict[int, str], entry: bytes) -> None:
    """Take in an entry of a map of names: number, and a message with the name."""
    pair = dict(fields(entry))
    number, about = pair.get(1, 0), pair.get(2)
    if isinstance(number, int) and isinstance(about, bytes):
        names_of = dict(fields(about))
        name = names_of.get(_SHOWN) or names_of.get(2) or b""
        names[number] = _text(name) if isinstance(name, bytes) else ""


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
