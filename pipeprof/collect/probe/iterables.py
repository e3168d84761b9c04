"""What a training fetches from that is no loader with hooks: a generator, an own class, a loader of another library.

Nothing of it is touched. Where the training is seen from time to time (`stacks`) says it: it waits for a batch where it
stands at the `for` of a loop around an update, in a call of `next`, in the `get` of a queue, or in the `result` of a
future. Of the looks between an update and the next call of the network the reader makes the wait, in
read/spool/blocks.py.
Loops are found in the code of the frames that an update is called from. Not looked for while all batches come from
loaders with hooks.
"""

import os

from . import failure, recorder, where

TELL_NS = 500_000_000
UNFED = 3  # updates without a batch from a loader with hooks, before the first look
MOST_CALLS = 1000  # places that updates are called from
MOST_CODES = 10_000  # places of code that were looked at

ELSEWHERE, WAITS, HOOKED = 0, 1, 2  # what a look finds: HOOKED is a wait that a hook measures
FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
FETCHES = frozenset(("__next__",))  # hooks around a fetch
GETS = {  # by the file of Python's library: where a thread waits for what another, or a process, hands over
    "queue.py": ("get",),
    "queues.py": ("get",),
    "connection.py": ("recv", "recv_bytes", "poll", "wait"),
    "_base.py": ("result",),
}
DATA = ("dataset" + os.sep, os.path.join("utils", "data") + os.sep)  # in the package of a library
ASKED = {"next": "next", "__next__": "next", "get": "get"}  # what is called, and what that is to a loop

_instructions = {}  # type: dict[object, tuple[dict[int, str], list[tuple[int, int]]]]


class Looks:
    """The looks of one recording."""

    def __init__(self, rec):
        self.rec = rec
        self._unfed = 0
        self._called = set()  # places that updates were called from: code and position of each frame
        self._new = []  # of these, those whose loops are not known yet
        self._loops = set()  # (code, position of the `for`)
        self._places = {}  # (code, position) -> whether it waits there
        self._numbers = {}  # (code, position) of a wait -> number of the iterator
        self._nameless = set()  # of these, those that were seen once
        self._samples = []
        self._told = 0

    def update(self, frame):
        """From the training's thread: an update, and no loader with hooks was asked since the one before."""
        self._unfed += 1
        if self._unfed < UNFED:
            return
        place = []
        while frame is not None:
            place += (frame.f_code, frame.f_lasti)
            frame = frame.f_back
        place = tuple(place)
        if place not in self._called and len(self._called) < MOST_CALLS:
            self._called.add(place)
            self._new.append(place)
        if self._unfed == UNFED:
            self.rec.lookers.append(self._look)

    def _look(self, frame):
        while self._new:
            self._find_loops(self._new.pop())
        found = self._found(frame)
        at = recorder.now()
        self._samples.append((at, *found))
        if at - self._told >= TELL_NS:
            self._told = at
            samples, self._samples = self._samples, []
            self.rec.line("looks", samples=samples)

    def _found(self, innermost):
        """(what a look finds, number of the iterator): outermost frame first, up to the first one that decides."""
        frames = []
        while innermost is not None:
            frames.append(innermost)
            innermost = innermost.f_back
        frames.reverse()
        for index, frame in enumerate(frames):
            code = frame.f_code
            if code.co_filename.startswith(FOLDER):
                return ELSEWHERE, 0
            if self._waits(code, frame.f_lasti, frame is frames[-1]):
                if any(_is_fetch(inner.f_code) for inner in frames[index:]):
                    return HOOKED, 0
                number = self._number(frames, index)
                return (ELSEWHERE, 0) if number is None else (WAITS, number)
            if _is_of_the_network(code.co_filename):
                return ELSEWHERE, 0
        return ELSEWHERE, 0

    def _waits(self, code, position, innermost):
        """Whether code waits for a batch there. A frame of a queue is one that waits, wherever in it.

        `innermost`: it calls no Python; what is called `get` there is that of a `SimpleQueue`, which is written in C.
        """
        key = (code, position, innermost)
        known = self._places.get(key)
        if known is None:
            known = _is_get(code)
            if not known and (any(one in ASKED for one in code.co_names) or any(code is one for one, _ in self._loops)):
                names, _ = _read(code)
                at = _instruction(names, position)
                name = names.get(at)
                known = name == "next" or (name == "get" and innermost) or (name == "for" and (code, at) in self._loops)
            if len(self._places) < MOST_CODES:
                self._places[key] = known
        return known

    def _find_loops(self, place):
        """The `for` loops around one place that updates are called from."""
        before = len(self._loops)
        for code, position in zip(place[::2], place[1::2]):
            if code.co_filename.startswith(FOLDER) or _is_of_the_network(code.co_filename):
                continue
            names, loops = _read(code)
            self._loops.update((code, begin) for begin, end in loops if begin <= position <= end and names.get(begin))
        if len(self._loops) != before:
            self._places.clear()

    def _number(self, frames, index):
        """Number of what is waited for at this frame, which is told when it is seen first; None for no number yet.

        Where no function below it is seen, which would name it, that is once more looked for.
        """
        from . import dataset

        frame = frames[index]
        names, _ = ({}, ()) if _is_get(frame.f_code) else _read(frame.f_code)
        key = (frame.f_code, _instruction(names, frame.f_lasti) if names else 0)
        if key not in self._numbers and index + 1 == len(frames) and names and key not in self._nameless:
            self._nameless.add(key)
            return None
        if key not in self._numbers:
            number = self._numbers[key] = dataset._next_number()
            self.rec.event("iterator", **_described(frames, index, number))
        return self._numbers[key]


