"""The memory report of real recordings against pandas on the same files: curves, peaks, what was alive, growth."""

import gzip
import json
from decimal import Decimal

import npu_job
import numpy as np
import pandas as pd
import pytest
from captured import outside, own
from scipy import stats

from pipeprof.read.foreign import import_path
from pipeprof.record import store
from pipeprof.report.memory.content import BLOCKS, POINTS, build

MINDSPORE = [own("mindspore_cpu") / "graph_20steps", *outside("ascend/mindspore_cpu_2.10/graph_20steps")]
TORCH = sorted(path for folder in [own("torch"), *outside("torch/small")] for path in folder.glob("*.pt.trace.json*"))
CALLS = ("cpu_op", "user_annotation", "python_function")


@pytest.fixture
def report(tmp_path):
    """`report(path)`: the imported run and its memory report, everything in it."""

    def made(path):
        run = import_path(path, tmp_path / "run")
        return run, build(run, top=10**6, lifetimes=10**6)

    return made


def ns(times):
    """Decimal us as whole ns."""
    return [int(Decimal(str(time)) * 1000) for time in times]


def parts(samples, extent):
    """First time, least and most of each part of the time, as a curve has them."""
    first, end = extent.min(), extent.max() + 1
    part = (samples.t_ns - first) * POINTS // (end - first)
    grouped = samples.groupby(part)
    table = pd.DataFrame({"t_ns": grouped["t_ns"].min(), "low": grouped["level"].min(), "high": grouped["level"].max()})
    return [tuple(row) for row in table.itertuples(index=False)]


def points(curve):
    return [(point["t_ns"], point["low_bytes"], point["high_bytes"]) for point in curve["points"]]


def curve_of(content, **wanted):
    (found,) = [curve for curve in content["curves"] if all(curve[key] == value for key, value in wanted.items())]
    return found


def peak_of(blocks):
    """(time, bytes, blocks) of the first moment with the most, and the blocks alive then; `blocks` by address or not."""
    lived = blocks[blocks.released.isna() | (blocks.released > blocks.produced)]
    ends = lived.dropna(subset=["released"])
    changes = pd.concat(
        [
            pd.DataFrame({"t": lived.produced, "bytes": lived["bytes"], "count": 1}),
            pd.DataFrame({"t": ends.released.astype("int64"), "bytes": -ends["bytes"], "count": -1}),
        ]
    )
    live = changes.groupby("t").sum().cumsum()
    at = live["bytes"].idxmax()
    alive = lived[(lived.produced <= at) & ~(lived.released <= at).fillna(value=False)]
    return (at, int(live["bytes"][at]), int(live["count"][at])), alive, live


def check_lifetimes(content, blocks):
    """Peak, operators alive at it, kept blocks and the curve of one rank; `blocks`: name, bytes, produced, released."""
    (at, most, count), alive, live = peak_of(blocks)
    (peak,) = content["peaks"]
    assert (peak["t_ns"], peak["peak_bytes"], peak["peak_blocks"]) == (at, most, count)
    kept = blocks[blocks.released.isna()]
    assert (peak["blocks"], peak["kept_blocks"]) == (len(blocks), len(kept))
    assert (peak["allocated_bytes"], peak["kept_bytes"]) == (blocks["bytes"].sum(), kept["bytes"].sum())
    by_name = alive.groupby("name", dropna=False)["bytes"].agg(["sum", "count"])
    expected = sorted(
        (name if isinstance(name, str) else "", int(row["sum"]), int(row["count"])) for name, row in by_name.iterrows()
    )
    assert sorted((row["name"] or "", row["bytes"], row["blocks"]) for row in content["alive_at_peak"]) == expected
    assert sum(row["share"] for row in content["alive_at_peak"]) == pytest.approx(1)
    curve = curve_of(content, source="lifetimes")
    assert (curve["peak_t_ns"], curve["peak_bytes"]) == (at, most)
    levels = pd.DataFrame({"t_ns": live.index, "level": live["bytes"].to_numpy()})
    assert points(curve) == parts(levels, levels.t_ns)


def floors(samples, steps):
    """Middle and least memory of each block of training steps."""
    steps = steps.sort_values("start_ns").reset_index(drop=True)
    block = steps.index * BLOCKS // len(steps)
    found = []
    for _, group in steps.groupby(block):
        within = samples[(samples.t_ns >= group.start_ns.min()) & (samples.t_ns < group.end_ns.max())]
        if len(within):
            found.append((group.kind_step.mean(), within.level.min()))
    return np.array(found, float)


