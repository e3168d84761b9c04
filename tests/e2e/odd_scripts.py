"""Scripts that do what few programs do: with descriptors, processes, signals, limits, clocks. Each writes files.

`PLAIN` run without a training, so that the recorder is there but has recorded nothing. `TRAINING` run in the middle of
a real one, whose losses are written, too. A script that ends while a process of its own goes on leaves `last` behind.
"""

import textwrap

BEGIN = """
import errno, json, os, resource, signal, subprocess, sys, threading, time

def write(name, text):
    with open(name, "a") as file:
        file.write(str(text) + "\\n")

def raising(*_args, **_options):
    raise RuntimeError("a clock of the script's")

def daemonize():
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    os.umask(0o022)
    os.closerange(0, 4096)
    for number in range(3):
        write("numbers", os.open("/dev/null", os.O_RDWR) if number else os.open(os.path.abspath("in"), os.O_RDWR | os.O_CREAT))
"""

PLAIN = {
    "closes all and opens its own": """
        os.closerange(3, 4096)
        for number in range(5):
            write("numbers", os.open(f"own-{number}", os.O_RDWR | os.O_CREAT))
    """,
    "closes what it finds open": """
        for name in sorted(map(int, os.listdir("/proc/self/fd"))):
            if name > 2:
                try: os.close(name)
                except OSError: pass
        write("number", os.open("own", os.O_RDWR | os.O_CREAT))
    """,
    "closes numbers at random": """
        for number in (3, 5, 9, 17, 33):
            try: os.close(number)
            except OSError as error: write("errors", error.errno)
        write("number", os.open("own", os.O_RDWR | os.O_CREAT))
    """,
    "tells what is open": """
        write("open", sorted(os.listdir("/proc/self/fd")))
    """,
    "closes stdin": """
        os.close(0)
        write("number", os.open("own", os.O_RDWR | os.O_CREAT))
    """,
    "makes stdout a file": """
        os.close(1)
        os.open("own", os.O_RDWR | os.O_CREAT)
        print("said")
    """,
    "makes stderr a data file": """
        os.close(2)
        os.write(os.open("own", os.O_RDWR | os.O_CREAT), bytes(range(256)))
    """,
    "overwrites numbers": """
        own = os.open("own", os.O_RDWR | os.O_CREAT)
        for number in (2, *range(20, 60), 800, 900):
            os.dup2(own, number); os.write(number, b"x")
    """,
    "uses up its descriptors": """
        resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
        try:
            while True: os.open("/dev/null", os.O_RDONLY)
        except OSError as error: code = error.errno
        os.close(31); write("code", code)
    """,
    "wants high numbers": """
        import fcntl
        write("numbers", [fcntl.fcntl(1, fcntl.F_DUPFD, low) for low in (3, 100, 700, 800)])
    """,
    "talks over a socket pair": """
        import socket
        mine, other = socket.socketpair()
        if not os.fork():
            other.sendall(b"from the child"); os._exit(0)
        write("got", mine.recv(100)); os.wait()
    """,
    "hands a descriptor on": """
        own = os.open("own", os.O_RDWR | os.O_CREAT)
        subprocess.run([sys.executable, "-c", f"import os; os.write({own}, b'from the child')"], pass_fds=[own])
    """,
    "waits in select": """
        import select
        reading, writing = os.pipe()
        os.write(writing, b"x"); write("ready", (reading, select.select([reading], [], [], 10)[0]))
    """,
    "forks": """
        pid = os.fork()
        write("who", "child" if not pid else os.waitpid(pid, 0)[1])
    """,
    "forks and exits in the child": """
        pid = os.fork()
        if not pid: sys.exit(7)
        write("status", os.waitpid(pid, 0)[1])
    """,
    "forks a hundred": """
        for number in range(100):
            if not os.fork(): os._exit(number)
            write("status", os.wait()[1])
    """,
    "becomes a daemon": """
        daemonize()
        write("daemon", "wrote"); write("last", "")
    """,
    "leaves a process behind": """
        if not os.fork():
            time.sleep(1); write("late", "wrote"); write("last", ""); os._exit(0)
    """,
    "forks in a thread": """
        def work():
            pid = os.fork()
            if not pid: write("child", "wrote"); os._exit(3)
            write("status", os.waitpid(pid, 0)[1])
        thread = threading.Thread(target=work); thread.start(); thread.join()
    """,
    "has a process of multiprocessing": """
        import multiprocessing
        context = multiprocessing.get_context("fork")
        child = context.Process(target=write, args=("child", "wrote")); child.start(); child.join()
        write("code", child.exitcode)
    """,
    "has a pool of processes": """
        import multiprocessing
        with multiprocessing.get_context("fork").Pool(3) as pool: write("squares", pool.map(abs, range(-50, 50)))
    """,
    "has spawned processes": """
        import multiprocessing
        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(2) as pool: write("squares", pool.map(abs, range(-50, 50)))
    """,
    "spawns a program": """
        pid = os.posix_spawn(sys.executable, [sys.executable, "-c", "open('child', 'w').write('wrote')"], os.environ)
        write("status", os.waitpid(pid, 0)[1])
    """,
    "becomes another program": """
        os.execv(sys.executable, [sys.executable, "-c", "open('after', 'w').write('wrote'); raise SystemExit(5)"])
    """,
    "becomes a shell": """
        os.execvpe("sh", ["sh", "-c", "echo said; ls /proc/self/fd > open; exit 4"], {"PATH": os.environ["PATH"]})
    """,
    "starts isolated Pythons": """
        for option in ("-I", "-S", "-E", "-B", "-s"):
            done = subprocess.run([sys.executable, option, "-c", "print('said')"], capture_output=True)
            write("said", (option, done.returncode, done.stdout, done.stderr))
    """,
    "clears its environment": """
        os.environ.clear()
        done = subprocess.run([sys.executable, "-c", "import os; print(sorted(os.environ))"], capture_output=True)
        write("said", (done.returncode, done.stdout, done.stderr))
    """,
    "is told the time by an alarm": """
        got = []
        signal.signal(signal.SIGALRM, lambda *_: got.append(1)); signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        while len(got) < 5: pass
        signal.setitimer(signal.ITIMER_REAL, 0); write("alarms", len(got) >= 5)
    """,
    "raises from a signal": """
        signal.signal(signal.SIGUSR1, raising)
        try: os.kill(os.getpid(), signal.SIGUSR1); time.sleep(1)
        except RuntimeError as error: write("error", error)
    """,
    "is ended by itself": """
        write("before", "wrote"); os.kill(os.getpid(), signal.SIGTERM); write("after", "wrote")
    """,
    "is interrupted": """
        try: signal.raise_signal(signal.SIGINT)
        finally: write("finally", "wrote")
    """,
    "ignores its children": """
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        if not os.fork(): os._exit(0)
        try: os.wait()
        except ChildProcessError as error: write("error", error.errno)
    """,
    "blocks signals": """
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1]); os.kill(os.getpid(), signal.SIGUSR1)
        write("pending", signal.sigpending())
    """,
    "is woken by a descriptor": """
        reading, writing = os.pipe(); os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing); signal.signal(signal.SIGUSR1, lambda *_: None)
        signal.raise_signal(signal.SIGUSR1); write("bytes", os.read(reading, 10))
    """,
    "aborts": """
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); write("before", "wrote"); os.abort()
    """,
    "has small files": """
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        try: open("own", "w").write("x" * 5000)
        except OSError as error: write("error", error.errno)
    """,
    "dies of a large file": """
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL); resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); os.write(os.open("own", os.O_RDWR | os.O_CREAT), bytes(1000))
        os.write(os.open("own", os.O_RDWR | os.O_APPEND), b"x")
    """,
    "has little memory": """
        resource.setrlimit(resource.RLIMIT_AS, (1 << 31, 1 << 31))
        try: bytearray(1 << 32)
        except MemoryError: write("error", "memory")
    """,
    "hides its files": """
        os.umask(0o777); os.close(os.open("own", os.O_RDWR | os.O_CREAT)); write("mode", oct(os.stat("own").st_mode)); os.umask(0)
    """,
    "removes its folder": """
        os.mkdir("gone"); os.chdir("gone"); os.rmdir("../gone")
        try: os.getcwd()
        except OSError as error: print(error.errno)
    """,
    "has no time": """
        time.time = time.monotonic = time.time_ns = time.monotonic_ns = time.perf_counter = lambda: 0
        write("time", (time.time(), time.monotonic_ns()))
    """,
    "has clocks that raise": """
        for name in ("time", "time_ns", "monotonic", "monotonic_ns", "thread_time_ns", "process_time_ns", "sleep"):
            setattr(time, name, raising)
        write("own", "wrote"); subprocess.run([sys.executable, "-c", "print('said')"])
    """,
    "never sleeps": """
        time.sleep = lambda _seconds: None
        time.sleep(1000); write("own", "wrote")
    """,
    "watches what is opened": """
        import builtins
        real, real_open = os.open, builtins.open
        seen = []
        os.open = lambda path, *args, **options: seen.append(str(path)) or real(path, *args, **options)
        builtins.open = lambda path, *args, **options: seen.append(str(path)) or real_open(path, *args, **options)
        subprocess.run([sys.executable, "-c", "print('said')"]); pid = os.fork()
        if not pid: os._exit(0)
        os.wait(); builtins.open = real_open; write("seen", seen)
    """,
    "cannot write": """
        os.write = os.fstat = os.open = os.close = raising
        pid = os.fork()
        if not pid: os._exit(0)
        os.wait(); write("own", "wrote")
    """,
    "traces itself": """
        seen = []
        def trace(frame, event, argument):
            if frame.f_code.co_filename == __file__: seen.append((frame.f_lineno, event))
            return trace
        sys.settrace(trace); write("own", "wrote"); sys.settrace(None); write("seen", seen)
    """,
    "counts its calls": """
        seen = []
        sys.setprofile(lambda frame, event, _: seen.append((event, frame.f_code.co_name))); write("own", "wrote")
        sys.setprofile(None); write("seen", seen)
    """,
    "hears of imports and opened files": """
        seen = []
        sys.addaudithook(lambda name, args: seen.append(name) if name in ("open", "os.fork", "subprocess.Popen") else None)
        if not os.fork(): os._exit(0)
        os.wait(); write("seen", seen)
    """,
    "loads modules anew": """
        import importlib
        for module in (os, time, json, threading, signal): importlib.reload(module)
        write("own", "wrote")
    """,
    "forgets its modules": """
        for name in list(sys.modules):
            if name not in ("sys", "builtins", "__main__"): del sys.modules[name]
        write("own", "wrote")
    """,
    "ends in its exit handlers": """
        import atexit
        atexit.register(os._exit, 9); atexit.register(write, "own", "wrote")
    """,
    "raises in its exit handlers": """
        import atexit
        atexit.register(raising)
    """,
    "replaces what tells errors": """
        sys.excepthook = lambda kind, *_: write("error", kind.__name__)
        raise KeyError("x")
    """,
    "closes its streams": """
        sys.stdout.close(); sys.stderr.close(); write("own", "wrote")
    """,
    "exits with words": """
        write("own", "wrote"); sys.exit("last words")
    """,
    "uses threads that fail": """
        threading.excepthook = lambda args: write("error", args.exc_type.__name__)
        thread = threading.Thread(target=raising); thread.start(); thread.join()
    """,
    "tells its own frames": """
        write("frames", sorted(frame.f_code.co_filename == __file__ for frame in sys._current_frames().values()))
        write("threads", [thread.name for thread in threading.enumerate()])
    """,
    "waits for a group": """
        os.setpgid(0, 0); child = subprocess.Popen(["sleep", "100"]); os.kill(child.pid, signal.SIGKILL)
        write("status", child.wait())
    """,
}  # fmt: skip

