"""Records of rocprofv3's JSON, to the events that the other traces have.

What names kernels, agents and calls stands in front of the records. Names of fields are those of rocprofiler-sdk's
structs `rocprofiler_buffer_tracing_*_record_t`; times are whole ns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pipeprof.errors import SourceError
from pipeprof.read.chrome.container import Batch, TraceFile
from pipeprof.read.chrome.events import Args, Event, us_text
from pipeprof.read.source.content import Content
from pipeprof.read.source.json_stream import Scan, of_list, of_map

TOOL = "rocprofiler-sdk-tool"
GPU = 2  # an agent's type
CALLS = {"hip_api": "hip_api", "rccl_api": "rccl_api", "marker_api": "user_annotation"}
MOST_NAMES = 1_000_000


class _Handle(msgspec.Struct, gc=False):
    handle: int = 0


class _Agent(msgspec.Struct, gc=False):
    id: _Handle
    type: int = 0
    logical_node_type_id: int = 0


class _Symbol(msgspec.Struct, gc=False):
    kernel_id: int
    formatted_kernel_name: str = ""
    kernel_name: str = ""


class _Kind(msgspec.Struct, gc=False):
    kind: str = ""
    operations: list[str] = []


class _Text(msgspec.Struct, gc=False):
    key: int
    value: str


class _Correlation(msgspec.Struct, frozen=True, gc=False):
    internal: int = 0


class _Dispatch(msgspec.Struct, gc=False):
    agent_id: _Handle
    queue_id: _Handle
    kernel_id: int


class _Record(msgspec.Struct, gc=False):
    start_timestamp: int
    end_timestamp: int
    kind: int = 0
    operation: int = 0
    thread_id: int = 0
    correlation_id: _Correlation = _Correlation()
    dispatch_info: _Dispatch | None = None
    src_agent_id: _Handle | None = None
    dst_agent_id: _Handle | None = None
    bytes: int | None = None


_AGENTS, _SYMBOLS, _KINDS, _TEXTS, _RECORDS = map(of_list, (_Agent, _Symbol, _Kind, _Text, _Record))
_ANYTHING = of_map(Any)


class Records(TraceFile):
    """One file of that form."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._gpus: dict[int, int] = {}  # number of an agent's GPU, by its handle
        self._kernels: dict[int, str] = {}
        self._operations: dict[int, list[str]] = {}  # by kind
        self._ranges: dict[int, str] = {}  # texts of roctx, by correlation

    def batches(self) -> Iterator[Batch]:
        """The events. Raises SourceError when the file cannot be opened."""
        with Content(self.path) as file:
            scan = Scan(file, self.path)
            try:
                for key in scan.members():
                    if key == TOOL:
                        for _ in scan.items():
                            yield from self._process(scan)
                    else:
                        scan.skip()
            except SourceError as error:
                self._note(error.message)
            for problem, count in sorted(scan.problems.items()):
                self._note(f"{count} entries that are no records: {problem}", count=count)

    def _process(self, scan: Scan) -> Iterator[Batch]:
        for key in scan.members():
            if key == "buffer_records":
                yield from self._records(scan)
            elif key == "metadata":
                self._metadata(scan)
            elif key == "agents":
                for batch in scan.entries(*_AGENTS):
                    self._gpus |= {agent.id.handle: agent.logical_node_type_id for agent in batch if agent.type == GPU}
            elif key == "kernel_symbols":
                for batch in scan.entries(*_SYMBOLS):
                    names = {symbol.kernel_id: symbol.formatted_kernel_name or symbol.kernel_name for symbol in batch}
                    self._keep(self._kernels, names)
            elif key == "strings":
                self._strings(scan)
            else:
                scan.skip()

    def _metadata(self, scan: Scan) -> None:
        for key in scan.members():
            if key != "node":
                scan.skip()
                continue
            for batch in scan.maps(*_ANYTHING):
                self.header.fields |= {"host_name": batch["hostname"]} if "hostname" in batch else {}

    def _strings(self, scan: Scan) -> None:
        for key in scan.members():
            if key == "buffer_records":
                number = 0
                for batch in scan.entries(*_KINDS):
                    for kind in batch:
                        self._operations[number] = kind.operations
                        number += 1
            elif key == "marker_api":
                for batch in scan.entries(*_TEXTS):
                    self._keep(self._ranges, {text.key: text.value for text in batch})
            else:
                scan.skip()

    def _keep(self, names: dict[int, str], more: Mapping[int, str]) -> None:
        if len(names) + len(more) <= MOST_NAMES:
            names |= more

    def _records(self, scan: Scan) -> Iterator[Batch]:
        make = {"kernel_dispatch": self._kernel, "memory_copy": self._copy}
        for key in scan.members():
            if key not in make and key not in CALLS:
                scan.skip()
                continue
            for batch in scan.entries(*_RECORDS):
                events = [make[key](one) if key in make else self._call(one, CALLS[key]) for one in batch]
                yield Batch([event for event in events if event is not None], b"")

    def _kernel(self, one: _Record) -> Event | None:
        info = one.dispatch_info
        if info is None:
            self._note("a kernel without its dispatch")
            return None
        name = self._kernels.get(info.kernel_id) or f"kernel {info.kernel_id}"
        return self._event(one, "kernel", name, self._gpu(info.agent_id), f"queue {info.queue_id.handle}")

    def _copy(self, one: _Record) -> Event:
        ends = [end for end in (one.dst_agent_id, one.src_agent_id) if end is not None]
        agent = next((end for end in ends if end.handle in self._gpus), _Handle())
        name = self._operation(one).removeprefix("MEMORY_COPY_")
        return self._event(one, "gpu_memcpy", f"Memcpy {name}", self._gpu(agent), "copies", moved=one.bytes)

    def _call(self, one: _Record, category: str) -> Event:
        text = self._ranges.get(one.correlation_id.internal) if category == "user_annotation" else None
        return self._event(one, category, text or self._operation(one), "host", one.thread_id)

    def _operation(self, one: _Record) -> str:
        operations = self._operations.get(one.kind, [])
        return operations[one.operation] if 0 <= one.operation < len(operations) else f"operation {one.operation}"

    def _gpu(self, agent: _Handle) -> str:
        number = self._gpus.get(agent.handle)
        return f"agent {agent.handle}" if number is None else f"GPU {number}"

    @staticmethod
    def _event(one: _Record, category: str, name: str, pid: str, tid: int | str, *, moved: int | None = None) -> Event:
        return Event(
            ph="X", cat=category, name=name, pid=pid, tid=tid, ts=us_text(one.start_timestamp),
            dur=us_text(one.end_timestamp - one.start_timestamp),
            args=Args(correlation=one.correlation_id.internal or None, moved_bytes=moved),
        )  # fmt: skip
