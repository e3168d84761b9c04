"""What a Kineto trace says of the device, steps and operators, read plainly from its JSON: the second side of an oracle."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal


@dataclass
class Call:
    """A call and those directly within it."""

    name: str
    start: int
    length: int
    inner: list[Call]


CALLS = ("cpu_op", "user_annotation", "python_function")


def ns(us):
    return int(Decimal(str(us)) * 1000)


def events_of(path):
    content = path.read_bytes()
    text = gzip.decompress(content) if path.suffix == ".gz" else content
    found = json.loads(text, parse_float=Decimal)
    return found["traceEvents"], found


def facts_of(path):
    """Kernels by stream, copies by name, collectives, steps, loads, links, and calls by name, all times in ns."""
    events, document = events_of(path)
    spans = [event for event in events if event["ph"] == "X"]
    by_category = defaultdict(list)
    for event in spans:
        by_category[event.get("cat")].append(event)
    streams, copies = defaultdict(int), defaultdict(lambda: [0, 0])
    for event in by_category["kernel"]:
        streams[str(event["args"]["stream"])] += ns(event["dur"])
    for event in by_category["gpu_memcpy"]:
        copies[event["name"]][0] += 1
        copies[event["name"]][1] += ns(event["dur"])
    launches = {event["args"]["correlation"] for cat in ("cuda_runtime", "cuda_driver") for event in by_category[cat]
                if "correlation" in event["args"]}  # fmt: skip
    device = [event for cat in ("kernel", "gpu_memcpy", "gpu_memset") for event in by_category[cat]]
    named = [event for event in spans if event.get("cat") in CALLS]
    return {
        "rank": (document.get("distributedInfo") or {}).get("rank", 0),
        "base_ns": int(document.get("baseTimeNanoseconds") or 0), "kernels": len(by_category["kernel"]), "streams": dict(streams), "device_ns": sum(ns(one["dur"]) for one in device),
        "copies": {name: tuple(row) for name, row in copies.items()},
        "collectives": [ns(one["dur"]) for one in by_category["kernel"] if "nccl" in one["name"].lower()],
        "steps": sorted((ns(one["ts"]), ns(one["dur"]), one["name"]) for one in named if one["name"].startswith("ProfilerStep#")),
        "loads": sorted((ns(one["ts"]), ns(one["dur"])) for one in named if one["name"].startswith("enumerate(DataLoader)#")),
        "launched": sum(one["args"].get("correlation") in launches for one in device), "device": len(device),
        "flows": tuple(sum(event["ph"] == phase for event in events) for phase in "sf"),
        "runtime": len(by_category["cuda_runtime"]),
        "calls": calls_of(named),
    }  # fmt: skip


def calls_of(named):
    """{name: [count, own ns, total ns]}; a call whose only call is one of its own name is one with it, as torch counts."""
    threads, found = defaultdict(list), defaultdict(lambda: [0, 0, 0])
    for event in named:
        threads[event["pid"], event["tid"]].append(Call(event["name"], ns(event["ts"]), ns(event["dur"]), []))
    for calls in threads.values():
        outer = []
        for call in sorted(calls, key=lambda call: (call.start, -call.length)):
            while outer and outer[-1].start + outer[-1].length <= call.start:
                outer.pop()
            if outer:
                outer[-1].inner.append(call)
            outer.append(call)
        inner = set()
        for call in calls:
            inner.update(id(one) for one in fold(call))
        for call in calls:
            if id(call) not in inner:
                row = found[call.name]
                own = call.length - sum(one.length for one in call.inner)
                row[:] = row[0] + 1, row[1] + own, row[2] + call.length
    return dict(found)


def fold(call):
    """Take the calls into this one that are its only call and have its name; returns them."""
    taken = []
    while len(call.inner) == 1 and call.inner[0].name == call.name:
        taken.append(call.inner[0])
        call.inner = call.inner[0].inner
    return taken