def check_growth(row, samples, steps):
    """Slope against scipy's Theil-Sen; the interval is scipy's or, rounded outwards, one pair of blocks wider."""
    middle, floor = floors(samples, steps).T
    assert (row["blocks"], row["first_bytes"], row["last_bytes"]) == (len(floor), floor[0], floor[-1])
    slope, _, low, high = stats.theilslopes(floor, middle, alpha=0.99)
    assert row["slope_bytes"] == pytest.approx(slope)
    between = np.sort(
        [(floor[b] - floor[a]) / (middle[b] - middle[a]) for a in range(len(floor)) for b in range(a + 1, len(floor))]
    )
    assert np.isclose(between[between <= low + 1e-12 * abs(low)][-3:], row["slope_low_bytes"], rtol=1e-12).any()
    assert np.isclose(between[between >= high - 1e-12 * abs(high)][:3], row["slope_high_bytes"], rtol=1e-12).any()


@pytest.mark.parametrize("folder", MINDSPORE, ids=lambda folder: folder.name)
def test_mindspores_memory_records(report, folder):
    run, content = report(folder)
    (path,) = folder.glob("FRAMEWORK/cpu_ms_memory_record_*.txt")
    samples = (
        pd.read_csv(path).set_axis(["t_ns", "level", "reserved", "active"], axis=1).sort_values("t_ns", kind="stable")
    )
    zero = run.manifest.reps[0].ranks[0].zero_realtime_ns or run.manifest.reps[0].zero_realtime_ns
    samples["t_ns"] -= zero
    curve = curve_of(content, device="CPU", source="samples")
    assert curve["peak_bytes"] == samples.level.max()
    extent = pd.Series(
        [
            point
            for one in content["curves"]
            if one["source"] == "samples"
            for point in (p["t_ns"] for p in one["points"])
        ]
    )
    assert points(curve) == parts(samples, pd.concat([samples.t_ns, extent]))
    steps = pd.DataFrame(store.read(run, "step").to_pylist())
    (row,) = [row for row in content["growth"] if row["device"] == "CPU"]
    check_growth(row, samples, steps[steps.kind == "train"])


@pytest.mark.parametrize("path", TORCH, ids=lambda path: path.name)
def test_torchs_memory_events(report, path):
    run, content = report(path)
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    document = json.loads(text, parse_float=Decimal)
    zero = run.manifest.reps[0].zero_realtime_ns - int(document["baseTimeNanoseconds"])
    events = [event for event in document["traceEvents"] if event.get("name") == "[memory]"]
    memory = pd.DataFrame(
        [
            event["args"] | {"t_ns": t - zero, "tid": event["tid"]}
            for event, t in zip(events, ns(e["ts"] for e in events), strict=True)
        ]
    )
    memory = memory.sort_values("t_ns", kind="stable")
    calls = pd.DataFrame(
        [event for event in document["traceEvents"] if event.get("cat") in CALLS and event["ph"] == "X"]
    )
    calls["start"] = np.array(ns(calls.ts)) - zero
    calls["end"] = calls.start + ns(calls.dur)
    check_lifetimes(content, blocks_of(memory, calls))
    levels = pd.DataFrame(levels_of(memory.sort_index()), columns=["t_ns", "level"]).sort_values("t_ns", kind="stable")
    assert points(curve_of(content, device="CPU", source="samples")) == parts(levels, levels.t_ns)


def levels_of(memory):
    """(time, total) of the host's allocator. Blocks shared with the loader's workers have a total of 0, which is not its."""
    level = 0
    for row in memory[memory["Device Type"] == 0].itertuples():
        total = row[memory.columns.get_loc("Total Allocated") + 1]
        if total or level + row.Bytes == 0:
            level = total
            yield row.t_ns, total


def blocks_of(memory, calls):
    """Blocks of the allocator by address: made when bytes come, released when they go, by the innermost call."""
    held, found = {}, []
    for row in memory.itertuples():
        size, address = row.Bytes, row.Addr
        before = held.pop(address, None)
        if before is not None:
            found.append((*before, row.t_ns if size < 0 else None))
        if size > 0:
            within = calls[(calls.tid == row.tid) & (calls.start <= row.t_ns) & (calls.end >= row.t_ns)]
            inner = within.sort_values(["start", "end"], ascending=[True, False]).name
            name = None if inner.empty else inner.iloc[-1]
            held[address] = ("ProfilerStep*" if name and name.startswith("ProfilerStep#") else name, size, row.t_ns)
    found += [(*before, None) for before in held.values()]
    return pd.DataFrame(found, columns=["name", "bytes", "produced", "released"])


