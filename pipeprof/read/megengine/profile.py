"""MegEngine's static-graph profile: `load_and_run --profile`, `trace(profiling=True).get_profile()`, to columns.

The file has two objects: `profiler` (device, host: operator -> place -> start, kern, end in seconds; opr_footprint) and
`graph_exec` (comp_seq, operator, var, mem_chunk), in any order. Source of the format: the writers in MegEngine's
`imperative/src/impl/profiler` and `src/plugin/impl/opr_footprint.cpp` (2024), and its v1.0 Python profiler.
"""

from __future__ import annotations

import math
from array import array
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from pipeprof.errors import SourceError
from pipeprof.read.source.content import Content
from pipeprof.read.source.json_stream import Scan, of_list, of_map, without_collector
from pipeprof.record.document import BAD_JSON

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from numpy.typing import NDArray

    from pipeprof.read.source.numbers import Ints

UNKNOWN = -1
_WORDS_AT_MOST = 255


class Side:
    """Executions on the device's or on the host's side: operator number, computing node, and seconds, in file order."""

    def __init__(self) -> None:
        self.op = array("q")
        self.comp_node = array("q")
        self.times = array("d")  # start, kern, end of each


class Texts:
    """Texts end to end: there may be 200,000."""

    def __init__(self) -> None:
        self.bytes = bytearray()
        self.end = array("i")

    def add(self, texts: list[bytes]) -> None:
        """Put texts behind those that are there; `bytes` must not get longer than an `end` can say."""
        self.end.extend(accumulate(map(len, texts), initial=len(self.bytes)))
        del self.end[-len(texts) - 1]
        self.bytes += b"".join(texts)

    def __getitem__(self, number: int) -> bytes:
        return bytes(self.bytes[self.end[number - 1] if number else 0 : self.end[number]])


class Operators:
    """The operator object in file order."""

    def __init__(self) -> None:
        self.op = array("q")
        self.name = Texts()
        self.types: dict[str, int] = {}
        self.type = array("q")
        self.inputs = bytearray()  # ids of variables as text, each with a comma behind it
        self.inputs_count = array("q")
        self.outputs = bytearray()  # as `inputs`
        self.outputs_count = array("q")
        self.waiting = Texts()  # what each waits for on other devices, as JSON


class VariableWords:
    """A word about each variable, such as its type. Ids are small numbers in a real file; others count as unknown."""

    def __init__(self) -> None:
        self.codes = {"": 0}  # the first stands for a variable without one
        self.code: NDArray[np.uint8] = np.zeros(0, np.uint8)  # by id

    def add(self, ids: Ints, words: Iterable[str | None]) -> None:
        """Note the word of each; UNKNOWN ids, None, and words past the 255th are left out."""
        codes = np.array(
            [UNKNOWN if word is None else self.codes.setdefault(word, len(self.codes)) for word in words], np.int64
        )
        usable = (ids != UNKNOWN) & (codes != UNKNOWN) & (codes <= _WORDS_AT_MOST)
        ids, codes = ids[usable], codes[usable]
        if not len(ids):
            return
        least = int(ids.max()) + 1
        if least > len(self.code):
            grown = np.zeros(max(least, 2 * len(self.code)), np.uint8)
            grown[: len(self.code)] = self.code
            self.code = grown
        self.code[ids] = codes


class Profile:
    """What a file holds. Operators are numbered by first appearance; `number` maps their ids to those numbers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number: dict[str, int] = {}
        self.order: list[int] = []
        self.places: dict[str, int] = {}
        self.device = Side()
        self.host = Side()
        self.operators = Operators()
        self.dtypes = VariableWords()
        self.flags = VariableWords()  # each a list as JSON
        self.ended = (array("q"), array("q"))  # variables, and where the memory that each had before ends
        self.texts: dict[bytes, int] = {}
        self.footprint_op = array("q")
        # computation, memory; texts: in_shapes, out_shapes, in_layouts; object
        self.footprint = [array("q") for _ in range(6)]
        self.objects: dict[bytes, int] = {}  # parameters as JSON
        self.chunk_bytes, self.chunk_address, self.chunk_owner = array("q"), array("q"), array("q")
        self.compat = False
        self.damage: SourceError | None = None
        self.problems: dict[str, int] = {}

    def op_numbers(self, keys: Iterable[str]) -> list[int]:
        """The numbers of operators' ids."""
        number = self.number
        return [number.setdefault(key, len(number)) for key in keys]

    def object_number(self, raw: bytes) -> int:
        """The number of an object as JSON, the same for the same text; UNKNOWN for null and an empty one."""
        if raw == b"null" or not raw.strip(b"{} \t\r\n"):
            return UNKNOWN
        return self.objects.setdefault(raw, len(self.objects))

    @property
    def measured(self) -> bool:
        """Whether any operator has a time."""
        return bool(len(self.device.op) or len(self.host.op))


