"""The command cannot tell that it is recorded, and neither can whoever started it."""

import json
import os
import pty
import select
import shlex
import signal
import stat
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from conftest import LIMIT_S, PYTHON, Recording, words

FACTS = """
import json, os, signal, sys, threading
facts = {
    "path": sys.path, "argv": sys.argv, "cwd": os.getcwd(), "environment": dict(os.environ),
    "files": sorted(int(fd) for fd in os.listdir("/proc/self/fd")),
    "targets": [os.readlink(f"/proc/self/fd/{fd}").rstrip("[]0123456789") for fd in (0, 1, 2)],
    "hook": sys.excepthook is sys.__excepthook__, "trace": sys.gettrace(), "profile": sys.getprofile(),
    "displayhook": sys.displayhook is sys.__displayhook__, "unraisable": sys.unraisablehook is sys.__unraisablehook__,
    "signals": {str(number): str(signal.getsignal(number)) for number in signal.valid_signals()},
    "blocked": sorted(int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "ignored": sorted(n for n in signal.valid_signals() if n < 32 and signal.getsignal(n) == signal.SIG_IGN),
    "limits": [__import__("resource").getrlimit(number) for number in range(10)],
    "threads": threading.active_count(), "umask": os.umask(0), "nice": os.nice(0),
    "group": os.getpgrp() == os.getpgid(os.getppid()), "session": os.getsid(0) == os.getsid(os.getppid()),
    "main": sorted(name for name in vars(__import__("__main__")) if name.startswith("_")),
    "flags": str(sys.flags), "warnings": sys.warnoptions,
}
json.dump(facts, sys.stdout)
"""


@pytest.fixture
def facts_script(tmp_path):
    path = tmp_path / "facts.py"
    path.write_text(FACTS, encoding="utf-8")
    return path


def both(pipeprof, command, **how):
    """Results of a command without and with pipeprof, which itself is told to be quiet."""
    how = {"text": False} | how
    plain = pipeprof.plain(command, **how)
    return plain, pipeprof.collect(command, "-q", **how).done


# For the user's code only: the launcher is a Python of its own, in which a sitecustomize runs too.
IN_COMMAND = "import sys\nif 'pipeprof' not in sys.orig_argv:\n    "


@pytest.fixture(scope="module")
def found_facts(pipeprof_in):
    """What a script finds around it, without and with pipeprof."""
    pipeprof = pipeprof_in("facts")
    script = pipeprof.folder / "facts.py"
    script.write_text(FACTS, encoding="utf-8")
    how = {"cwd": pipeprof.folder, "stdin": subprocess.DEVNULL}
    return [json.loads(done.stdout) for done in both(pipeprof, [pipeprof.python, str(script), "--lr", "1"], **how)]


@pytest.mark.parametrize("name", [
    "path", "argv", "cwd", "files", "targets", "hook", "trace", "profile", "displayhook", "unraisable", "signals", "blocked",
    "ignored", "limits", "threads", "umask", "nice", "group", "session", "main", "flags", "warnings",
])  # fmt: skip
def test_process_finds_everything_as_without(found_facts, name):
    expected, found = found_facts
    assert json.dumps(found[name]) == json.dumps(expected[name])


def test_only_its_own_variables_are_added_to_the_environment(pipeprof, facts_script):
    plain, done = both(pipeprof, [pipeprof.python, str(facts_script)])
    expected, found = (json.loads(result.stdout)["environment"] for result in (plain, done))
    changed = {name for name in {*expected, *found} if expected.get(name) != found.get(name)}
    assert all(name == "PYTHONPATH" or name.startswith("PIPEPROF_") for name in changed), changed


def test_users_pythonpath_still_leads_to_modules(pipeprof, tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "mine.py").write_text("word = 'found'\n", encoding="utf-8")
    command = [pipeprof.python, "-c", "import mine, sys; print(mine.word, sys.path)"]
    plain, done = both(pipeprof, command, env=pipeprof.environment(PYTHONPATH=str(folder)))
    assert done.stdout == plain.stdout
    assert b"found" in done.stdout