TRAIN = """
import mindspore, parts
from mindspore import dataset as ds
mindspore.set_seed(1)
parts.pynative()
trainer = parts.Trainer()
STEPS, TRICK = 60, 20  # of 20 ms: the recorder writes before the trick, and twice a second after it

def steps(data=None):
    for number, (x, y) in enumerate((data or parts.rows(STEPS, 0.02)).create_tuple_iterator(num_epochs=1)):
        yield number
        write("losses", trainer.step(x, y).asnumpy().tobytes().hex())
    write("steps", number)

def exhaust(free):
    opened = []
    try:
        while True: opened.append(os.open("/dev/null", os.O_RDONLY))
    except OSError: pass
    for number in opened[len(opened) - free :]: os.close(number)
"""

TRAINING = {
    "closes all": """
        for number in steps():
            if number == TRICK:
                os.closerange(3, 4096)
                own = [os.open(f"own-{name}", os.O_RDWR | os.O_CREAT) for name in range(20)]
    """,
    "closes all, again and again": """
        for number in steps():
            if number % 5 == 4:
                os.closerange(3, 70000)
                for name in range(8): os.write(os.open(f"own-{number}-{name}", os.O_RDWR | os.O_CREAT), b"own")
    """,
    "closes numbers at random": """
        for number in steps():
            try:  # MindSpore's own sampler closes the number that it has for a moment, whoever has it by then
                if not os.readlink(f"/proc/self/fd/{number}").startswith("/proc/"): os.close(number)
            except OSError: pass
            os.write(os.open(f"own-{number}", os.O_RDWR | os.O_CREAT), b"own")
    """,
    "overwrites every number": """
        for number in steps():
            if number == TRICK:
                own = os.open("own", os.O_RDWR | os.O_CREAT)
                for other in map(int, os.listdir("/proc/self/fd")):
                    if other > 2 and other != own: os.dup2(own, other)
                os.write(own, b"own")
    """,
    "redirects stderr": """
        for number in steps():
            if number in (5, TRICK, 40):
                os.dup2(os.open(f"log-{number}", os.O_RDWR | os.O_CREAT), 2)
            os.write(2, b"step %d\\n" % number)
    """,
    "redirects stderr while a batch is fetched": """
        class Rows(parts.Rows):
            def __getitem__(self, index):
                if index == 40:
                    os.dup2(os.open("log", os.O_RDWR | os.O_CREAT), 2); os.write(2, b"said")
                return super().__getitem__(index)
        for number in steps(ds.GeneratorDataset(Rows(STEPS, 0.02), ["x", "y"], shuffle=False).batch(4)): pass
        os.write(2, b" and again")
    """,
    "closes all while a batch is fetched": """
        own_files, write_alone, compiled = threading.Lock(), write, threading.Event()
        def write(name, what):
            with own_files: write_alone(name, what)
        class Rows(parts.Rows):
            def __getitem__(self, index):
                if index == 20: compiled.wait()  # for the step MindSpore reads source files, which it opens as anybody
                with own_files:
                    if index in (20, 40):
                        os.closerange(3, 70000)
                        for name in range(6): os.write(os.open(f"own-{index}-{name}", os.O_RDWR | os.O_CREAT), b"own")
                return super().__getitem__(index)
        for number in steps(ds.GeneratorDataset(Rows(STEPS, 0.02), ["x", "y"], shuffle=False).batch(4)):
            if number: compiled.set()
    """,
    "makes stderr a data file": """
        for number in steps():
            if number == TRICK:
                os.close(2); own = os.open("own", os.O_RDWR | os.O_CREAT); os.write(own, bytes(range(256)))
    """,
    "closes everything in a thread": """
        own_files, write_alone, compiled = threading.Lock(), write, threading.Event()
        def write(name, what):
            with own_files: write_alone(name, what)
        def work():
            for number in range(200):
                with own_files:
                    os.closerange(3, 70000)
                    own = os.open(f"own-{number}", os.O_RDWR | os.O_CREAT); os.write(own, b"own")
                time.sleep(0.005)
        thread = threading.Thread(target=work)
        for number in steps():
            if number == 10: thread.start()
        thread.join()
    """,
    "forks": """
        for number in steps():
            if number % 10 == 5:
                pid = os.fork()
                if not pid:
                    own = os.open(f"child-{number}", os.O_RDWR | os.O_CREAT); os.write(own, b"own"); os._exit(0)
                write("status", os.waitpid(pid, 0)[1])
    """,
    "becomes a daemon first": """
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        for number in steps():
            if number == 0: pass
        write("last", "")
    """,
    "leaves a daemon behind": """
        for number in steps():
            if number == TRICK and not os.fork():
                os.setsid(); os.closerange(0, 4096)
                for name in range(3): write("numbers", os.open(os.path.abspath("own"), os.O_RDWR | os.O_CREAT))
                time.sleep(1); write("late", "wrote"); write("last", ""); os._exit(0)
    """,
    "becomes another program": """
        for number in steps():
            if number == 40:
                os.execv(sys.executable, [sys.executable, "-c", "open('after', 'w').write('wrote'); raise SystemExit(5)"])
    """,
    "is stopped by an alarm": """
        class Late(Exception): pass
        def late(*_): raise Late
        signal.signal(signal.SIGALRM, late)
        try:
            signal.setitimer(signal.ITIMER_REAL, 3600)
            for number in steps():
                if number == TRICK: os.kill(os.getpid(), signal.SIGALRM)
        except Late: write("late", number)
    """,
    "is ended by itself": """
        for number in steps():
            if number == 40: os.kill(os.getpid(), signal.SIGTERM)
    """,
    "leaves at once": """
        for number in steps():
            if number == 40: os._exit(6)
    """,
    "has few descriptors from the beginning": """
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)); exhaust(4)
        for number in steps(): pass
    """,
    # With two, 3 of 48 fail where nothing is recorded: MindSpore opens /proc/meminfo for an allocation, in two threads.
    "has three descriptors from the beginning": """
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)); exhaust(3)
        for number in steps(): pass
    """,
    "has ever fewer descriptors": """
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)); own = []
        for number in steps():  # never the last ones: whoever opens a file at that moment would fail, MindSpore, too
            for _ in range(12):
                if 256 - len(os.listdir("/proc/self/fd")) > 8: own.append(os.open("/dev/null", os.O_RDONLY))
        for one in own: os.close(one)
    """,
    "never sleeps": """
        time.sleep = lambda _seconds: None
        for number in steps(): pass
    """,
    "has clocks that raise": """
        for name in ("thread_time_ns", "process_time_ns", "monotonic_ns", "time_ns", "thread_time", "sleep"): setattr(time, name, raising)
        rows = parts.Rows(STEPS)
        def twice(x): return x * 2
        data = ds.GeneratorDataset(rows, ["x", "y"], shuffle=False).map(twice, ["x"]).batch(4)
        for number in steps(data):
            for _ in range(200000): pass
    """,
    "cannot write": """
        os.write = os.fstat = os.pread = os.ftruncate = os.dup2 = raising
        for number in steps(): pass
    """,
    "has small files": """
        resource.setrlimit(resource.RLIMIT_FSIZE, (12000, 12000))
        for number in steps(): pass
    """,
    "dies of a large file": """
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL); resource.setrlimit(resource.RLIMIT_FSIZE, (12000, 12000))
        for number in steps(): pass
    """,
    "removes its folder": """
        for number in steps():
            if number == TRICK: os.umask(0o777); os.close(os.open("own", os.O_CREAT | os.O_RDWR)); os.umask(0o022)
    """,
    "hears who calls the functions that it replaced": """
        import builtins, json
        seen = set()
        def heard(name, real):
            def call(*args, **options):
                caller = sys._getframe(1).f_code.co_filename
                if "/pipeprof/" in caller or "/lib/" not in caller and caller[0] != "<": seen.add((name, os.path.basename(caller)))
                return real(*args, **options)
            return call
        for module, names in (
            (time, "time time_ns monotonic monotonic_ns perf_counter perf_counter_ns thread_time_ns sleep"),
            (os, "open close write read pread fstat stat dup dup2 ftruncate listdir rename mkdir remove unlink"),
            (builtins, "open"),
            (json, "dump dumps load loads"),
        ):
            for name in names.split(): setattr(module, name, heard(name, getattr(module, name)))
        for number in steps(): pass
        write("seen", sorted(seen))
    """,
}  # fmt: skip


def source(name, *, training, workloads):
    """The text of a script."""
    body = textwrap.dedent(TRAINING[name] if training else PLAIN[name])
    if not training:
        return BEGIN + body
    before = "daemonize()\n" if name == "becomes a daemon first" else ""
    return BEGIN + before + f"sys.path.insert(0, {str(workloads)!r})\n" + TRAIN + body