_NAN = math.nan
_MOST = 2**63 - 1
_NO_SHAPES = msgspec.Raw(b"[]")
_NULL = msgspec.Raw(b"null")
_IDS_AT_MOST = 1 << 26
_NOT_IDS = b'[]" \t\r\n'
_NO_FLAGS, _LONGEST_FLAGS = len("[]"), 256  # letters of a variable's flags as JSON
_OBJECT_AT_MOST = 1 << 16  # bytes of the parameters of one operator
_TEXT_AT_MOST = 2**31 - 1  # bytes of all names


class _Times(msgspec.Struct, gc=False):
    """Seconds. What is not finite is a text as it is written: "nan" and "inf"."""

    start: float | str | None = None
    kern: float | str | None = None
    end: float | str | None = None


class _Footprint(msgspec.Struct, gc=False):
    computation: int | float | str | None = None
    memory: int | float | str | None = None
    in_shapes: msgspec.Raw = _NO_SHAPES
    out_shapes: msgspec.Raw = _NO_SHAPES
    in_layouts: msgspec.Raw = _NULL
    param: msgspec.Raw = _NULL
    params: msgspec.Raw = _NULL  # the same, in 1.0 to 1.2


class _Operator(msgspec.Struct, gc=False):
    name: str = ""
    type: str = ""
    input: msgspec.Raw = _NO_SHAPES
    output: msgspec.Raw = _NO_SHAPES
    waiting_spec: msgspec.Raw = _NULL


class _Layout(msgspec.Struct, gc=False):
    dtype: str | None = None


class _Plan(msgspec.Struct, gc=False):
    layout: _Layout | None = None


class _Var(msgspec.Struct, gc=False):
    mem_plan: _Plan | None = None
    flag: msgspec.Raw = _NO_SHAPES
    prev_dev_ptr_end: int | float | str | None = None


class _Chunk(msgspec.Struct, gc=False):
    size: int | float | str | None = None
    owner_var: int | float | str | None = None
    dev_ptr: int | float | str | None = None


_TIMES, _FOOTPRINT, _OPERATOR, _VAR, _CHUNK = map(of_map, (dict[str, _Times], _Footprint, _Operator, _Var, _Chunk))
_VAR_LIST, _IDS = of_list(_Var), of_list(str | int)
_shapes = msgspec.json.Decoder(list[list[int] | None])


def read_profile(path: Path) -> Profile:
    """Read a profile, in bounded memory.

    A file that is damaged or ends too early gives what was read until then, with `damage` set; raises SourceError when
    that holds no operator's time, and for a file without times (a footprint dump).
    """
    profile = Profile(path)
    with Content(path) as file, without_collector():
        scan = Scan(file, path)
        try:
            _section(scan, profile)
            if not scan.at_end():
                profile.damage = SourceError(f"`{path}` goes on after its end", "is it several files in one?")
        except SourceError as error:
            profile.damage = error
        profile.problems = scan.problems
    if not profile.measured:
        raise profile.damage or SourceError(
            f"no operator has a time in `{path}`",
            "record it with `load_and_run --profile FILE` or trace(profiling=True)",
        )
    return profile


def _section(scan: Scan, profile: Profile) -> None:
    for key in scan.members():
        if key in ("profiler", "graph_exec") and scan.peek() == b"{":
            _section(scan, profile)
        elif key in _READ:
            _READ[key](scan, profile)
        else:
            scan.skip()


def _read_side(scan: Scan, profile: Profile, name: str) -> None:
    side = Side()  # of a key that comes twice, the last counts
    setattr(profile, name, side)
    places = profile.places
    for operators in scan.maps(*_TIMES):
        ops = zip(profile.op_numbers(operators), operators.values(), strict=True)
        rows = [(op, comp_node, times) for op, here in ops for comp_node, times in here.items()]
        side.op.extend([op for op, _, _ in rows])
        side.comp_node.extend([places.setdefault(comp_node, len(places)) for _, comp_node, _ in rows])
        values = [value for _, _, times in rows for value in (times.start, times.kern, times.end)]
        side.times.extend([value if value.__class__ is float else _NAN for value in values])


def _read_footprints(scan: Scan, profile: Profile) -> None:
    texts = profile.texts
    for batch in scan.maps(*_FOOTPRINT):
        footprints = list(batch.values())
        profile.footprint_op.extend(profile.op_numbers(batch))
        amounts = [
            [value if value.__class__ is int and 0 <= value <= _MOST else _count(value) for value in column]
            for column in ([one.computation for one in footprints], [one.memory for one in footprints])
        ]
        shapes = [
            [UNKNOWN if text == b"null" else texts.setdefault(text, len(texts)) for text in map(bytes, column)]
            for column in (
                [one.in_shapes for one in footprints],
                [one.out_shapes for one in footprints],
                [one.in_layouts for one in footprints],
            )
        ]
        params = [profile.object_number(bytes(one.params if one.param is _NULL else one.param)) for one in footprints]
        for column, values in zip(profile.footprint, (*amounts, *shapes, params), strict=True):
            column.extend(values)