def test_users_sitecustomize_still_runs_once(pipeprof, tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(IN_COMMAND + "print('custom', __file__, __name__)\n", encoding="utf-8")
    command = [pipeprof.python, "-c", "import sitecustomize; print(sitecustomize.__file__)"]
    plain, done = both(pipeprof, command, env=pipeprof.environment(PYTHONPATH=str(folder)))
    assert done.stdout == plain.stdout
    assert done.stdout.count(b"custom ") == 1


def test_failing_sitecustomize_of_the_user_is_told_as_without(pipeprof, tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("raise ValueError('broken custom')\n", encoding="utf-8")
    plain, done = both(pipeprof, [pipeprof.python, "-c", "print(1)"], env=pipeprof.environment(PYTHONPATH=str(folder)))
    assert done.stdout == plain.stdout
    assert done.returncode == plain.returncode
    assert b"broken custom" in plain.stderr
    assert b"broken custom" in done.stderr


def test_open_files_of_the_caller_are_inherited_and_no_others(pipeprof, tmp_path):
    with (tmp_path / "open").open("wb") as file:
        os.set_inheritable(file.fileno(), True)
        command = [
            pipeprof.python,
            "-c",
            f"import os; print(sorted(os.listdir('/proc/self/fd'))); os.write({file.fileno()}, b'x')",
        ]
        plain, done = both(pipeprof, command, close_fds=False)
    assert done.stdout == plain.stdout
    assert (tmp_path / "open").read_bytes() == b"xx"


def test_bytes_pass_unchanged(pipeprof):
    data = bytes(range(256)) * 5000
    code = "import shutil, sys; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer); sys.stderr.buffer.write(bytes(range(256)))"
    _, done = both(pipeprof, [pipeprof.python, "-c", code], input=data)
    assert done.stdout == data
    assert done.stderr == bytes(range(256))


@pytest.mark.parametrize(
    ("code", "status", "told"),
    [
        ("pass", 0, b""),
        ("raise SystemExit(3)", 3, b""),
        ("import sys; sys.exit('in words')", 1, b"in words\n"),
        ("1 / 0", 1, b"ZeroDivisionError: division by zero\n"),
        ("import os; os._exit(200)", 200, b""),
    ],
)
def test_exit_code_and_last_words_are_the_commands(pipeprof, code, status, told):
    plain, done = both(pipeprof, [pipeprof.python, "-c", code])
    assert done.returncode == plain.returncode == status
    assert done.stderr == plain.stderr
    assert done.stderr.endswith(told)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGSEGV", "SIGABRT", "SIGINT", "SIGUSR1"])
def test_death_by_a_signal_is_the_callers_to_see(pipeprof, name):
    number = getattr(signal, name)
    code = f"import os, signal; signal.signal({int(number)}, signal.SIG_DFL)" if name == "SIGINT" else "import os"
    recording = pipeprof.collect([pipeprof.python, "-c", f"{code}; os.kill(os.getpid(), {int(number)})"], "-q")
    assert recording.done.returncode == -number
    assert name in recording.manifest.reason


def test_broken_pipe_ends_the_command_as_without(pipeprof):
    script = "set -o pipefail; {} | head -c 10 > /dev/null"
    code = f"{shlex.quote(pipeprof.python)} -c \"import signal; print(signal.getsignal(signal.SIGPIPE)); [print('x' * 1000) for _ in range(10000)]\""
    plain = subprocess.run(
        ["bash", "-c", script.format(code)], capture_output=True, check=False, env=pipeprof.environment()
    )
    words = f"{shlex.quote(pipeprof.python)} -m pipeprof collect -q -o {shlex.quote(str(pipeprof.out()))} -- {code}"
    done = subprocess.run(
        ["bash", "-c", script.format(words)], capture_output=True, check=False, env=pipeprof.environment()
    )
    assert done.returncode == plain.returncode
    assert done.stderr == plain.stderr


# What the caller does with SIGPIPE cannot be known: the launcher's own Python ignores it before any code of ours runs.
@pytest.mark.alone  # forks, which a process with threads may not, and a worker of pytest-xdist has some
@pytest.mark.parametrize(("name", "ignored"), [
    ("SIGPIPE", False), ("SIGINT", False), ("SIGINT", True), ("SIGHUP", False), ("SIGHUP", True), ("SIGCHLD", False),
])  # fmt: skip
def test_signals_are_ignored_by_the_command_only_if_the_caller_did(pipeprof, name, ignored):
    number = getattr(signal, name)

    def prepare():
        signal.signal(number, signal.SIG_IGN if ignored else signal.SIG_DFL)

    for done in both(pipeprof, ["cat", "/proc/self/status"], preexec_fn=prepare, restore_signals=False):
        line = next(line for line in done.stdout.splitlines() if line.startswith(b"SigIgn"))
        assert bool(int(line.split()[1], 16) >> (number - 1) & 1) == ignored


def ignoring(name, words):
    """The words, begun by a caller that ignores a signal, as `nohup` does."""
    code = (
        "import os, signal, sys; signal.signal(int(sys.argv[1]), signal.SIG_IGN); os.execvp(sys.argv[2], sys.argv[2:])"
    )
    return [PYTHON, "-c", code, str(int(getattr(signal, name))), *words]


@pytest.mark.parametrize("name", ["SIGHUP", "SIGINT", "SIGTERM"])
def test_a_signal_that_the_caller_ignores_ends_no_recording(pipeprof, name):
    out = pipeprof.out()
    command = ["sh", "-c", f"kill -{name.removeprefix('SIG')} $PPID; sleep 0.5"]
    collect = words("-q", "--reps", "2", out=out, command=command)
    done = subprocess.run(ignoring(name, collect), env=pipeprof.environment(), check=False, timeout=LIMIT_S)
    assert done.returncode == 0
    assert len(Recording(out, done).manifest.reps) == 2


def test_how_the_command_ended_is_known_where_the_caller_ignores_the_end_of_children(pipeprof):
    collect = words("-q", out=pipeprof.out(), command=["sh", "-c", "exit 3"])
    assert subprocess.run(ignoring("SIGCHLD", collect), env=pipeprof.environment(), check=False).returncode == 3


COUNTER = """
import os, signal, sys, time
got = []
for name in sys.argv[1:]:
    signal.signal(getattr(signal, name), lambda number, frame: got.append(number))
print("ready", os.getpid(), flush=True)
end = time.monotonic() + 120
while not got and time.monotonic() < end:
    time.sleep(0.01)
time.sleep(0.7)
print("got", len(got), flush=True)
"""


def start_counter(pipeprof, name, **how):
    launcher, out = pipeprof.start([pipeprof.python, "-u", "-c", COUNTER, name], "-q", **how)
    return launcher, out


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH"])
def test_signal_to_pipeprof_reaches_the_command_once(pipeprof, name):
    launcher, _ = start_counter(pipeprof, name)
    assert launcher.stdout.readline().startswith(b"ready")
    os.kill(launcher.pid, getattr(signal, name))
    text, errors = launcher.communicate(timeout=LIMIT_S)
    assert text == b"got 1\n"
    assert errors == b""
    assert launcher.returncode == 0


def test_signal_right_at_the_start_is_not_lost(pipeprof):
    launcher, out = pipeprof.start(["sleep", "600"], "-q")
    while not list(out.glob("spool/rep=0/launch.json")):
        time.sleep(0.005)
    os.kill(launcher.pid, signal.SIGTERM)
    launcher.communicate(timeout=300)  # shorter than the sleep
    assert launcher.returncode == -signal.SIGTERM


class Terminal:
    """A command on a terminal of its own, as the leader of its session."""

    def __init__(self, command, env):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], command, env)  # noqa: S606 - pty.fork needs it
        self.text = b""

    def read_until(self, word):
        end = time.monotonic() + LIMIT_S
        while word not in self.text:
            assert time.monotonic() < end, self.text
            ready, _, _ = select.select([self.master], [], [], 1.0)
            if not ready:
                continue
            try:
                data = os.read(self.master, 65536)
            except OSError:
                break
            if not data:
                break
            self.text += data
        assert word in self.text, self.text

    def end(self):
        try:
            while data := os.read(self.master, 65536):
                self.text += data
        except OSError:
            pass
        os.close(self.master)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def on_terminal(pipeprof, command, *options):
    words = [pipeprof.python, "-m", "pipeprof", "collect", "-o", str(pipeprof.out()), *options, "--", *command]
    return Terminal(words, pipeprof.environment())


