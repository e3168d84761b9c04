"""How right is the advice on storage and caches? Against special runs of the same pipelines, as DS-Analyzer makes them.

    python lab/benchmarks/storage_advice.py [--only NAME] [--rounds 2] [--s3]

One recording of each pipeline is compared with runs without a profiler: all data cached, nothing prepared, everything,
half of the data cached, and rows kept behind each operator. What is slow sleeps: the figures are those of a quiet machine
also on a busy one, if there is a core at all. With --s3 the files are read from moto's S3 server on this machine, each
request held up for as long as a storage of that rate takes for a file.
"""

import argparse
import contextlib
import http.server
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from storage_training import bucket_of

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from object_server import faulty_proxy, object_server

TRAINING = Path(__file__).with_name("storage_training.py")
FILES, BYTES = 120, 16_000
SLOWER = 4  # than the figures of PIPELINES, so that what a busy machine adds is small
PIPELINES = {
    "reading limits": {},
    "reading limits, two readers": {"rate": 1.5, "readers": 2},
    "reading limits, loop next": {"rate": 2, "step-ms": 24, "decode-ms": 1},
    "reading limits, decode next": {"rate": 2, "decode-ms": 5},
    "reading limits, crop next": {"rate": 2, "crop-ms": 5, "decode-ms": 1},
    "decode limits": {"rate": 16, "decode-ms": 7},
    "decode limits, two workers": {"rate": 16, "decode-ms": 12, "decoders": 2},
    "crop limits": {"rate": 16, "crop-ms": 6},
    "the loop limits": {"step-ms": 30},
    "rows that shrink": {"rate": 4, "grow": 1, "shrink": 8, "decode-ms": 6, "crop-ms": 0.5},
}
AFTER = {"GeneratorOp": "source", "pipeline.decode": "decode", "pipeline.crop": "crop", "BatchOp": "batch"}
VARIANTS = ["full", "share:0.5", "source", "decode", "crop", "batch", "fetch"]


def main() -> None:
    """Print a line for each pipeline, and what was met at the end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=list(PIPELINES))
    parser.add_argument("--rounds", type=int, default=1, help="of the special runs; the fastest of each counts")
    parser.add_argument("--s3", action="store_true", help="read from an S3 server")
    wish = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        (folder / "files").mkdir()
        for number in range(FILES):
            (folder / "files" / f"{number:03}.bin").write_bytes(bytes([number % 251]) * BYTES)
        proxy = None
        if wish.s3:
            server = stack.enter_context(object_server(folder))
            bucket = bucket_of(f"http://{server.address}")
            bucket.create()
            for path in (folder / "files").iterdir():
                bucket.put_object(Key=path.name, Body=path.read_bytes())
            proxy = stack.enter_context(faulty_proxy(server))
        for number, (pipeline, options) in enumerate(PIPELINES.items()):
            if wish.only in (None, pipeline):
                found.append(compared(folder, number, options, wish.rounds, proxy))
                print(f"{pipeline}: {json.dumps(found[-1])}", flush=True)
    count = len(found)
    for what, bound in (("split", 5), ("rates", 5)):
        worst = [one[f"{what}_error"] for one in found]
        print(f"{what}: largest error {max(worst):.1f}, within {bound} in {sum(x <= bound for x in worst)} of {count}")
    print(f"best cache: right in {sum(one['best_right'] for one in found)} of {count}")


def address(proxy: http.server.HTTPServer) -> str:
    """Where it listens."""
    return f"http://127.0.0.1:{proxy.server_port}"


def compared(
    folder: Path, number: int, options: dict[str, float], rounds: int, proxy: http.server.HTTPServer | None
) -> dict[str, object]:
    """Predictions of one recording beside what the special runs measured. Errors in points and per cent."""
    wished = {"decode-ms": 2.0, "crop-ms": 1.0, "step-ms": 10.0, "rate": 4.0} | options
    given = [f"--{name}={_slower(name, value)}" for name, value in wished.items()]
    if proxy:
        proxy.slow_s = BYTES / (_slower("rate", wished["rate"]) * 1e6)
        given.append(f"--s3={address(proxy)}")
    run = folder / f"run-{number}"
    training = [sys.executable, str(TRAINING), str(folder / "files")]
    told = _output([sys.executable, "-m", "pipeprof", "collect", "-o", str(run), "--", *training, *given])
    recorded = json.loads(next(line for line in told.splitlines() if line.startswith("{")))["full"]["steps_s"]
    report = json.loads(_output([sys.executable, "-m", "pipeprof", "report", str(run), "--format", "json"]))
    (advice,) = report["storage"]
    times = [json.loads(_output([*training, *VARIANTS, *given]).splitlines()[-1]) for _ in range(rounds)]
    truth = {one: max((each[one] for each in times), key=lambda found: found["steps_s"]) for one in VARIANTS}
    rate = {variant: one["steps_s"] for variant, one in truth.items()}
    real = {"reading": max(1 - rate["full"] / rate["source"], 0.0), "wait": truth["full"]["wait"]}
    real["preparing"] = real["wait"] - real["reading"]
    names = ("wait", "reading", "preparing")
    told_split = {name: advice["split"][name] + (name == "preparing") * advice["split"]["hand_over"] for name in names}
    caches = {AFTER.get(one["name"], AFTER.get(one["op_type"])): one for one in advice["points"]}
    ratios = {after: one["ratio"] for after, one in caches.items()}
    ratios["share:0.5"] = next(one["ratio"] for one in advice["curve"] if one["cached"] == 0.5)
    best = next((after for after, one in caches.items() if one["op_id"] == advice["best"]), None)
    return {
        "recorded": recorded / rate["full"],
        "split": {name: [round(100 * told_split[name], 1), round(100 * real[name], 1)] for name in names},
        "ratios": {after: [round(one, 3), round(rate[after] / rate["full"], 3)] for after, one in ratios.items()},
        "split_error": max(abs(told_split[name] - real[name]) * 100 for name in names),
        "rates_error": max(abs(one / (rate[after] / rate["full"]) - 1) * 100 for after, one in ratios.items()),
        "best": best,
        "best_right": _is_right(best, {after: rate[after] / rate["full"] for after in caches}, caches),
    }


def _slower(name: str, value: float) -> float:
    if name == "rate":
        return value / SLOWER
    return value * SLOWER if name.endswith("-ms") else value


def _is_right(best: str | None, real: dict[str, float], caches: dict[str, dict[str, float]]) -> bool:
    """Whether it is as fast as the fastest, within noise, and none that is as fast is smaller; None: none brings 5 %."""
    most = max(real.values())
    if best is None:
        return most < 1.05
    as_fast = [after for after, ratio in real.items() if ratio >= 0.97 * most]
    return best in as_fast and caches[best]["bytes"] <= min(caches[after]["bytes"] for after in as_fast)


def _output(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
