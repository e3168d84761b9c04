"""What processes hold together: their own memory, and not the files that the whole machine shares."""

import subprocess
import sys
import time

from pipeprof.experiment.trial import MEMORY_EVERY_S, watched_memory

MIB = 2**20
HOLDS = """
import mmap, sys
file = open(sys.argv[1], "rb")
mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
sum(mapped[at] for at in range(0, len(mapped), 4096))
own = b"1" * (60 << 20)
print("held", flush=True)
sys.stdin.read()
"""


def test_files_are_not_counted_and_own_memory_is(tmp_path):
    """100 MiB of a file, which any other process may have mapped too, beside 60 MiB of a process's own."""
    file = tmp_path / "file"
    file.write_bytes(b"1" * (100 * MIB))
    with watched_memory() as peak:
        with subprocess.Popen(
            [sys.executable, "-S", "-c", HOLDS, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as child:
            assert child.stdout.read(4) == b"held"
            limit = time.monotonic() + 60
            while peak.bytes < 60 * MIB and time.monotonic() < limit:
                time.sleep(MEMORY_EVERY_S)
            child.stdin.close()
        grown = peak.bytes
    assert 60 * MIB < grown < 90 * MIB