@pytest.mark.alone
def test_all_three_streams_stay_the_terminal(pipeprof):
    terminal = on_terminal(pipeprof, [pipeprof.python, "-c", "import os; print('tty', *map(os.isatty, (0, 1, 2)))"])
    assert terminal.end() == 0
    assert b"tty True True True" in terminal.text


@pytest.mark.alone
def test_ctrl_c_on_a_terminal_reaches_the_command_once(pipeprof):
    terminal = on_terminal(pipeprof, [pipeprof.python, "-c", COUNTER, "SIGINT"], "-q")
    terminal.read_until(b"ready")
    os.write(terminal.master, b"\x03")
    terminal.read_until(b"got")
    status = terminal.end()
    assert b"got 1\r\n" in terminal.text
    assert status == 0


@pytest.mark.alone
def test_typed_words_reach_the_command(pipeprof):
    terminal = on_terminal(pipeprof, [pipeprof.python, "-c", "print('read', input('name? '))"], "-q")
    terminal.read_until(b"name? ")
    os.write(terminal.master, b"somebody\n")
    terminal.read_until(b"read somebody")
    assert terminal.end() == 0


@pytest.mark.alone
def test_stopping_and_going_on_work(pipeprof):
    terminal = on_terminal(pipeprof, [pipeprof.python, "-c", COUNTER, "SIGCONT"], "-q")
    terminal.read_until(b"\n")  # the whole line
    child = int(terminal.text.split()[-1])
    os.kill(child, signal.SIGSTOP)
    time.sleep(0.3)
    os.kill(child, signal.SIGCONT)
    terminal.read_until(b"got 1")
    assert terminal.end() == 0


