"""The spool of this process: append-only, flushed at least once a second, never in the way of the training.

`marks.bin` holds fixed 26-byte records, `events.jsonl` one JSON object a line. Nothing is created on disk until
there is something of MindSpore to record, except one line in `hello.jsonl` that says that this Python is watched.
"""

import _thread
import atexit
import os
import struct
import sys
import time

# kind, flag, subject, sequence number, begin, end (ns of the monotonic clock); `<`: no padding, any machine
FIELDS = "BBIIqq"
MARK = struct.Struct("<" + FIELDS)
TOGETHER = 256  # marks that are packed by one call

FETCH, TRAIN_STEP, TRAIN_BEGIN, TRAIN_END, EPOCH_BEGIN, EPOCH_END = 1, 2, 3, 4, 5, 6
EVAL_BEGIN, EVAL_END, EVAL_STEP, UPDATE, CALL, COMPILE, STEP, SECTION, PART = 7, 8, 9, 10, 11, 12, 13, 14, 15
SYNC = 16

ROW, STOPPED, FAILED = 0, 1, 2  # flags of FETCH
OTHER_THREAD = 0x80

FLUSH_NS = 500_000_000  # by the thread
UNWRITTEN_NS = 100_000_000  # by the next mark: a training that goes on loses no more of its steps to a kill
LAST_FLUSH_S = 5
KEEP_AT_MOST = 200_000  # marks kept in memory while the disk refuses them (about 15 MB)

now = time.monotonic_ns
REC = None


