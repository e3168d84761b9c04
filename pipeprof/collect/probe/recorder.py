"""The spool of this process: append-only, flushed at least once a second, never in the way of the training.

`marks.bin` holds fixed 26-byte records, `events.jsonl` one JSON object a line. Nothing is created on disk until
there is something of MindSpore to record, except one line in `hello.jsonl` that says that this Python is watched.
"""

import _thread
import atexit
import os
import sys
import time

from . import files, hooks, marks

FETCH, TRAIN_STEP, TRAIN_BEGIN, TRAIN_END, EPOCH_BEGIN, EPOCH_END = 1, 2, 3, 4, 5, 6
EVAL_BEGIN, EVAL_END, EVAL_STEP, UPDATE, CALL, COMPILE, STEP, SECTION, PART = 7, 8, 9, 10, 11, 12, 13, 14, 15
SYNC, GRADIENTS = 16, 17

ROW, STOPPED, FAILED = 0, 1, 2  # flags of FETCH
OTHER_THREAD = 0x80

FLUSH_NS = 500_000_000  # by the thread
UNWRITTEN_NS = 100_000_000  # by the next mark: a training that goes on loses no more of its steps to a kill
RANKS = "RANK_ID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK"  # variables of msrun, MPI and torchrun
LAST_FLUSH_S = 5
MOST_FAILURES = 10  # of the thread, which ends then: the training's own marks flush from there on
KEEP_AT_MOST = 200_000  # marks kept in memory while the disk refuses them (about 15 MB)

# Taken before the program runs, which may replace them. Hooks ask for the time here alone.
now, wall, sleep = time.monotonic_ns, time.time_ns, time.sleep
process_cpu, thread_cpu = time.process_time_ns, getattr(time, "thread_time_ns", time.process_time_ns)
HELLO = "hello.jsonl"  # one line of each Python that is watched, and one of each that stopped recording early
REC = None
_FOLDER = os.path.dirname(__file__) + os.sep
_encoders = []  # type: list[object]


def encode(fields):
    """`json.dumps` by an encoder of our own: the program may replace that function."""
    if not _encoders:
        import json

        _encoders.append(json.JSONEncoder(default=str).encode)
    return _encoders[0](fields)


