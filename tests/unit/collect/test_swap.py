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
FOREIGN = f"""
say("before\\n"); looking.begin(); say("foreign 1\\n{BLOCK}foreign 2\\n"); data = looking.end(); say("after\\n")
print(b"PROF" in data)
"""
SAME_FILE = """
before, count = os.fstat(2), None
for _ in range(50):
    looking.begin(); looking.end()
    count = count or len(os.listdir("/proc/self/fd"))
print((os.fstat(2).st_dev, os.fstat(2).st_ino) == (before.st_dev, before.st_ino), len(os.listdir("/proc/self/fd")) == count)
"""
SECOND_LOOK = 'print(looking.begin(), looking.begin()); say("inside\\n"); looking.end(); say("after\\n")'
LONG_CALL = """
looking.begin(); say("early\\n"); looking.pump()
os.write(looking.saved.number, b"still inside\\n")
looking.end()
"""
FORKED = """
looking.begin()
pid = os.fork()
if not pid:
    looking.forked(); say("child\\n"); os._exit(0)
os.waitpid(pid, 0); looking.end(); say("parent\\n")
"""
A_LOT = """
looking.begin()
for number in range(20000): say("line %d\\n" % number)
looking.end()
"""


@pytest.mark.parametrize(
    ("body", "stdout", "stderr"),
    [
        (FOREIGN, "True\n", "before\nforeign 1\nforeign 2\nafter\n"),  # ours is returned
        (SAME_FILE, "True True\n", ""),  # descriptor 2 is as before, and none leaks
        (SECOND_LOOK, "True False\n", "inside\nafter\n"),  # it is refused during the first and does no harm
        (LONG_CALL, "", "early\nstill inside\n"),  # others' words do not wait for the end
        (FORKED, "", "child\nparent\n"),  # a child has the real stderr
        (A_LOT, "", "".join(f"line {number}\n" for number in range(20000))),
    ],
    ids=["foreign", "same file", "second look", "long call", "forked", "a lot"],
)
def test_what_is_said_during_a_call_arrives_without_ours(alone, body, stdout, stderr):
    done = alone(START + body)
    assert (done.stdout, done.stderr) == (stdout, stderr)


def test_what_was_left_when_the_process_died_is_passed_on_by_the_launcher_without_ours(tmp_path, capfdbinary, probe):
    folder = tmp_path / "proc-1-1"
    folder.mkdir()
    folder.joinpath("stderr.swap").write_bytes(b"last words\n" + BLOCK.encode().replace(b"\\n", b"\n"))
    launch._pass_on_leftovers(tmp_path)
    launch._pass_on_leftovers(tmp_path)
    assert capfdbinary.readouterr().err == b"last words\n"
    assert probe.dataset.SWAP.ours.pattern == launch._TIMING_BLOCK.pattern  # both mean the same


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