@pytest.fixture(params=["made", *outside("ascend/msinsight/test/data/pytorch/text/level0/rank0_ascend_pt")], ids=str)
def npu_rank(request, tmp_path):
    """The folder of one rank of torch_npu."""
    if request.param != "made":
        return request.param
    npu_job.write(tmp_path / "job")
    return tmp_path / "job" / "rank0_ascend_pt"


def test_torch_npus_memory_files(report, npu_rank):
    run, content = report(npu_rank)
    folder = npu_rank / "ASCEND_PROFILER_OUTPUT"
    zero = run.manifest.reps[0].zero_realtime_ns
    blocks = pd.read_csv(folder / "operator_memory.csv", dtype=str, skipinitialspace=True)
    blocks = blocks.rename(columns=lambda name: name.strip())
    times = {
        column: blocks[f"{word} Time(us)"].str.strip()
        for column, word in (("produced", "Allocation"), ("released", "Release"))
    }
    made = pd.DataFrame(
        {
            "name": blocks.Name.str.strip(),
            "bytes": [int(Decimal(size) * 1024) for size in blocks["Size(KB)"]],
            "produced": np.array(ns(times["produced"])) - zero,
            "released": [None if pd.isna(text) or not text else ns([text])[0] - zero for text in times["released"]],
        }
    )
    assert len(made) >= 150
    check_lifetimes(content, made.astype({"released": "Int64"}))
    samples = pd.read_csv(folder / "memory_record.csv", dtype=str).rename(columns=lambda name: name.strip())
    samples["t_ns"] = np.array(ns(samples["Timestamp(us)"].str.strip())) - zero
    known = samples[samples["Total Allocated(MB)"].notna()].copy()
    known["level"] = [int(Decimal(text) * (1 << 20)) for text in known["Total Allocated(MB)"]]
    for component, group in known.groupby("Component"):
        curve = curve_of(content, name=component, source="samples")
        assert points(curve) == parts(group.sort_values("t_ns", kind="stable"), known.t_ns)


def test_megengines_samples(report, tmp_path):
    """No timeline of MegEngine is public: this one has the form of its writer, with sample_rate set."""
    chance = np.random.default_rng(5)
    times = np.sort(chance.integers(0, 10**9, 900))
    device = chance.choice(["gpu0", "gpu1"], 900)
    held = chance.integers(0, 1 << 33, 900)
    events = [
        {
            "name": f"{where}_alloc_mem",
            "ph": "C",
            "pid": 4,
            "tid": 0,
            "ts": int(at) / 1000,
            "args": {"value": int(level)},
        }
        for at, where, level in zip(times, device, held, strict=True)
    ]
    path = tmp_path / "4.chrome_timeline.json"
    path.write_text(json.dumps({"traceEvents": events, "metadata": {"localTime": "1625027241000000000"}}))
    _, content = report(path)
    samples = pd.DataFrame({"t_ns": times, "level": held, "device": device})
    for name, group in samples.groupby("device"):
        curve = curve_of(content, device=name)
        assert points(curve) == parts(group, samples.t_ns)
        assert (curve["peak_bytes"], curve["peak_t_ns"]) == (group["level"].max(), group.t_ns[group["level"].idxmax()])


def summed(value, units):
    """`3MB 12KB 5B `, as MegEngine writes sizes and times."""
    parts_ = []
    for unit, size in units:
        count, value = divmod(value, size)
        parts_ += [f"{count}{unit} "] if count else []
    return "".join(parts_)


def test_megengines_memory_flow(report, tmp_path):
    chance = np.random.default_rng(6)
    times = [("s", 10**9), ("ms", 10**6), ("us", 1000), ("ns", 1)]
    sizes = [("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10), ("B", 1)]
    made, lines = [], []
    for number in range(300):
        begin, lasts, size = (int(chance.integers(1, most)) for most in (10**10, 10**8, 1 << 28))
        kept = number % 10 == 0
        made.append((f"tensor {number % 7}", size, begin, None if kept else begin + lasts))
        ends = "" if kept else f'tag:erased="{summed(begin + lasts, times)}" tag:duration="{summed(lasts, times)}" '
        lines.append(
            f'<rect x="1" tag:type="tensor" tag:name="tensor {number % 7}" tag:address="{number << 28:x}" '
            f'tag:size="{summed(size, sizes)}" tag:produced="{summed(begin, times)}" {ends}tag:group="{number}"/>'
        )
    path = tmp_path / "4.memory_flow.svg"
    path.write_text('<svg xmlns:tag="https://megengine.org.cn">' + "\n".join(lines) + "</svg>")
    _, content = report(path)
    check_lifetimes(
        content, pd.DataFrame(made, columns=["name", "bytes", "produced", "released"]).astype({"released": "Int64"})
    )
