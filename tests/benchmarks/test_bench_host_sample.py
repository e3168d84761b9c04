"""CPU that one look at a training of 100 threads takes, 20 of which ran since the look before.

pytest tests/benchmarks/test_bench_host_sample.py --benchmark-enable --benchmark-timer=time.process_time
"""

import subprocess
import sys
import time

import pytest

from pipeprof.collect.host import HostSampler

TRAINING = """
import threading, time
def busy():
    while True:
        sum(range(2_000))
        time.sleep(0.005)
for number in range(99):
    threading.Thread(target=busy if number < 20 else time.sleep, args=() if number < 20 else (9e3,), daemon=True).start()
print("ready", flush=True)
time.sleep(9e3)
"""


@pytest.fixture
def training():
    with subprocess.Popen([sys.executable, "-c", TRAINING], stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        yield process
        process.kill()


@pytest.mark.parametrize("threads", [False, True], ids=["processes alone", "with threads"])
def test_one_sample(benchmark, training, tmp_path, threads):
    if threads:
        (tmp_path / f"proc-{training.pid}-1").mkdir()
    with HostSampler(training.pid, tmp_path / "host.jsonl") as sampler:
        sampler.sample()
        benchmark.pedantic(sampler.sample, setup=lambda: time.sleep(0.05), rounds=60)
