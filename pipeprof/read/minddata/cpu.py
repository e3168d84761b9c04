"""minddata_cpu_utilization files: when the samples were taken, CPU of operators, process and host, and memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Any

from pipeprof.read.minddata.files import LARGEST_MS, ratio, read_json, whole_number
from pipeprof.read.source.document import listed, mapping
from pipeprof.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipeprof.read.tables.outcome import Notes

Pair = tuple["float | None", "float | None"]
OTHERS = -1  # op_id of what no operator's thread did
MOST_CORES = 1 << 16  # no machine has more
_MIB = 1 << 20


@dataclass
class CpuFile:
    """Series by sample, as long as the file has them; None where a value is impossible.

    `times` are ns of the monotonic clock. Operators and process in cores, host (user, system, idle) in shares.
    `machine_cores`: logical CPUs of the host; None when the file does not say.
    """

    times: list[int | None]
    ops: dict[int, list[Pair]] = field(default_factory=dict)
    process: list[Pair] = field(default_factory=list)
    host: list[tuple[float | None, float | None, float | None]] = field(default_factory=list)
    rss: list[int | None] = field(default_factory=list)
    used: list[int | None] = field(default_factory=list)
    machine_cores: int | None = None

    def stamped(self) -> list[int]:
        """Positions that have a time."""
        return [index for index, time in enumerate(self.times) if time is not None]


def read_cpu(path: Path, notes: Notes) -> CpuFile:
    """Read a CPU file. Impossible values become None and are counted in `notes`. Raises SourceError as `read_json`."""
    content = read_json(path)
    stamps = [whole_number(stamp, LARGEST_MS) for stamp in listed(content.get("time_stamp"))]
    notes.count(path, "impossible time stamp", stamps.count(None))
    file = CpuFile([None if stamp is None else stamp * NS_PER_MS for stamp in stamps])
    file.machine_cores = whole_number(content.get("cpu_processor_num"), MOST_CORES) or None
    times = [time for time in file.times if time is not None]
    if any(later < earlier for earlier, later in pairwise(times)):
        notes.add("clock", f"time stamps in `{path.name}` go backwards")
    for entry in map(mapping, listed(content.get("op_info"))):
        number = whole_number(entry.get("op_id"))
        if number is None:
            if entry.get("op_id") != OTHERS:
                notes.count(path, "CPU of an operator without an id")
        elif number in file.ops:
            notes.count(path, f"CPU of operator {number} a second time")
        else:
            file.ops[number] = _pairs(path, entry.get("metrics"), f"operator {number}: impossible CPU", notes)
    file.process = _pairs(path, content.get("process_info"), "impossible CPU of the process", notes)
    file.host = _host(path, mapping(content.get("device_info")), len(stamps), notes)
    memory, machine = mapping(content.get("process_memory_info")), mapping(content.get("system_memory_info"))
    file.rss = _bytes(path, memory.get("rss_mbytes"), "impossible resident set", notes)
    file.used = _bytes(path, machine.get("used_sys_memory_mbytes"), "impossible host memory", notes)
    return file


def _pairs(path: Path, metrics: object, what: str, notes: Notes) -> list[Pair]:
    user, system = (_ratios(mapping(metrics).get(name)) for name in ("user_utilization", "sys_utilization"))
    notes.count(path, what, user.count(None) + system.count(None))
    return list(zip(user, system, strict=False))


def _ratios(values: object) -> list[float | None]:
    return [ratio(value) for value in listed(values)]


def _host(
    path: Path, info: Mapping[str, Any], samples: int, notes: Notes
) -> list[tuple[float | None, float | None, float | None]]:
    """Shares of the whole machine by sample.

    MindSpore 2.10 samples twice and every second entry is 0: idle has two entries for each time, user and system end
    in the middle of the run. Idle alone is used then, without the first sample, which has nothing before it.
    """
    idle, user, system = (_ratios(info.get(f"{name}_utilization")) for name in ("idle", "user", "sys"))
    if samples > 1 and len(idle) >= 2 * samples - 1 and not any(idle[1::2]):
        notes.add("host_cpu_half", f"host CPU from half of the samples: every second one in `{path.name}` is 0")
        single = [value if value is None or value <= 1 else None for value in idle[::2]]
        if single[0] == 0:
            single[0] = None
        return [(None, None, value) for value in single]
    impossible = sum(value is None or value > 1 for values in (user, system, idle) for value in values)
    notes.count(path, "impossible CPU of the host", impossible)
    rows = zip_longest(user, system, idle)
    return [tuple(value if value is not None and value <= 1 else None for value in row) for row in rows]  # type: ignore[misc]


def _bytes(path: Path, values: object, what: str, notes: Notes) -> list[int | None]:
    sizes = [
        round(value * _MIB)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < LARGEST_MS
        else None
        for value in listed(values)
    ]
    notes.count(path, what, sizes.count(None))
    return sizes
