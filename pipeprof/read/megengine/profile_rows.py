"""A static-graph profile to rows of `op` and `op_info`, in pieces: such a profile may have 200,000 operators."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from pipeprof.read.megengine.profile import UNKNOWN, Profile, Side, VariableWords, object_text, shape_text
from pipeprof.read.tables.writer import numbers as integers
from pipeprof.read.tables.writer import pick
from pipeprof.read.tables.writer import strings as texts

Columns = dict[str, pa.Array]
PIECE = 1 << 14  # rows
_NS = 1e9
_LARGEST_NS = 2.0**62
_NO_ID = re.compile(rb"[0-9]{19}|,,|\A,")
_NODE = re.compile(r'CompNode\("([^"]*)" from "[^"]*"\)')


class Tables:
    """Makes `op`, then `op_info`, of a profile; `problems` is what could not be kept (text for people, how often)."""

    def __init__(self, profile: Profile) -> None:
        self.problems: dict[str, int] = {}
        self._profile = profile
        self._ids = _execution_order(profile)
        self._owner = self._owners()
        self._objects = texts([object_text(raw) for raw in profile.objects])

    def op(self) -> Iterator[Columns]:
        """Executions on the device, then on the host, in file order, in pieces."""
        for side, name in ((self._profile.device, "device"), (self._profile.host, "host")):
            if len(side.op):
                yield from self._side(side, name)

    def _side(self, side: Side, name: str) -> Iterator[Columns]:
        comp_node = np.frombuffer(side.comp_node, dtype=np.int64)
        op = self._ids[np.frombuffer(side.op, dtype=np.int64)]
        times = np.frombuffer(side.times, dtype=np.float64).reshape(-1, 3)
        keep = _last_of_equals(op, comp_node)
        if keep is not None:
            op, comp_node, times = op[keep], comp_node[keep], times[keep]
            self._problem("times that are given twice: the last counts", len(side.op) - len(keep))
        places, side_name = texts(list(self._profile.places)), texts([name])
        for begin in range(0, len(op), PIECE):
            piece = slice(begin, begin + PIECE)
            yield {
                "op_id": integers(op[piece]),
                "track": pick(places, integers(comp_node[piece])),
                "side": pick(side_name, integers(np.zeros(len(op[piece]), np.int64))),
                **self._times(times[piece], name),
            }

    def _times(self, times: Any, name: str) -> Columns:
        start, kern, end = times[:, 0], times[:, 1], times[:, 2]
        with np.errstate(invalid="ignore", over="ignore"):
            start_ns, dur = start * _NS, (end - start) * _NS
            wait = np.where(kern == -1, np.nan, (kern - start) * _NS)
            has_dur, known_wait, known_start = _usable(dur), _usable(wait), np.abs(start_ns) < _LARGEST_NS
            self._problem(f"times on the {name} that are not numbers", int(np.count_nonzero(~np.isfinite(dur))))
            self._problem(f"times on the {name} that end before they start", int(np.count_nonzero(dur < 0)))
        dur_ns = _rounded(dur, has_dur)
        return {
            "start_ns": _rounded(start_ns, known_start),
            "dur_ns": dur_ns,
            "self_ns": dur_ns,
            "wait_ns": _rounded(wait, known_wait),
            **({"device_total_ns": dur_ns, "device_self_ns": dur_ns} if name == "device" else {}),
            "exact_dur_ns": _fractions(dur, has_dur),
            "exact_wait_ns": _fractions(wait, known_wait),
        }

    def allocation(self) -> Iterator[Columns]:
        """Blocks of the memory plan that have a size, in file order, in pieces, with the operator that writes them."""
        sizes = np.asarray(self._profile.chunk_bytes, dtype=np.int64)
        addresses = np.asarray(self._profile.chunk_address, dtype=np.int64)[sizes != UNKNOWN]
        owners = self._owner[sizes != UNKNOWN]
        sizes = sizes[sizes != UNKNOWN]
        for begin in range(0, len(sizes), PIECE):
            piece = slice(begin, begin + PIECE)
            has_address = addresses[piece] != UNKNOWN
            owned = owners[piece] != UNKNOWN
            yield {
                "bytes": integers(sizes[piece]),
                "address": integers(addresses[piece], has_address),
                "op_id": _picked(self._ids, owners[piece], owned),
            }

    def _owners(self) -> Any:
        """Number of the operator whose output lies in each planned block; UNKNOWN where the file does not tell."""
        operators, blocks = self._profile.operators, np.asarray(self._profile.chunk_owner, dtype=np.int64)
        outputs = _numbers(operators.outputs)
        if outputs is None:
            return np.full(len(blocks), UNKNOWN, dtype=np.int64)
        makers = np.repeat(
            np.asarray(operators.op, dtype=np.int64), np.asarray(operators.outputs_count, dtype=np.int64)
        )
        return _values_of(blocks, outputs, makers)

    def op_info(self) -> Iterator[Columns]:
        """Operators that were executed or own a planned block, in the order of execution, in pieces."""
        profile = self._profile
        numbers = np.argsort(self._ids)
        executed = np.zeros(len(self._ids), dtype=bool)
        for ops in (profile.device.op, profile.host.op, profile.order, profile.footprint_op):
            executed[np.asarray(ops, dtype=np.int64)] = True
        executed[self._owner[self._owner != UNKNOWN]] = True
        numbers = numbers[executed[numbers]]
        ids = texts(list(profile.number))
        parts = (self._devices(), self._footprints(), self._described())
        for begin in range(0, len(numbers), PIECE):
            piece = numbers[begin : begin + PIECE]
            columns = {"op_id": integers(self._ids[piece]), "source_id": pick(ids, integers(piece))}
            for part in parts:
                columns |= part(piece)
            yield columns

    def _described(self) -> Callable[[Any], Columns]:
        """Names, types and data types of inputs, from the operator object."""
        operators = self._profile.operators
        position = np.full(len(self._ids), UNKNOWN, dtype=np.int64)
        position[np.asarray(operators.op, dtype=np.int64)] = np.arange(len(operators.op))
        offsets = np.concatenate(([0], np.asarray(operators.name.end, dtype=np.int32))).astype(np.int32)
        names = pa.StringArray.from_buffers(
            len(operators.op), pa.py_buffer(offsets), pa.py_buffer(operators.name.bytes)
        )
        kinds = texts(list(operators.types))
        kind = np.asarray(operators.type, dtype=np.int64)
        dtypes = list(self._profile.dtypes.codes)
        flags = [_flags(text) for text in self._profile.flags.codes]
        types = self._of_variables("inputs", self._profile.dtypes, dtypes)
        flagged = self._of_variables("outputs", self._profile.flags, flags)
        previous = self._previous_ends()

        def columns(numbers: Any) -> Columns:
            here = position[numbers]
            described = here != UNKNOWN
            at = integers(here, described)
            return {
                "name": pick(names, at),
                "type": pick(kinds, _picked(kind, here, described)),
                "in_types": pick(types[0], _picked(types[1], here, described)),
                "out_flags": pick(flagged[0], _picked(flagged[1], here, described)),
                "out_previous_ends": texts([previous(one) for one in here.tolist()]),
                "waits_for": texts([None if one == UNKNOWN else object_text(operators.waiting[one]) for one in here]),
            }

        return columns

    def _of_variables(self, side: str, words: VariableWords, values: list[Any]) -> tuple[pa.Array, Any]:
        """Texts such as `["Float32","Int8"]` (null when none is known), and which of them each operator has.

        `side`: inputs or outputs; `values`: of each code of `words`.
        """
        operators, word_of = self._profile.operators, words.code
        ids, counts = _numbers(getattr(operators, side)), getattr(operators, f"{side}_count")
        if ids is None:
            self._problem(f"ids of {side} that are not numbers: what the variables are is not known", 1)
            return pa.nulls(1, pa.string()), np.zeros(len(operators.op), dtype=np.int64)
        codes = np.zeros(len(ids), dtype=np.uint8)
        inside = ids < len(word_of)
        codes[inside] = word_of[ids[inside]]
        packed, begin = codes.tobytes(), 0
        seen: dict[bytes, int] = {}
        which = array("q")
        for count in counts:
            end = begin + count
            which.append(seen.setdefault(packed[begin:end], len(seen)))
            begin = end
        shown = [msgspec.json.encode([values[code] for code in text]).decode() if any(text) else None for text in seen]
        return texts(shown), np.asarray(which, dtype=np.int64)

    def _previous_ends(self) -> Callable[[int], str | None]:
        """Of an operator by its place the addresses at which the memory that its outputs had before ends, if any."""
        operators = self._profile.operators
        outputs, (variables, ends) = _numbers(operators.outputs), self._profile.ended
        if outputs is None or not len(ends):
            return lambda _at: None
        addresses = _values_of(outputs, np.asarray(variables, np.int64), np.asarray(ends, np.int64))
        begins = [0, *accumulate(operators.outputs_count)]
        known = np.concatenate(([0], np.cumsum(addresses != UNKNOWN)))[begins].tolist()  # in front of each operator

        def shown(at: int) -> str | None:
            if at == UNKNOWN or known[at] == known[at + 1]:
                return None
            mine = addresses[begins[at] : begins[at + 1]].tolist()
            return msgspec.json.encode([None if end == UNKNOWN else end for end in mine]).decode()

        return shown

    def _footprints(self) -> Callable[[Any], Columns]:
        profile = self._profile
        table = np.full((len(profile.number), len(profile.footprint)), UNKNOWN, dtype=np.int64)
        values = np.stack([np.asarray(column, dtype=np.int64) for column in profile.footprint], axis=1)
        table[np.asarray(profile.footprint_op, dtype=np.int64)] = values
        shapes = texts([shape_text(raw) for raw in profile.texts])

        def columns(numbers: Any) -> Columns:
            here = table[numbers]
            parts = [integers(column, column != UNKNOWN) for column in here.T]
            found_texts = [pick(shapes, index) for index in parts[2:5]]
            names = ("flops", "bytes", "in_shapes", "out_shapes", "in_strides", "params")
            return dict(zip(names, (*parts[:2], *found_texts, pick(self._objects, parts[5])), strict=True))

        return columns

    def _devices(self) -> Callable[[Any], Columns]:
        """The physical device that an operator ran on, the first of several."""
        first = np.full(len(self._profile.number), UNKNOWN, dtype=np.int64)
        device = self._profile.device
        first[np.asarray(device.op, dtype=np.int64)[::-1]] = np.asarray(device.comp_node, dtype=np.int64)[::-1]
        names = texts([_physical(comp_node) for comp_node in self._profile.places])
        return lambda numbers: {"device": pick(names, integers(first[numbers], first[numbers] != UNKNOWN))}

    def _problem(self, text: str, count: int) -> None:
        if count:
            self.problems[text] = self.problems.get(text, 0) + count


def _flags(text: str) -> list[str]:
    """Of a variable, as far as they are a list of texts."""
    try:
        return msgspec.json.decode(text or "[]", type=list[str])
    except msgspec.DecodeError:
        return []


def _execution_order(profile: Profile) -> Any:
    """op_id of each operator number: in the order of comp_seq, then of the operator object, then of appearance."""
    ids = np.full(len(profile.number), UNKNOWN, dtype=np.int64)
    following = 0
    for group in (profile.order, profile.operators.op, range(len(ids))):
        ops = np.asarray(group, dtype=np.int64)
        ops = ops[np.sort(np.unique(ops, return_index=True)[1])]
        ops = ops[ids[ops] == UNKNOWN]
        ids[ops] = np.arange(following, following + len(ops))
        following += len(ops)
    return ids


def _numbers(text: bytearray) -> Any:
    """Decimal numbers, each with a comma behind it; None when there is something else."""
    if text.translate(None, b"0123456789,") or _NO_ID.search(text):
        return None
    return np.fromstring(text[:-1].decode("ascii"), dtype=np.int64, sep=",") if text else np.zeros(0, dtype=np.int64)


def _values_of(wanted: Any, keys: Any, values: Any) -> Any:
    """The value of each wanted number, of several the first; UNKNOWN where no key is equal to it."""
    wanted_values = np.full(len(wanted), UNKNOWN, dtype=np.int64)
    if len(keys):
        order = np.argsort(keys, kind="stable")
        at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
        equal = keys[order][at] == wanted
        wanted_values[equal] = values[order][at[equal]]
    return wanted_values


def _last_of_equals(op: Any, comp_node: Any) -> Any:
    """Rows to keep when an operator has two times at one place; None when none has."""
    if not len(op):
        return None
    pair = op * (int(comp_node.max()) + 1) + comp_node
    unique, backwards = np.unique(pair[::-1], return_index=True)
    return None if len(unique) == len(pair) else np.sort(len(pair) - 1 - backwards)


def _usable(values: Any) -> Any:
    """Durations in ns that are numbers, not negative, and fit."""
    return (values >= 0) & (values < _LARGEST_NS)


def _rounded(values: Any, valid: Any) -> pa.Array:
    """int64 of floating-point numbers, rounded, null where not valid."""
    return integers(np.rint(np.where(valid, values, 0.0)).astype(np.int64), valid)


def _fractions(values: Any, valid: Any) -> pa.Array:
    """The value, unrounded, where it is not a whole number; else null."""
    bits = pa.py_buffer(np.packbits(valid & (np.rint(values) != values), bitorder="little"))
    return pa.Array.from_buffers(pa.float64(), len(values), [bits, pa.py_buffer(np.ascontiguousarray(values))])


def _picked(values: Any, at: Any, valid: Any) -> pa.Array:
    """values[at], null where not known."""
    return integers(np.where(valid, values[np.where(valid, at, 0)], 0), valid) if len(values) else integers(at, valid)


def _physical(comp_node: str) -> str:
    match = _NODE.fullmatch(comp_node)
    return match[1] if match else comp_node
