"""Keeps what MindSpore's recorder of queues remembers small, however long an iterator lives.

Until the iterator is gone it remembers four records of each batch, with their texts (440 bytes), and a reading of
all queues ten times a second (some 100 bytes). `take` hands the records of batches over and has them
forgotten; `slow_down` lengthens the time between readings.

The functions are those that the library exports. Their names hold the types of what they take, but not of what they
return, so that only libraries that were looked into are touched: they are known by the machine code of these functions.
With others, and where the user does not want it (PIPEPROF_NO_PATCHES), nothing is done, and the memory grows as
MindSpore has it.
"""

import ctypes
import sys

from . import files, recorder

# Of MindSpore 2.10.0 for Python 3.10, 3.11 and 3.12 on x86-64: how objects come back was looked into there alone
KNOWN = ("ad6ed6a785c70056", "b04fcf71a0917bd1", "b0ec8ae9d0b97cad")
CODE = 128  # bytes of each function
SAMPLER = ("_ZN9mindspore7dataset7MonitorclEv", "_ZN9mindspore7dataset7MonitorC1EPNS0_16ProfilingManagerE")
NODE = b"Dataset_Iterator_Tracing"
PARTS = {
    "push_ms": "GetPushTime",
    "batch_ms": "GetBatchTime",
    "depth": "GetConnectorSize",
    "capacity": "GetConnectorCapacity",
}
SPACE = "_ZN9mindspore7dataset"
NAMES = (
    SPACE + "16ProfilingManager14GetTracingNodeERKSsPSt10shared_ptrINS0_7TracingEE",
    SPACE + "7Tracing14GetNumberStepsEv",
    SPACE + "7Tracing5ClearEv",
    SPACE + "7Tracing4InitEv",
    SPACE + "13GlobalContext17profiling_managerEv",
    *("%s7Tracing%d%sEiiPSt6vectorIiSaIiEE" % (SPACE, len(name), name) for name in PARTS.values()),
)
WORD = 8
LOOK = 32  # words of the manager among which its sampler is looked for


class _Returned(ctypes.Structure):
    """An object that C++ returns: larger than two words, so that it goes through memory, as such objects do."""

    _fields_ = [("words", ctypes.c_void_p * 8)]


class _Text(ctypes.Structure):
    """A string of the ABI that the exported names (`Ss`) speak of; the string itself is the address of `text`."""

    _fields_ = [
        ("length", ctypes.c_size_t),
        ("capacity", ctypes.c_size_t),
        ("references", ctypes.c_ssize_t),
        ("text", ctypes.c_char * 64),
    ]


class Readings:
    """What is reached of the one recorder of this process. Called with the lock of `trees.Trees` held."""

    def __init__(self, library):
        status, address, number = _Returned, ctypes.c_void_p, ctypes.c_int
        node, count, clear, init, find_manager = NAMES[: -len(PARTS)]
        self._node = _function(library, node, status, address, address, address)
        self._count = _function(library, count, number, address)
        self._clear = _function(library, clear, None, address)
        self._init = _function(library, init, status, address)
        self._parts = {
            key: _function(library, name, status, address, number, number, address)
            for key, name in zip(PARTS, NAMES[-len(PARTS) :])
        }
        self._delete = _function(library, "_ZdlPv", None, address)
        self._release = _function(
            library, "_ZNSt16_Sp_counted_baseILN9__gnu_cxx12_Lock_policyE2EE10_M_releaseEv", None, address
        )
        shared = _function(library, find_manager, status)().words
        self._manager = shared[0]
        self._release(shared[1])  # MindSpore itself keeps it until the process ends
        self._text = _Text(len(NODE), len(NODE), 0, NODE)
        self._name = ctypes.c_void_p(ctypes.addressof(self._text) + _Text.text.offset)

    def take(self):
        """The records of batches, a list for each of PARTS, and forget them; none when they are not as expected.

        From the thread that fetches: it is the one that adds records.
        """
        node = (ctypes.c_void_p * 2)()
        self._node(self._manager, ctypes.byref(self._name), ctypes.byref(node))
        if not node[0]:
            return None
        try:
            count = self._count(node[0]) - 1  # of the ends of steps, of which the first is where there was none yet
            parts = {key: self._values(call, node[0], count) for key, call in self._parts.items()} if count > 0 else {}
            if not parts or any(len(values) != count for values in parts.values()):
                return None
            self._clear(node[0])
            self._init(node[0])
            return parts
        finally:
            if node[1]:
                self._release(node[1])

    def _values(self, call, node, count):
        vector = (ctypes.c_void_p * 3)()
        call(node, 1, count, ctypes.byref(vector))
        begin, end = vector[0], vector[1]
        if not begin:
            return []
        try:
            return list((ctypes.c_int32 * ((end - begin) // 4)).from_address(begin))
        finally:
            self._delete(begin)

    def slow_down(self, before_ms, after_ms):
        """Let the sampler wait longer after each reading; returns whether it was found, by what it must hold."""
        for word in _peek(self._manager, LOOK):
            if word and word % WORD == 0 and _peek(word, 2) == (self._manager, before_ms):
                ctypes.c_int64.from_address(word + WORD).value = after_ms
                return True
        return False


def find():
    """The readings, or None where the library is another than is known here, or was not imported."""
    module = sys.modules.get("mindspore._c_dataengine")
    if module is None or not recorder.may_patch():
        return None
    try:
        library = ctypes.PyDLL(module.__file__)
        return Readings(library) if digest(library) in KNOWN else None
    except (OSError, AttributeError):
        recorder.REC.warn(
            "readings_grow", "this MindSpore's record of queues cannot be shortened: it grows with each batch"
        )
        return None


def digest(library):
    """What the functions that are called, and the sampler whose interval is changed, consist of."""
    import hashlib

    state = hashlib.blake2b(digest_size=8)
    for name in (*NAMES, *SAMPLER):
        state.update(ctypes.string_at(ctypes.cast(library[name], ctypes.c_void_p).value, CODE))
    return state.hexdigest()


def _function(library, name, result, *arguments):
    function = library[name]  # not the attribute, which is one object for all who ask
    function.restype, function.argtypes = result, arguments
    return function


def _peek(address, words):
    """Words of memory as numbers; empty where there is no such memory."""
    try:
        data = files.read_at("/proc/self/mem", words * WORD, address)
    except (OSError, OverflowError):
        return ()
    return tuple(memoryview(data).cast("Q")) if len(data) == words * WORD else ()