def _described(frames, index, number):
    """The event of an iterator with one stage: the first function of the program's that makes the batch."""
    frame, inner = frames[index], frames[index + 1 :]
    if _is_get(frame.f_code):  # the line that calls it says more
        inner = [frame]
        frame = next((one for one in reversed(frames[:index]) if failure._is_own(one.f_code.co_filename)), frame)
    making = next((one for one in inner if failure._is_own(one.f_code.co_filename)), inner[0] if inner else None)
    site = "%s:%d" % (frame.f_code.co_filename, frame.f_lineno)
    stage = {"type": "Iterable", "node": 0, "site": site, "python": True, "workers": 1, "children": []}
    names, _ = ({}, ()) if making is not None else _read(frame.f_code)
    if names.get(_instruction(names, frame.f_lasti)) == "get":  # of what is written in C
        stage["name"] = "get"
    if making is not None:
        code = making.f_code
        stage["name"] = where.qualified_name(code)
        if failure._is_own(code.co_filename):
            stage["code"] = "%s:%d" % (code.co_filename, code.co_firstlineno)
    at = recorder.now()
    return {
        "number": number,
        "begin": at,
        "end": at,
        "site": site,
        "epochs": None,
        "graph": stage,
        "queues": "not_recorded: a loader without hooks, whose waits were sampled",
    }


def _is_fetch(code):
    return code.co_name in FETCHES and code.co_filename.startswith(FOLDER)


def _is_get(code):
    return code.co_name in GETS.get(os.path.basename(code.co_filename), ())


def _is_of_the_network(path):
    """Whether a file is of MindSpore or PyTorch, and not of what loads data there."""
    folders = where.folders()
    return path.startswith(folders) and not path.startswith(tuple(folder + data for folder in folders for data in DATA))


def _read(code):
    """Of a code: {position: `for`, `next`, or nothing} of its instructions, and where its loops begin and end."""
    found = _instructions.get(code)
    if found is None:
        if len(_instructions) > MOST_CODES:
            _instructions.clear()
        found = _instructions[code] = _read_instructions(code)
    return found


def _read_instructions(code):
    import dis

    names, loops, asked, line = {}, [], None, None
    jumps = frozenset(dis.hasjrel) | frozenset(dis.hasjabs)
    for instruction in dis.get_instructions(code):
        name, offset = instruction.opname, instruction.offset
        line = instruction.starts_line or line
        begins = _begin_of(instruction, line)
        names[offset] = "for" if name == "FOR_ITER" else ""
        if name.startswith("LOAD_") and instruction.argval in ASKED:
            asked = (begins, ASKED[instruction.argval])
        elif asked is not None and asked[0] == begins and name.startswith(("CALL", "PRECALL")):
            names[offset] = asked[1]
            asked = asked if name.startswith("PRECALL") else None
        if instruction.opcode in jumps and isinstance(instruction.argval, int) and instruction.argval < offset:
            loops.append((instruction.argval, offset))
    return names, loops


def _begin_of(instruction, line):
    """Where the expression of an instruction begins in the source; before Python 3.11 only its line is known."""
    place = getattr(instruction, "positions", None)
    return line if place is None or place.lineno is None else (place.lineno, place.col_offset)


def _instruction(names, position):
    """The instruction that a position lies in: between two of them lies what the interpreter keeps for itself."""
    while position > 0 and position not in names:
        position -= 2
    return position
