"""The recorder's descriptors, when the program closes all of them and opens files of its own under their numbers."""

import contextlib
import json
import os
import resource
import signal
from pathlib import Path

import pytest

from pipeprof.collect import launch
from pipeprof.read.spool import process as reader
from pipeprof.read.spool.lines import SpoolNotes
from tests.unit.collect.conftest import NAME, PROBE

OWN = b"the program's own\n"


def open_in(folder):
    """How many descriptors are open on files of a folder: others of this process come and go."""
    links = []
    for number in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # that of the listing itself
            links.append(str(number.readlink()))
    return sum(link.startswith(f"{folder}/") for link in links)


@pytest.fixture
def files(probe):
    """The module, as in a process with as many descriptors as it likes."""
    probe.files.look()
    yield probe.files
    probe.files._few[0] = False


@pytest.fixture
def kept(files, tmp_path):
    file = files.OwnFile(str(tmp_path / "kept"), os.O_RDWR | os.O_APPEND)
    yield file
    file.close()


def taken_over(number, path):
    """A file of the program's under a number of the recorder's."""
    other = os.open(path, os.O_RDWR | os.O_CREAT)
    os.dup2(other, number)
    os.close(other)
    os.write(number, OWN)


def test_what_is_written_or_cut_off_is_the_recorders_file_whoever_has_its_number(kept, tmp_path):
    kept.write(b"one\n")
    numbers = [kept._kept.number]
    taken_over(numbers[0], tmp_path / "other")
    kept.write(b"two\n")
    assert ((tmp_path / "other").read_bytes(), (tmp_path / "kept").read_bytes()) == (OWN, b"one\ntwo\n")
    numbers.append(kept._kept.number)
    taken_over(numbers[1], tmp_path / "other")
    assert kept.take() == b"one\ntwo\n"
    assert ((tmp_path / "other").read_bytes(), (tmp_path / "kept").read_bytes()) == (OWN, b"")
    os.close(kept._kept.number)
    kept.write(b"three\n")
    assert (tmp_path / "kept").read_bytes() == b"three\n"
    for number in numbers:
        os.close(number)  # they still were the program's


def test_closing_leaves_a_file_of_the_programs_open(kept, tmp_path):
    number = kept._kept.number
    taken_over(number, tmp_path / "other")
    kept.close()
    os.write(number, OWN)
    os.close(number)
    assert (tmp_path / "other").read_bytes() == 2 * OWN


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_file_that_is_gone_or_replaced_is_lost_and_not_made_anew(files, kept, tmp_path, is_replaced, few):
    path = tmp_path / "kept"
    path.rename(tmp_path / "aside")
    if is_replaced:
        path.write_bytes(OWN)
    os.close(kept._kept.number)
    count = open_in(tmp_path)
    files._few[0] = few
    with pytest.raises(files.LostError):
        kept.write(b"one\n")
    assert open_in(tmp_path) == count
    assert (path.read_bytes() if path.exists() else OWN) == OWN


def test_the_programs_next_number_is_the_one_that_it_would_get_without_a_recorder(kept, tmp_path):
    def following():
        number = os.open(tmp_path / "own", os.O_CREAT | os.O_RDWR)
        os.close(number)
        return number

    kept.write(b"one\n")
    number = following()
    kept.close()
    assert following() == number


def test_nothing_is_kept_open_where_descriptors_are_few(files, kept, tmp_path):
    files._few[0] = True
    before = open_in(tmp_path)
    for line in (b"one\n", b"two\n"):
        kept.write(line)
        assert open_in(tmp_path) == before - 1
    assert (tmp_path / "kept").read_bytes() == b"one\ntwo\n"


LAST_DESCRIPTOR = """
import resource, threading
files = import_module(NAME + ".files")
kept = files.OwnFile("kept")
kept.close()
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
own = []
try:
    while True: own.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    os.close(own.pop())
assert files.look()

done, written = threading.Event(), [0]

def write():
    while not done.is_set():
        try: written[0] += kept.write(b"x")
        except OSError: pass  # the program has the last one

writer = threading.Thread(target=write)
writer.start()
tries = lost = 0
while tries < 2000 or written[0] < 20000:
    tries += 1
    try: os.close(os.open("own", os.O_CREAT | os.O_RDWR))
    except OSError: lost += 1
done.set()
writer.join()
print(os.stat("kept").st_size == written[0], lost < 0.001 * written[0], lost, tries, written)
"""


in_c = pytest.mark.skipif(not list(PROBE.glob("_hooks*.so")), reason="no hooks in C: nothing compiled them")