def test_nothing_but_the_run_is_written(pipeprof, tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    recording = pipeprof.collect([pipeprof.python, "-c", "print(1)"], cwd=folder)
    assert recording.done.stdout == "1\n"
    assert list(folder.iterdir()) == []
    assert not recording.run.spool.exists()
    assert stat.S_IMODE(recording.path.stat().st_mode) & 0o700 == 0o700


def numbered(text, who):
    return Counter(line for line in text.splitlines() if line.startswith(who + " "))


@pytest.mark.mindspore
@pytest.mark.parametrize("place", ["main", "map", "thread", "process", "subprocess"])
def test_stderr_lines_of_a_training_come_once_and_alone(pipeprof, place):
    recording = pipeprof.collect(pipeprof.script("chatter.py", place), "-q", "--queue-interval", "10")
    assert recording.done.returncode == 0, recording.done.stderr
    text = recording.done.stderr
    assert "PROF Dataset" not in text
    assert "worker_time" not in text
    assert "-- " not in text
    expected = {
        "main": ("main", 30), "map": ("map", 120), "process": ("process", 120), "subprocess": ("child", 30),
        "thread": ("thread", int(recording.done.stdout.split()[1]) if place == "thread" else 0),
    }[place]  # fmt: skip
    found = numbered(text, expected[0])
    assert sum(found.values()) == expected[1]
    assert place == "process" or set(found.values()) == {1}
    assert len(text.splitlines()) == (60 if place == "main" else expected[1]), text
    assert recording.rows("op_service")


@pytest.mark.mindspore
def test_stderr_of_a_dying_training_is_not_lost(pipeprof):
    command = pipeprof.script("endings.py", "exception", "20")
    plain, done = both(pipeprof, command, text=True)
    assert done.stderr == plain.stderr
    assert "broken on purpose" in done.stderr


@pytest.mark.alone
@pytest.mark.mindspore
def test_terminal_stays_one_for_the_threads_of_a_training_without_service_times(pipeprof):
    terminal = on_terminal(pipeprof, pipeprof.script("chatter.py", "silent"), "-q", "--no-service")
    assert terminal.end() == 0, terminal.text
    assert b"tty 120 of 120, files 1" in terminal.text


@pytest.mark.mindspore
def test_output_of_a_training_is_the_same(pipeprof, tmp_path):
    code = Path(__file__).parent / "workloads" / "endings.py"
    plain, done = both(pipeprof, [pipeprof.python, str(code), "exit0", "10"], text=True)
    shape = [[line.split()[:2] for line in result.stdout.splitlines()] for result in (plain, done)]
    assert shape[0] == shape[1]
    assert done.stderr == plain.stderr


@pytest.mark.mindspore
@pytest.mark.parametrize(("kind", "steps", "how"), [
    ("map", "12", ""), ("about", "3", ""), ("map", "12", "fail"), ("batch", "12", "fail"), ("source", "12", "fail"),
])  # fmt: skip
def test_worker_processes_give_the_same_rows_and_errors(pipeprof, kind, steps, how):
    """How many rows arrive before an error is chance. A source is called through one frame of ours (decision 5)."""
    plain, done = both(pipeprof, pipeprof.script("workers.py", kind, steps, how), text=True)
    texts = [result.stdout.partition("truth ")[0].splitlines() for result in (plain, done)]
    passing = ("rows", *(["  "] if kind == "source" else [])) if how else ()
    found = [[line for line in text if not line.startswith(passing)] for text in texts]
    assert found[0] == found[1]
    assert done.returncode == plain.returncode
    assert any("broken on purpose" in line for line in found[1]) == (how == "fail")


FAILS_UNSEEN = """
import sys

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import Tensor, nn, ops

ms.set_context(mode=ms.PYNATIVE_MODE)
data = ds.NumpySlicesDataset(np.ones((32, 8), np.float32), ["x"], shuffle=False).batch(4)
net = nn.Dense(8, 4)
optimizer = nn.SGD(net.trainable_params(), 0.1)
step = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)
try:
    for number, (x,) in enumerate(data.create_tuple_iterator()):
        _, gradients = step(x)
        if number == 2:
            ops.gather_d(x, 1, Tensor(np.full((4, 1), 99), ms.int32))  # out of range; nobody asks for what it gives
        optimizer(gradients)
except RuntimeError:
    print("raised in step", number)
    sys.exit(3)
print("went on to the end")
"""


@pytest.mark.mindspore
def test_an_error_of_an_operator_that_nobody_reads_is_raised_in_its_step(pipeprof, tmp_path):
    """PyNative launches operators ahead, and an error waits until somebody does: in an op window that is the probe."""
    script = tmp_path / "unseen.py"
    script.write_text(FAILS_UNSEEN, encoding="utf-8")
    plain, recorded = both(pipeprof, [pipeprof.python, str(script)], text=True)
    assert plain.returncode == recorded.returncode == 3
    # Without the probe it is MindSpore's next look for errors that raises it, in the same step or the next one.
    assert plain.stdout.splitlines()[-1] in ("raised in step 2", "raised in step 3")
    assert recorded.stdout.splitlines()[-1] == "raised in step 2"