def _read_operators(scan: Scan, profile: Profile) -> None:
    profile.operators = columns = Operators()
    types = columns.types
    for batch in scan.maps(*_OPERATOR):
        operators = list(batch.values())
        columns.op.extend(profile.op_numbers(batch))
        columns.name.add([one.name.encode() for one in operators])
        columns.type.extend([types.setdefault(one.type, len(types)) for one in operators])
        columns.inputs += _ids([bytes(one.input) for one in operators], columns.inputs_count)
        columns.waiting.add([bytes(one.waiting_spec) for one in operators])
        columns.outputs += _ids([bytes(one.output) for one in operators], columns.outputs_count)
        if max(len(columns.name.bytes), len(columns.waiting.bytes)) > _TEXT_AT_MOST:
            raise SourceError(f"more than 2 GiB of names in `{profile.path}`", "it is damaged")


def _ids(lists: Iterable[bytes], counts: array[int]) -> bytes:
    """Ids of variables out of lists as JSON, each with a comma behind it; `counts` is told how many each list has."""
    ids = [text.translate(None, _NOT_IDS) for text in lists]
    counts.extend([text.count(b",") + 1 if text else 0 for text in ids])
    return b",".join([*filter(None, ids), b""])


def _var_id(value: float | str | None) -> int:
    if isinstance(value, float) or value is None:
        return UNKNOWN
    try:
        number = int(value)
    except ValueError:
        return UNKNOWN
    return number if 0 <= number < _IDS_AT_MOST else UNKNOWN


def _var_ids(keys: Iterable[str]) -> Ints:
    """As `_var_id`, of many at once."""
    keys = list(keys)
    try:
        ids = np.fromiter(map(int, keys), np.int64, len(keys))
    except (ValueError, OverflowError):  # one of them is none
        return np.array(list(map(_var_id, keys)), np.int64)
    return np.where((ids >= 0) & (ids < _IDS_AT_MOST), ids, UNKNOWN)


def _read_vars(scan: Scan, profile: Profile) -> None:
    profile.compat = scan.peek() == b"["
    profile.dtypes, profile.flags, profile.ended = VariableWords(), VariableWords(), (array("q"), array("q"))
    position = 0
    for batch in scan.entries(*(_VAR_LIST if profile.compat else _VAR)):
        if isinstance(batch, list):
            ids, variables = np.arange(position, position + len(batch)), batch
        else:
            ids, variables = _var_ids(batch), list(batch.values())
        position += len(batch)
        plans = [one.mem_plan for one in variables]
        profile.dtypes.add(ids, [None if one is None or one.layout is None else one.layout.dtype for one in plans])
        flags = map(bytes, [one.flag for one in variables])
        profile.flags.add(ids, [text.decode() if _NO_FLAGS < len(text) <= _LONGEST_FLAGS else None for text in flags])
        ends = np.array([_count(one.prev_dev_ptr_end) for one in variables], np.int64)
        for column, values in zip(profile.ended, (ids, ends), strict=True):
            column.extend(values[ends != UNKNOWN].tolist())


def _read_chunks(scan: Scan, profile: Profile) -> None:
    """Blocks of memory that are planned before the graph runs: they have an address and a size, and no times."""
    for batch in scan.maps(*_CHUNK):
        chunks = list(batch.values())
        profile.chunk_bytes.extend([_count(one.size) for one in chunks])
        profile.chunk_address.extend([_count(one.dev_ptr) for one in chunks])
        profile.chunk_owner.extend([_var_id(one.owner_var) for one in chunks])


def _read_sequence(scan: Scan, profile: Profile) -> None:
    profile.order = []
    for batch in scan.entries(*_IDS):
        if isinstance(batch, list):
            profile.order += profile.op_numbers(map(str, batch))


def _count(value: float | str | None) -> int:
    """A number of operations or bytes; UNKNOWN for null, text, and what is no such number."""
    if value.__class__ is int and 0 <= value <= _MOST:
        return value
    if isinstance(value, float) and math.isfinite(value) and 0 <= value < _MOST:
        return int(value)
    return UNKNOWN


def object_text(raw: bytes) -> str | None:
    """An object as compact JSON, such as `{"stride_h":2}`; None for an empty or very large one, and something else."""
    try:
        content = msgspec.json.decode(raw, type=dict[str, Any])
        text = msgspec.json.encode(content).decode()
    except BAD_JSON:
        return None
    return text if content and len(text) <= _OBJECT_AT_MOST else None


def shape_text(raw: bytes) -> str | None:
    """Shapes or strides as compact JSON, such as `[[1,3,224,224],[64,3,7,7]]`; None when they are something else."""
    try:
        return msgspec.json.encode(_shapes.decode(raw)).decode()
    except BAD_JSON:
        return None


_READ: dict[str, Callable[[Scan, Profile], None]] = {
    "device": partial(_read_side, name="device"),
    "host": partial(_read_side, name="host"),
    "opr_footprint": _read_footprints,
    "operator": _read_operators,
    "var": _read_vars,
    "comp_seq": _read_sequence,
    "mem_chunk": _read_chunks,
}