@in_c
def test_the_last_descriptor_is_the_programs_when_it_wants_it(alone):
    """Where the recorder opens files in Python, many a try of the program fails."""
    done = alone(LAST_DESCRIPTOR.replace("NAME", repr(NAME)), timeout=300)
    assert done.stderr == ""
    assert done.stdout.split()[:2] == ["True", "True"], done.stdout


@pytest.mark.parametrize(("free", "few"), [(200, False), (20, True)])
def test_free_descriptors_are_counted(files, free, few):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    numbers = {int(path.name) for path in Path("/proc/self/fd").iterdir()}
    unused = [number for number in range(soft) if number not in numbers]
    resource.setrlimit(resource.RLIMIT_NOFILE, (unused[free], hard))
    try:
        assert files.look() is few
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_number_that_is_taken_over_while_it_is_opened_is_not_written_to(files, tmp_path, monkeypatch):
    real = os.open

    def opened_and_lost(path, flags, mode=0o777):
        number = real(path, flags, mode)
        if os.fspath(path).endswith("line"):
            taken_over(number, tmp_path / "other")
        return number

    monkeypatch.setattr(files, "_open", opened_and_lost)
    files.write_once(str(tmp_path / "line"), b"ours\n")
    assert (tmp_path / "other").read_bytes() == OWN
    with pytest.raises(OSError, match="was closed while"):
        files.OwnFile(str(tmp_path / "second line"))
    assert (tmp_path / "other").read_bytes() == OWN


EVERY_WRITER = """
import threading, time
files, swap, dataset, delay, live, forks = (
    import_module("_pipeprof_probe." + name) for name in ("files", "swap", "dataset", "delay", "live", "forks")
)
forks.install()
recorder.FLUSH_NS = 2_000_000
recorder.sleep = lambda _seconds: time.sleep(0.001)
live.EVERY_NS = 1_000_000
REC.open()
looking = dataset.SWAP
REC.periodic.append(looking.pump)
OWN = b"the program's own\\n"
own = {}
stderr = os.path.abspath("stderr.txt")

def take(first, other):
    while True:  # the kernel refuses (EBUSY) while another thread is about to get that number
        try: return os.dup2(first, other)
        except OSError as error:
            if error.errno != 16: raise

def take_everything(number):
    '''Close all numbers from 3 on, and open files under them until each number that was ours is the program's.'''
    ours = [file._kept.number for file in REC._files if file._kept]
    ours += [file.number for file in delay._files.values()]
    if looking.scratch is not None and looking.scratch._kept: ours.append(looking.scratch._kept.number)
    if looking.saved is not None: ours.append(looking.saved.number)
    os.closerange(3, 70000)
    first = os.open("own-%d" % number, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    for other in (*ours, *range(3, 12)):
        if other != first: take(first, other)
    os.write(first, OWN)
    own["own-%d" % number] = OWN

for number in range(ROUNDS):
    REC.mark(1, 0, 0, number, recorder.now() - 10, recorder.now())
    REC.event("thing", value=number)
    log = os.open(stderr, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 2); os.close(log)
    print(looking.begin(), os.write(2, b"said in the call %d\\n" % number) > 0)
    if number % 2: looking.end()
    delay.of_thread(); delay.read_by_thread()
    take_everything(number)
    if not number % 2: looking.end()
    REC.mark(1, 0, 0, number, recorder.now() - 10, recorder.now())
    REC.flush(1)
    delay.of_thread(); delay.forget()
    pid = os.fork()
    if not pid:
        REC.event("of a child"); os._exit(0)
    os.waitpid(pid, 0)
    time.sleep(0.004)
REC.end()
print(all(open(name, "rb").read() == text for name, text in own.items()))
"""


