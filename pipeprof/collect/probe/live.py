"""Where this process is, once a second, for whoever asks while it runs: `pipeprof status` tells from it what hangs.

One small file is replaced each time, by the recorder's own thread: the hooks pay nothing. Which known call the main
thread is in is read off its stack, for the hooks are on it; those in C are put there, in front of what they called.
Worker processes of the dataset write only when they are stuck in one row. Python code that keeps the interpreter's lock
for seconds stops this thread as well: then the file grows old, and its last stack is what is known.
"""

import _thread
import os
import threading

from . import failure, files, hooks, recorder, steps, where

FILE, WORKER_FILE = "now.json", "worker-%d.json"
EVERY_NS = 1_000_000_000
STILL_NS = 1_000_000_000  # without a mark for so long, nothing moves
REPLACE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
MOST_FRAMES, MOST_THREADS = 60, 16

FETCH, BUILD, CALLBACK, COMPILE, CALL, ROW = "fetch", "build", "callback", "compile", "call", "row"
HOOKS = {
    ("dataset", "__next__"): FETCH,
    ("loaders", "__next__"): FETCH,
    ("loaders", "__iter__"): BUILD,
    ("dataset", "__init__"): BUILD,
    ("steps", "called"): CALLBACK,
    ("steps", "compiled"): COMPILE,
    ("steps", "_timed"): CALL,
    ("callables", "call"): ROW,
    ("callables", "_timed_rows"): ROW,
}
COMPILED = {hooks.FETCH: FETCH, hooks.STEP: CALLBACK, hooks.CALL: CALL, hooks.COMPILE: COMPILE}
FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep

_own = {}  # type: dict[str, bool]  # whether a file is the program's
_hiders = []  # type: list[object]  # the function that takes out of a line what must not be kept
_looking = []  # type: list[int]  # process ids of workers that are watched


class Whereabouts:
    """Called twice a second by the recorder's thread; writes once a second."""

    def __init__(self, rec):
        self._rec = rec
        self._due = 0
        self._began = {}  # thread -> (what it is in, since when)
        self.still = []  # called with the time when nothing moves

    def __call__(self):
        """Write where the main thread is, and, when nothing moves, where the others are."""
        rec, at = self._rec, recorder.now()
        if at < self._due or rec.off or files.few():  # the one that it takes may be the program's last
            return
        self._due = at + EVERY_NS
        moved = at if rec.has_marks() else rec.moved
        main = threading.main_thread().ident
        frames = where.frames()
        facts = {"t": at, "moved": moved, "calls": steps.LOOP.calls, "stack": stack(frames.get(main), main)}
        if at - moved >= STILL_NS:
            facts["line"] = _line(facts["stack"])
            facts["threads"] = self._threads(frames, main, at)
        else:
            self._began.clear()
        del frames
        replace(os.path.join(rec.folder, FILE), facts)
        for call in self.still if "threads" in facts else ():
            call(at)

    def _threads(self, frames, main, at):
        """Threads that run Python of the program's, and since when each is in what it is in."""
        threads, began = [], {}
        for ident, frame in frames.items():
            thread = threading._active.get(ident)
            name = getattr(thread, "name", "")
            if ident == main or name.startswith("pipeprof") or len(threads) >= MOST_THREADS:
                continue
            inside, row = _innermost_call(frame)
            entries = stack(frame, ident)
            if row is None and not any(entry[3] for entry in entries):
                continue
            before = self._began.get(ident)
            same = before is not None and before[0] is inside and before[1] == row
            began[ident] = (inside, row, before[2] if same else at)
            threads.append(dict(row or {}, name=name, since=began[ident][2], stack=entries, line=_line(entries)))
        self._began = began  # holds the frames that are compared: another one at the same address would look the same
        return threads


def _innermost_call(frame):
    """The frame of the hook around the row that a thread makes, with what is known of it; else its outermost frame."""
    outermost = frame
    while frame is not None:
        if _hook(frame) == ROW:
            return frame, _facts(ROW, frame)
        outermost, frame = frame, frame.f_back
    return outermost, None


