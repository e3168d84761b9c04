"""Looking at stderr during one call: what is ours goes, everything else arrives."""

import pytest

from pipeprof.collect import launch

BLOCK = "[V10900] MD(1) line\\n[PROF Dataset]\\nworker_time: x\\n-- MapOp(ID:1): worker_time (avg:1.00ms)\\n\\n"
START = """
from importlib import import_module
swap, dataset = (import_module("_pipeprof_probe." + name) for name in ("swap", "dataset"))
REC.open()
looking = swap.Swap(dataset.SWAP.ours)
say = lambda text: os.write(2, text.encode())
"""


@pytest.fixture
def run(alone):
    return lambda body: alone(START + body)


def test_ours_is_returned_and_foreign_lines_are_passed_on(run):
    done = run(f"""
say("before\\n"); looking.begin(); say("foreign 1\\n{BLOCK}foreign 2\\n"); data = looking.end(); say("after\\n")
print(b"PROF" in data)
""")  # fmt: skip
    assert done.stdout == "True\n"
    assert done.stderr == "before\nforeign 1\nforeign 2\nafter\n"


def test_descriptor_2_is_the_same_file_afterwards_and_none_leaks(run):
    done = run("""
before, count = os.fstat(2), None
for _ in range(50):
    looking.begin(); looking.end()
    count = count or len(os.listdir("/proc/self/fd"))
print((os.fstat(2).st_dev, os.fstat(2).st_ino) == (before.st_dev, before.st_ino), len(os.listdir("/proc/self/fd")) == count)
""")  # fmt: skip
    assert (done.stdout, done.stderr) == ("True True\n", "")


def test_a_second_look_during_the_first_is_refused_and_does_no_harm(run):
    done = run("""
print(looking.begin(), looking.begin()); say("inside\\n"); looking.end(); say("after\\n")
""")  # fmt: skip
    assert (done.stdout, done.stderr) == ("True False\n", "inside\nafter\n")


def test_others_words_do_not_wait_for_the_end_of_a_long_call(run):
    done = run("""
import time
looking.begin(); say("early\\n"); looking.pump()
os.write(looking.saved.number, b"still inside\\n")
looking.end()
""")  # fmt: skip
    assert done.stderr == "early\nstill inside\n"


def test_a_child_forked_during_a_call_has_the_real_stderr(run):
    done = run("""
looking.begin()
pid = os.fork()
if not pid:
    looking.forked(); say("child\\n"); os._exit(0)
os.waitpid(pid, 0); looking.end(); say("parent\\n")
""")  # fmt: skip
    assert done.stderr == "child\nparent\n"


def test_a_lot_of_text_arrives_whole(run):
    done = run("""
looking.begin()
for number in range(20000): say("line %d\\n" % number)
looking.end()
""")  # fmt: skip
    assert done.stderr.splitlines() == [f"line {number}" for number in range(20000)]


def test_what_was_left_when_the_process_died_is_passed_on_by_the_launcher_without_ours(tmp_path, capfdbinary):
    folder = tmp_path / "proc-1-1"
    folder.mkdir()
    folder.joinpath("stderr.swap").write_bytes(b"last words\n" + BLOCK.encode().replace(b"\\n", b"\n"))
    launch._pass_on_leftovers(tmp_path)
    launch._pass_on_leftovers(tmp_path)
    assert capfdbinary.readouterr().err == b"last words\n"


def test_probe_and_launcher_agree_on_what_is_ours(probe):
    assert probe.dataset.SWAP.ours.pattern == launch._TIMING_BLOCK.pattern


def test_timing_lines_are_read_whichever_fields_they_have(probe):
    text = (
        b"-- GeneratorOp(ID:3): worker_time (avg:3.25ms, max:3.35ms, min:3.14ms, count:4)\n"
        b"-- BatchOp(ID:1) : worker_time (avg:0.02ms, max:/, min:/, count:1)\n"
        b"-- MnistOp(ID:2): worker_time (avg:1.5ms, max: 2.5ms, min: 0.5ms, count:32), io_time (avg:0.25ms)\n"
    )
    assert probe.service.LINE.findall(text) == [
        (b"GeneratorOp", b"3", b"3.25", b"3.35", b"3.14", b"4", b""),
        (b"BatchOp", b"1", b"0.02", b"/", b"/", b"1", b""),
        (b"MnistOp", b"2", b"1.5", b"2.5", b"0.5", b"32", b"0.25"),
    ]