def test_no_writer_of_the_recorder_touches_the_files_of_a_program_that_took_every_number(alone, tmp_path):
    done = alone(EVERY_WRITER.replace("ROUNDS", "20"), timeout=300)
    assert done.stdout == 20 * "True True\n" + "True\n", done.stderr
    (process,) = [one for one in reader.load_processes(tmp_path / "spool", SpoolNotes()) if one.marks]
    assert [mark.number for mark in process.marks] == [number // 2 for number in range(40)]
    assert [event["value"] for event in process.all("thing")] == list(range(20))
    assert process.ended_normally
    # What the launcher passes on, where the real stderr was lost in the call.
    left = [path.read_text() for path in tmp_path.glob("spool/proc-*/stderr.*")]
    said = "".join([(tmp_path / "stderr.txt").read_text(), *left])
    assert sorted(said.splitlines()) == sorted(f"said in the call {number}" for number in range(20))


def test_no_link_leads_the_launcher_to_another_file(tmp_path, capfd):
    spool, other = tmp_path / "spool", tmp_path / "other"
    spool.joinpath("proc-1-1").mkdir(parents=True)
    other.write_bytes(OWN)
    for name in (".exit.json", "proc-1-1/stderr.swap", "proc-1-1/stderr.aside"):
        spool.joinpath(name).symlink_to(other)
    launch._write(spool / "exit.json", {"status": 0})
    launch._pass_on_leftovers(spool)
    assert other.read_bytes() == OWN
    assert capfd.readouterr().err == ""
    assert json.loads(spool.joinpath("exit.json").read_text()) == {"status": 0}


LOST = """
swap, dataset, files = (import_module("_pipeprof_probe." + name) for name in ("swap", "dataset", "files"))
REC.open()
looking = swap.Swap(dataset.SWAP.ours)
said = os.open("said", os.O_WRONLY | os.O_CREAT)
os.dup2(said, 2)
looking.begin(); os.write(2, b"before\\n")
os.closerange(3, 70000)
BETWEEN
looking.end()
own = os.open("own", os.O_WRONLY | os.O_CREAT); os.dup2(own, 2)
looking.begin(); os.write(2, b"after\\n"); looking.end()
"""


@pytest.mark.parametrize("between", ["", "os.dup2(os.open('other', os.O_WRONLY | os.O_CREAT), 2)", "looking.pump()"])
def test_what_was_printed_before_stderr_was_lost_does_not_go_to_what_is_stderr_later(alone, tmp_path, capfd, between):
    done = alone(LOST.replace("BETWEEN", between), timeout=300)
    assert done.returncode == 0, done.stderr
    launch._pass_on_leftovers(tmp_path / "spool")
    assert (tmp_path / "own").read_text() == "after\n"
    assert (tmp_path / "said").read_text() + capfd.readouterr().err == "before\n"


RACE = """
import threading
recorder.FLUSH_NS = 0
stop = []

def write():
    while not stop:
        REC.event("thing")

REC.open()
thread = threading.Thread(target=write)
thread.start()
bad = 0
for number in range(1000):
    os.closerange(3, 70000)
    opened = [os.open("own-%d" % place, os.O_RDWR | os.O_CREAT | os.O_TRUNC) for place in range(6)]
    for one in opened: os.write(one, b"own")
    for place in range(6):
        text = open("own-%d" % place, "rb").read()
        if text != b"own":
            bad += 1
            sys.stderr.write("%r\\n" % text)
stop.append(True)
thread.join()
print(bad)
"""


@in_c
def test_a_thread_that_closes_everything_while_the_recorder_writes_keeps_its_files(alone):
    done = alone(RACE, timeout=300)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr[-2000:]


def test_a_record_that_was_removed_stops_the_recording_and_is_told(rec, tmp_path):
    tmp_path.joinpath("hello.jsonl").write_text('{"pid": 1, "ppid": 0}\n', encoding="utf-8")
    rec.open()
    Path(rec.folder, "marks.bin").unlink()
    os.close(rec._files[0]._kept.number)
    rec.mark(1, 0, 0, 7, 1, 2)
    rec.flush()
    assert rec.off
    _, line = tmp_path.joinpath("hello.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line) == {"pid": os.getpid(), "problem": "its files were removed or replaced"}
    assert not Path(rec.folder, "marks.bin").exists()


def test_a_record_that_cannot_be_begun_is_told_at_the_end(rec, probe, tmp_path, monkeypatch):
    def no_more(*_arguments):
        raise OSError(24, "Too many open files")

    tmp_path.joinpath("hello.jsonl").write_text("", encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(probe.files, "_open", no_more)
        rec.open()
        rec.mark(1, 0, 0, 7, 1, 2)
    rec.close()
    (line,) = tmp_path.joinpath("hello.jsonl").read_text(encoding="utf-8").splitlines()
    assert "Too many open files" in json.loads(line)["problem"]


def raised_by_a_signal(rec, handler):
    """What comes out of a hook in the middle of which a signal arrives."""
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        os.kill(os.getpid(), signal.SIGUSR1)
        for _ in range(1000):
            pass
    except Exception:  # noqa: BLE001 - as the hooks have it
        rec.failed("hook")
    finally:
        signal.signal(signal.SIGUSR1, before)


class Watch:
    def __call__(self, _number, _frame):
        raise TimeoutError

    method = __call__


def function(_number, _frame):
    raise TimeoutError


@pytest.mark.parametrize("handler", [function, Watch(), Watch().method])
def test_what_a_signal_handler_raises_in_a_hook_reaches_the_program(rec, handler):
    with pytest.raises(TimeoutError):
        raised_by_a_signal(rec, handler)
    try:
        function(0, None)
    except TimeoutError:
        rec.failed("no handler is installed, and it is the hook's own")
    assert "probe_failed:no handler is installed, and it is the hook's own" in rec._warned