def stack(frame, ident):
    """`[file, line, function, whether it is the program's own, known call or None]` of each frame, innermost first."""
    entries, under_way = [], [call for call in hooks.LANE.calls() if call[0] == ident]
    while frame is not None and len(entries) < MOST_FRAMES:
        code = frame.f_code
        kind = _hook(frame)
        name = code.co_filename
        own = _own.get(name)
        if own is None:
            own = _own[name] = failure._is_own(name)
        entries.append([name, frame.f_lineno, code.co_name, int(own), None if kind is None else _facts(kind, frame)])
        entries += _compiled(code, under_way)
        frame = frame.f_back
    return entries


def _compiled(code, under_way):
    """The entry of the hook in C that has called this code, if one has: the last of its kind that has begun."""
    _, kind, hook = hooks.HOOKED.get(id(code), (None, None, None))
    begun = [call for call in under_way if call[1] == kind]
    if kind == hooks.COMPILE and not begun:  # in the call of a graph, and as old as that
        begun = [call for call in under_way if call[1] == hooks.CALL]
    if not begun:
        return []
    call = max(begun, key=lambda call: call[3])
    if call[1] == kind:
        under_way.remove(call)
    _, _, flag, since, number, rows = call
    facts = {"call": COMPILED[kind], "since": since}
    facts.update(
        {FETCH: {"tree": number, "rows": rows}, CALL: {"flag": flag}, CALLBACK: {"kind": flag}}.get(COMPILED[kind], {})
    )
    return [[hook.co_filename, hook.co_firstlineno, hook.co_name, 0, facts]]


def _hook(frame):
    name = frame.f_code.co_filename
    if not name.startswith(FOLDER):
        return None
    return HOOKS.get((name[len(FOLDER) : -3], frame.f_code.co_name))


def _facts(kind, frame):
    """What a hook's own variables say about the call that it is in."""
    variables = frame.f_locals
    facts = {"call": kind, "since": variables.get("begin", variables.get("begin_ns"))}
    if kind == FETCH and variables.get("tree") is not None:
        facts.update(tree=variables["tree"].number, rows=variables["tree"].rows)
    elif kind == CALL:
        facts.update(flag=variables.get("flag"))
    elif kind == CALLBACK:
        facts.update(kind=variables.get("kind"))
    elif kind == ROW and variables.get("cell") is not None:
        facts.update(tree=variables["cell"].number, node=variables["cell"].node)
    return facts


def _line(entries):
    """The text of the program's innermost line without passwords, or an empty text."""
    import linecache

    entry = next((entry for entry in entries if entry[3]), None)
    try:
        return _hide(linecache.getline(entry[0], entry[1]).strip())[:200] if entry is not None else ""
    except Exception:  # whatever the loader of a module does
        return ""


def _hide(line):
    if not _hiders:
        _hiders.append(failure.hider())
    return _hiders[0](line)


def replace(path, facts):
    """Write facts as JSON in the place of the old ones; a folder that is gone, or a full disk, is no matter."""
    temporary = os.path.join(os.path.dirname(path), "." + os.path.basename(path))
    try:
        files.write_once(temporary, recorder.encode(facts).encode("utf-8", "replace"), REPLACE)
        files.rename(temporary, path)
    except OSError:
        pass


def worker(slot):
    """Watch the thread that calls, of a worker process; the thread for that is none of the `threading` module's."""
    if os.getpid() not in _looking:
        _looking[:] = [os.getpid()]
        _thread.start_new_thread(_look, (slot, _thread.get_ident(), os.getpid()))


def _look(slot, ident, pid):
    """Write where the worker is as long as it is in one row; remove that when it goes on."""
    try:
        path = os.path.join(recorder.REC.folder, WORKER_FILE % pid)
        rows, since, is_written = slot.rows, recorder.now(), False
        while os.getpid() == pid:
            recorder.sleep(EVERY_NS / 1e9)
            if slot.rows != rows:
                rows, since = slot.rows, recorder.now()
                if is_written:
                    files.remove(path)
                is_written = False
                continue
            entries = stack(where.frames().get(ident), ident)
            if any(entry[3] for entry in entries):
                facts = {"t": recorder.now(), "pid": pid, "since": since, "stack": entries, "line": _line(entries)}
                replace(path, facts)
                is_written = True
    except Exception:
        return
