"""What the Trace Event Format asks of a trace, checked event by event, apart from the code that writes traces.

Format: "Trace Event Format" (the document of chrome://tracing); Perfetto adds that slices of a thread must nest.
"""

import gzip
import json
import re
from collections import defaultdict
from decimal import Decimal

from pipeprof.read.chrome.reader import KINETO, add_files
from pipeprof.record.run import Manifest, Run

TIME = re.compile(r'"(?:ts|dur)":(-?[0-9]+\.[0-9]{3})(?=[,}])')
METADATA = {"process_name": str, "thread_name": str, "process_sort_index": int, "thread_sort_index": int}


def load(path):
    """The document; numbers with a point are Decimal, so that no digit is lost."""
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    times = len(re.findall(r'"(?:ts|dur)":', text))
    assert len(TIME.findall(text)) == times, "a time without the three digits of the ns"
    return json.loads(text, parse_float=Decimal, parse_constant=_refused)


def _refused(constant):
    raise AssertionError(f"{constant} is not JSON")


def check(document):
    """Raise AssertionError where the document breaks the format; else its events by phase."""
    assert isinstance(document["traceEvents"], list)
    assert document["displayTimeUnit"] in ("ms", "ns")
    assert all(isinstance(value, str) for value in document["otherData"].values())
    by_phase = defaultdict(list)
    for event in document["traceEvents"]:
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert isinstance(event["name"], str)
        PHASES[event["ph"]](event)
        by_phase[event["ph"]].append(event)
    _all_are_named(by_phase)
    _slices_nest(by_phase["X"])
    return by_phase


def _metadata(event):
    (value,) = event["args"].values()
    assert isinstance(value, METADATA[event["name"]]), event


def _complete(event):
    assert isinstance(event["ts"], Decimal), event
    assert isinstance(event["dur"], Decimal), event
    assert event["dur"] >= 0, event
    assert isinstance(event["args"], dict), event
    assert isinstance(event["cat"], str), event
    assert event["cat"], event


def _counter(event):
    assert isinstance(event["ts"], Decimal), event
    assert event["args"], event
    assert all(isinstance(value, int | Decimal) for value in event["args"].values()), event


def _flow(event):
    assert isinstance(event["ts"], Decimal), event
    assert isinstance(event["id"], str), event
    assert event["cat"], event
    assert event.get("bp") == ("e" if event["ph"] == "f" else None), event


PHASES = {"M": _metadata, "X": _complete, "C": _counter, "s": _flow, "t": _flow, "f": _flow}


def _all_are_named(by_phase):
    processes = [event["pid"] for event in by_phase["M"] if event["name"] == "process_name"]
    threads = [(event["pid"], event["tid"]) for event in by_phase["M"] if event["name"] == "thread_name"]
    assert len(processes) == len(set(processes))
    assert len(threads) == len(set(threads))
    drawn = [event for phase in "Xstf" for event in by_phase[phase]]
    assert {(event["pid"], event["tid"]) for event in drawn} <= set(threads)
    assert {event["pid"] for phase in by_phase.values() for event in phase} <= set(processes)


def _slices_nest(slices):
    """As a viewer does: a stack per thread; a slice that ends behind the one it lies in has no place."""
    by_thread = defaultdict(list)
    for event in slices:
        by_thread[event["pid"], event["tid"]].append(event)
    for thread, events in by_thread.items():
        starts = [event["ts"] for event in events]
        assert starts == sorted(starts), f"thread {thread} is not in order of time"
        stack = []
        for event in events:  # of equal starts the outer comes first
            end = event["ts"] + event["dur"]
            while stack and stack[-1] <= event["ts"]:
                stack.pop()
            assert not stack or end <= stack[-1], f"{event} overlaps its parent, which ends at {stack[-1]}"
            stack.append(end)


def thread_names(by_phase):
    """Name by (pid, tid)."""
    return {
        (event["pid"], event["tid"]): event["args"]["name"] for event in by_phase["M"] if event["name"] == "thread_name"
    }


def imported(path, folder):
    """The run that the reader of chrome traces makes of a trace."""
    run = Run(folder, Manifest(run_id="x", started_at="", pipeprof_version="0"))
    folder.mkdir()
    assert KINETO.recognise(path)
    add_files([path], run, lambda _text: None)
    return run