def clock():
    """What both clocks say at one moment; of five readings the one that other programs delayed least."""
    readings = []
    for _ in range(5):
        before = now()
        real = time.time_ns()
        after = now()
        readings.append((after - before, (before + after) // 2, real))
    _, monotonic, real = min(readings)
    return {"monotonic": monotonic, "realtime": real}


class Recorder:
    """Everything that is recorded goes through here. Thread-safe without locks on the hot path (the GIL orders it)."""

    def __init__(self, root, options):
        self.root = root
        self._options_text = options
        self._options = None
        self.off = False
        self.is_child = False  # made by a fork before it recorded anything
        self.waiting = False  # off for now: iterators are still told apart, for later
        self.folder = None
        self.pid = os.getpid()
        self.started = now()
        self.adopts = False  # whether iterators that were made before the hooks are taken in
        self.periodic = []  # called by the thread twice a second
        self.closing = []  # called before the last flush
        self._values = []  # of the marks since the last flush, one after the other
        self._pending = []
        self._lines = []
        self._flushed = self.started
        self.moved = self.started  # when marks were last written, or the folder was made
        self.live = None
        self._fds = None
        self._lock = _thread.RLock()
        self._flushing = False  # the same thread may record meanwhile: by the garbage collector, or a signal
        self._warned = set()
        self._dropped = 0
        self._torn = set()

    @property
    def options(self):
        """What the launcher said, as a dict."""
        if self._options is None:
            import json

            self._options = json.loads(self._options_text)
        return self._options

    def mark(self, kind, flag, subject, number, begin, end):
        """Record one interval. It is packed when it is written: here, code that is not in the caches costs most.

        Plain numbers, not a tuple that stays: the garbage collector would count it.
        """
        self._values.extend((kind, flag, subject, number, begin, end))
        if end - self._flushed > UNWRITTEN_NS:
            self.flush()

    def has_marks(self):
        """Whether something was recorded since the last flush."""
        return bool(self._values or self._pending)

    def event(self, name, **fields):
        """Record something rare, as a JSON line, and flush."""
        self.line(name, **fields)
        self.flush()

    def line(self, name, **fields):
        """Record something less rare, as a JSON line, to be flushed with the next marks."""
        import json

        fields["e"] = name
        fields.setdefault("t", now())
        self.open()
        self._lines.append(json.dumps(fields, default=str))

    def warn(self, code, message):
        """Record a warning once per code."""
        if code not in self._warned:
            self._warned.add(code)
            self.event("warning", code=code, message=message)

    def failed(self, where):
        """Record that a hook failed (called in an except block); the training goes on."""
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
            name = "proc-%d-%d" % (self.pid, self.started)
            folder = os.path.join(self.root, name)
            os.mkdir(folder)  # a spool that was deleted stays deleted: the place may be another run's by now
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
            self._fds = [os.open(os.path.join(folder, leaf), flags, 0o644) for leaf in ("marks.bin", "events.jsonl")]
            self.folder = folder
            self.moved = now()
        self.event("process", **self._about())
        import threading

        from . import live, threads

        self.live = live.Whereabouts(self)
        self.periodic += [threads.Look(), self.live]
        thread = threading.Thread(target=self._run, name="pipeprof", daemon=True)
        thread.start()
        if self.is_child:
            _end_with_multiprocessing()

    def _about(self):
        import platform

        environ = os.environ
        rank = next((environ[key] for key in ("RANK_ID", "OMPI_COMM_WORLD_RANK", "PMI_RANK") if key in environ), None)
        return {
            "pid": self.pid,
            "ppid": os.getppid(),
            "host": platform.node(),
            "python": platform.python_version(),
            "executable": sys.executable,
            "rank": int(rank) if rank is not None and rank.isdigit() else None,
            "role": environ.get("MS_ROLE"),
            "started": self.started,
            "run_id": self.options.get("run_id"),
            "cpu_limit_s": _cpu_limit_s(),
            **clock(),
        }

    def flush(self, wait_s=0):
        """Write what is pending. One thread at a time; another one returns at once, or waits up to `wait_s`."""
        if self.off or self._fds is None or not self._lock.acquire(wait_s > 0, wait_s if wait_s > 0 else -1):
            return
        inside, self._flushing = self._flushing, True
        try:
            if self._fds is None or inside:
                return
            self._flushed = now()
            self._pack()
            if self._pending:
                self.moved = self._flushed
            for fd, queue in zip(self._fds, (self._pending, self._lines)):
                self._drain(fd, queue, b"" if queue is self._pending else b"\n")
        finally:
            self._flushing = inside
            self._lock.release()

    def _pack(self):
        values, width, count = self._values, len(FIELDS), len(self._values)
        for at in range(0, count, width * TOGETHER):
            some = values[at : min(count, at + width * TOGETHER)]
            try:
                data = struct.pack("<" + FIELDS * (len(some) // width), *some)
            except struct.error:
                data = b"".join(_wrapped(*some[one : one + width]) for one in range(0, len(some), width))
            self._pending += [data[one : one + MARK.size] for one in range(0, len(data), MARK.size)]
        del values[:count]

    def _drain(self, fd, queue, end):
        count = len(queue)
        if not count:
            return
        data = b"".join((x if isinstance(x, bytes) else x.encode("utf-8", "replace")) + end for x in queue[:count])
        try:
            written = os.write(fd, data)
        except OSError as error:
            self._refused(error, fd, queue)
            return
        del queue[:count]
        self._torn.discard(fd)
        if written < len(data):
            self._torn.add(fd)
            queue.insert(0, data[written:] if not end else data[written : -len(end)])

    def _refused(self, error, fd, queue):
        if "disk" not in self._warned:
            self._warned.add("disk")
            text = "pipeprof: cannot write its record (%s); the training goes on\n" % error.strerror
            try:
                os.write(2, text.encode())
            except OSError:
                pass
        if len(queue) > KEEP_AT_MOST:
            torn = 1 if fd in self._torn else 0  # the rest of a record whose beginning is on the disk
            self._dropped += len(queue) - torn
            del queue[torn:]

    def _run(self):
        while not self.off:
            time.sleep(FLUSH_NS / 1e9)
            for call in self.periodic:
                try:
                    call()
                except Exception:
                    self.failed("periodic")
            self.flush()

    def close(self):
        """Last flush, in the interpreter's exit handlers."""
        if self.folder is not None and not self.off:
            for call in self.closing:
                try:
                    call()
                except Exception:
                    self.failed("closing")
            self.line("bye", dropped=self._dropped, realtime=time.time_ns())
            self.flush(LAST_FLUSH_S)  # the thread may be writing just now: without this nobody would write the rest

    def end(self):
        """Say goodbye and close the files: this recording is over, the process goes on."""
        self.close()
        with self._lock:
            self.off = True
            fds, self._fds = self._fds, None
        for fd in fds or ():
            os.close(fd)

    def forked(self):
        """In a forked child: fall silent if the parent was already training, otherwise start afresh."""
        self._values, self._pending, self._lines = [], [], []
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


def _wrapped(kind, flag, subject, number, begin, end):
    return MARK.pack(kind, flag, subject & 0xFFFFFFFF, number & 0xFFFFFFFF, begin, end)


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


def open_recorder(root, options):
    """Make the one recorder of this process and leave a trace that this Python is watched."""
    global REC
    REC = Recorder(root, options)
    line = '{"pid": %d, "ppid": %d}\n' % (os.getpid(), os.getppid())
    fd = os.open(os.path.join(root, "hello.jsonl"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(fd, line.encode())
    finally:
        os.close(fd)
    atexit.register(REC.close)
    atexit.register(_tell_failure, root)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=REC.forked)
    return REC