def clock():
    """What both clocks say at one moment; of five readings the one that other programs delayed least."""
    readings = []
    for _ in range(5):
        before = now()
        real = wall()
        after = now()
        readings.append((after - before, (before + after) // 2, real))
    _, monotonic, real = min(readings)
    return {"monotonic": monotonic, "realtime": real}


def may_patch():
    """Whether the user lets us change values in MindSpore's own memory: its sampler's path and interval, log levels."""
    return os.environ.get("PIPEPROF_NO_PATCHES", "0") in ("", "0") and bool(REC.options.get("patches", True))


class Recorder(hooks.Marks):
    """Everything that is recorded goes through here. Thread-safe without locks on the hot path (the GIL orders it)."""

    def __init__(self, root, options):
        super().__init__()
        self.root = root
        self._options_text = options
        self._options = None
        self.off = False
        self.graph_lines = False  # the lines that operators of compiled graphs come from are asked for
        self.is_child = False  # made by a fork before it recorded anything
        self.waiting = False  # off for now: iterators are still told apart, for later
        self.folder = None
        self.pid = os.getpid()
        self.started = now()
        self.adopts = False  # whether iterators that were made before the hooks are taken in
        self.periodic = []  # called by the thread twice a second
        self.lookers = []  # called with the frame that the training is in, some 20 times a second, once it trains
        self.closing = []  # called before the last flush
        self._pending = []
        self._lines = []
        self._flushed, self._unwritten_ns = self.started, UNWRITTEN_NS
        self.moved = self.started  # when marks were last written, or the folder was made
        self.live = None
        self._files = None
        self._lock = _thread.RLock()
        self._flushing = False  # the same thread may record meanwhile: by the garbage collector, or a signal
        self._warned = set()
        self._dropped = 0
        self._problem = None  # why nothing is recorded any more, until the spool says so
        self._torn = set()

    @property
    def options(self):
        """What the launcher said, as a dict."""
        if self._options is None:
            import json

            self._take_options(json.JSONDecoder().decode(self._options_text))
        return self._options

    def _take_options(self, options):
        self._options = options
        self.graph_lines = bool(options.get("graph_lines"))

    def has_marks(self):
        """Whether something was recorded since the last flush."""
        return bool(self._unpacked or self._pending)

    def event(self, name, **fields):
        """Record something rare, as a JSON line, and flush."""
        self.line(name, **fields)
        self.flush()

    def line(self, name, **fields):
        """Record something less rare, as a JSON line, to be flushed with the next marks."""
        fields["e"] = name
        fields.setdefault("t", now())
        self.open()
        self._lines.append(encode(fields))

    def warn(self, code, message):
        """Record a warning once per code."""
        if code not in self._warned:
            self._warned.add(code)
            self.event("warning", code=code, message=message)

    def failed(self, where):
        """Record that a hook failed (called in an except block); the training goes on.

        What a signal handler of the program's has raised meanwhile is the program's, and goes on as it was.
        """
        is_the_programs = False
        try:
            is_the_programs = _is_of_a_handler(sys.exc_info()[1])
        except Exception:
            self.off = True
        if is_the_programs:
            raise  # noqa: PLE0704 - of the block that calls
        try:
            import traceback

            lines = traceback.format_exc(limit=-3).strip().splitlines()
            self.warn(
                "probe_failed:" + where, where + ": " + lines[-1] + " | " + " ".join(x.strip() for x in lines[1:-1])
            )
        except Exception:
            self.off = True

    def open(self):
        """Create this process's folder and start the thread, once."""
        if self.folder is not None or self.off:
            return
        with self._lock:
            if self.folder is not None:
                return
            folder = os.path.join(self.root, "proc-%d-%d" % (self.pid, self.started))
            try:
                files.mkdir(folder)  # a spool that was deleted stays deleted: the place may be another run's by now
                files.look()
                self._files = [files.OwnFile(os.path.join(folder, leaf)) for leaf in ("marks.bin", "events.jsonl")]
            except OSError as error:
                self._stop("its files could not be opened: %s" % error.strerror)
                return
            self.folder = folder
            self.moved = now()
        for begin in (self._tell_process, self._start_thread):
            try:
                begin()
            except Exception:
                self.failed("open")

    def _tell_process(self):
        self.event("process", **self._about())

    def _start_thread(self):
        import threading

        from . import live, stacks, threads

        self.live = live.Whereabouts(self)
        self.periodic += [threads.Look(), self.live, stacks.Begin(self)]
        if self.is_child:
            _end_with_multiprocessing()
        threading.Thread(target=self._run, name="pipeprof", daemon=True).start()

    def _about(self):
        import platform

        environ = os.environ
        rank = next((environ[key] for key in RANKS if key in environ), None)
        return {
            "pid": self.pid,
            "ppid": os.getppid(),
            "host": platform.node(),
            "python": platform.python_version(),
            "executable": sys.executable,
            "hooks": "python" if hooks.COMPILED is None else "compiled",
            "rank": int(rank) if rank is not None and rank.isdigit() else None,
            "role": environ.get("MS_ROLE"),
            "started": self.started,
            "run_id": self.options.get("run_id"),
            "cpu_limit_s": _cpu_limit_s(),
            **clock(),
        }

    def flush(self, wait_s=0):
        """Write what is pending. One thread at a time; another one returns at once, or waits up to `wait_s`."""
        if self.off or self._files is None or not self._lock.acquire(wait_s > 0, wait_s if wait_s > 0 else -1):
            return
        inside, self._flushing = self._flushing, True
        try:
            if self._files is None or inside:
                return
            self._flushed = now()
            self._pack()
            if self._pending:
                self.moved = self._flushed
            for file, queue in zip(self._files, (self._pending, self._lines)):
                self._drain(file, queue, b"" if queue is self._pending else b"\n")
        finally:
            self._flushing = inside
            self._lock.release()

    def _pack(self):
        data, width = self._taken(), marks.MARK.size
        self._pending += [data[at : at + width] for at in range(0, len(data), width)]

    def _drain(self, file, queue, end):
        count = len(queue)
        if not count:
            return
        data = b"".join((x if isinstance(x, bytes) else x.encode("utf-8", "replace")) + end for x in queue[:count])
        try:
            written = file.write(data)
        except files.LostError:
            self._stop("its files were removed or replaced")
            return
        except OSError as error:
            self._refused(error, file, queue)
            return
        del queue[:count]
        self._torn.discard(file)
        if written < len(data):
            self._torn.add(file)
            queue.insert(0, data[written:] if not end else data[written : -len(end)])

    def _stop(self, why):
        """Record no further, and leave in the spool why."""
        self.off = True
        self._problem = why
        self._tell_problem()

    def _tell_problem(self):
        """Again at the end of the process, where it could not be written before."""
        if self._problem is None:
            return
        try:
            line = encode({"pid": self.pid, "problem": self._problem})
            files.write_once(os.path.join(self.root, HELLO), (line + "\n").encode(), files.APPEND)
            self._problem = None
        except Exception:
            return

    def _refused(self, error, file, queue):
        if "disk" not in self._warned and files.say(
            "pipeprof: cannot write its record (%s); the training goes on\n" % error.strerror
        ):
            self._warned.add("disk")
        if len(queue) > KEEP_AT_MOST:
            torn = 1 if file in self._torn else 0  # the rest of a record whose beginning is on the disk
            self._dropped += len(queue) - torn
            del queue[torn:]

    def _run(self):
        for _ in range(MOST_FAILURES):
            try:
                self._look_on()
            except Exception:
                self.failed("thread")
            else:
                return

    def _look_on(self):
        while not self.off:
            sleep(FLUSH_NS / 1e9)
            self._look()
            self.flush()

    def _look(self):
        for call in list(self.periodic):
            try:
                call()
            except Exception:
                self.failed("periodic")

    def close(self):
        """Last flush, in the interpreter's exit handlers."""
        self._tell_problem()
        if self.folder is not None and not self.off:
            for call in self.closing:
                try:
                    call()
                except Exception:
                    self.failed("closing")
            self.line("bye", dropped=self._dropped, realtime=wall())
            self.flush(LAST_FLUSH_S)  # the thread may be writing just now: without this nobody would write the rest

    def end(self):
        """Say goodbye and close the files: this recording is over, the process goes on."""
        self.close()
        with self._lock:
            self.off = True
            closed, self._files = self._files, None
        for file in closed or ():
            file.close()

    def forked(self):
        """In a forked child: fall silent if the parent was already training, otherwise start afresh."""
        opened, self._files = self._files, None
        for file in opened or ():
            file.close()
        self._taken()
        self._pending, self._lines = [], []
        self._lock, self._flushing = _thread.RLock(), False
        self.waiting = False
        if self.folder is not None:
            self.off = True
            return
        self.pid, self.started, self.is_child = os.getpid(), now(), True


def _cpu_limit_s():
    """CPU time after which the kernel ends this process (`ulimit -t`); None: there is no limit."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_CPU)[0]
    except (ImportError, OSError, ValueError):
        return None
    return None if limit == resource.RLIM_INFINITY else limit


def _end_with_multiprocessing():
    """A forked child of multiprocessing leaves by `os._exit`: it runs no exit handlers, only finalizers of its own."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        from multiprocessing import util

        util.Finalize(None, _end_child, exitpriority=100)  # before worker processes of datasets are ended


def _end_child():
    windows = sys.modules.get(__package__ + ".windows")
    if windows is not None:
        windows.WINDOWS.exit()
    REC.close()


def _tell_failure(root):
    """Record the exception that ended this process; one that was caught is not there."""
    if getattr(sys, "last_value", None) is None:
        return
    try:
        from . import failure

        failure.tell(root)
    except BaseException:  # the program is ending: nothing of ours may change how
        REC.failed("failure")


def use(rec):
    """Record with this one from now on."""
    global REC
    REC = hooks.LANE.rec = rec


def open_recorder(root, options):
    """Make the one recorder of this process and leave a trace that this Python is watched."""
    use(Recorder(root, options))
    line = '{"pid": %d, "ppid": %d}\n' % (os.getpid(), os.getppid())
    files.write_once(os.path.join(root, HELLO), line.encode())
    at_exit(REC.close)
    atexit.register(_tell_failure, root)
    at_fork(after_in_child=REC.forked)
    return REC


def guarded(where, call, *args):
    """What a call of ours gives; None, and a warning in the record, when it raises."""
    try:
        return call(*args)
    except Exception:
        REC.failed(where)
        return None


def unseen(error):
    """Take frames of the probe out of the traceback of an error that the caller raises again, by a bare `raise`.

    Python 3.10 puts the frame of the caller back.
    """
    try:
        before, trace = error, error.__traceback__
        while trace is not None:
            following = trace.tb_next
            if not trace.tb_frame.f_code.co_filename.startswith(_FOLDER):
                before = trace
            elif before is error:
                error.__traceback__ = following
            else:
                before.tb_next = following
            trace = following
    except Exception:
        REC.failed("traceback")


def at_exit(call):
    """Have something called when the interpreter ends; what goes wrong there is not told on stderr."""
    atexit.register(_quietly(call))


def at_fork(**calls):
    """As `os.register_at_fork`, where the system has it; what goes wrong there is not told on stderr."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(**{when: _quietly(call) for when, call in calls.items()})


def _quietly(call):
    def quiet():
        try:
            call()
        except Exception:
            if REC is not None:
                REC.off = True

    return quiet


def _is_of_a_handler(error):
    """Whether an error comes out of a signal handler of the program's, which may run in the middle of a hook."""
    signal, trace = sys.modules.get("signal"), getattr(error, "__traceback__", None)
    if signal is None or trace is None:
        return False
    codes = set()
    while trace is not None:
        codes.add(trace.tb_frame.f_code)
        trace = trace.tb_next
    return any(_code(signal.getsignal(number)) in codes for number in range(1, signal.NSIG))


def _code(handler):
    function = getattr(handler, "func", handler)  # of functools.partial
    function = getattr(function, "__func__", function)
    if not hasattr(function, "__code__"):
        function = type(function).__dict__.get("__call__")  # of an object of the program's
    return getattr(function, "__code__", None)
