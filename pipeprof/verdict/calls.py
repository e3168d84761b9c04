"""Which function a data loader's time, or the host's, is spent in, from the calls that a trace has. Pure.

Of a loader the call that is named is the innermost one of the user's, or of what the user chose, that takes half of the
loading or more: none of the loader itself, and none of a library for arrays, images or files, which is told beside it.
"""

from __future__ import annotations

import re
import sys
from math import sqrt
from typing import TYPE_CHECKING, Any

from pipeprof.verdict import evidence as shown
from pipeprof.verdict.cause import Stage
from pipeprof.verdict.rules import graded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.query.rows import FetchCall, HostCall, LoopCall

    Row = Mapping[str, Any]

HOT = 0.50  # of the loading: two calls that do not lie in each other cannot both have more
COVERED = 0.50  # of the waits: where less of them is known, what is known explains nothing
MOST_OF_CALL = 0.80  # of a call: the function of the user's in it that takes so much is named beside it
LOOP_SHARE = 0.20  # of the loop: from here on a call of its own thread is named
WHOLE = 0.80  # of the loop: a function that has so much of it holds the loop
MIXED = 0.05  # of a function's time, with what trains below it: more, and it is the loop's own
ERRORS = 2  # standard errors of a share, by which it may be larger: a bound comes from that
LAUNCHES = 0.10  # of a function's waits for the network: it launches less, and waits for what others launched
LEAST_LOOKS, ENOUGH_LOOKS = 10, 50  # that saw a call: fewer name none; for high confidence
LISTED, MOST_LISTED = 0.05, 20  # of the loading: calls that are told; so many of them
MOSTLY_COVERED = 0.90  # of the waits: less is a doubt
# Where a call of the loop lies; LOOP: in the loop's own lines, LINE: in one of them, where the others launch operators.
OUTSIDE, NETWORK, LOOP, LINE = "outside", "network", "loop", "line"
OWN, WORKERS, THREADS = "own", "workers", "threads"  # who makes the batches
STORAGE, OTHER = "storage", "other"

_LOADER = re.compile(r"enumerate\(DataLoader\)#_?(Single|Multi)?")
_LOADERS = re.compile(
    r"enumerate\(DataLoader\)#|torch/utils/data/(?:dataloader|_utils/(?:fetch|worker|pin_memory))\.py\("
)
_INSTALLED = re.compile(r".*?(?:site-packages|dist-packages|lib/python3[.\d]*)/")
_LIBRARIES = frozenset(
    {
        "PIL", "albumentations", "av", "cv2", "decord", "h5py", "imageio", "librosa", "lmdb", "numpy", "pandas",
        "scipy", "skimage", "sklearn", "soundfile", "tensorflow", "torch", "torchaudio", "torchvision", "zarr",
    }
)  # fmt: skip
LIBRARY = (  # a pattern of how the name of a library's function, or of Python's own, begins
    r"^(?:<|nn\.Module: |(?:.*(?:site-packages|dist-packages|lib/python3[.\d]*)/)?"
    rf"(?:{'|'.join(sorted(_LIBRARIES | sys.stdlib_module_names))})(?:/|\.py\())"
)
# Frames of MindSpore's and PyTorch's, as patterns: what trains; what computes gradients or runs compiled code, below
# which functions are the network's; and what waits for what was launched.
_COMPUTING = (
    r"^mindspore/(?:ops/composite/"
    r"|(?:common|graph)/api\.py\(\d+\): "
    r"(?:_PyNativeExecutor\.(?:grad|new_graph|end_graph)|_\w*(?:Jit|Graph|Function)Executor))"
    r"|^torch/(?:nn|autograd|_dynamo|_inductor|_functorch|amp)/|^torch/(?:_tensor|functional)\.py\("
)
# Whoever calls a network need not train: an evaluation in the loop is a call like any other.
NETWORK_FRAMES = _COMPUTING + r"|^mindspore/nn/cell\.py\("
TRAINING_FRAMES = (
    _COMPUTING
    + r"|^mindspore/(?:nn/(?:optim|wrap)/|train/(?:model|dataset_helper)\.py|dataset/|parallel/)"
    + r"|^torch/(?:optim|utils/data|distributed)/"
)
WAIT_FRAMES = (
    r"^torch/(?:cuda|accelerator)/.*: \w*synchronize$"
    r"|^mindspore/(?:common/(?:_stub_)?tensor\.py\(|runtime/|(?:common|graph)/api\.py\(\d+\): _PyNativeExecutor\.sync)"
    r"|(?:/|^)(?:threading|queue|selectors|multiprocessing/\w+)\.py\(\d+\): "
)
_FRAMEWORKS = ("mindspore/", "torch/")
_FRAME = re.compile(r"(.*)\((\d+)\): ")
_LINE = re.compile(r"\(\d+\): ")
_FILE_CALLS = frozenset({"POSIX", "STDIO"})  # categories
_FILES = re.compile(
    r"(?:\b|_)(?:p?read(?:v|64|into|line|_array|_bytes)?|f?open(?:64)?|fread|l?seek(?:64)?|__fxstat64|imread)\b"
)
_WAITS = re.compile(r"\b(?:acquire|poll|select|sleep|wait|recv_bytes|_recv)\b")


def take_calls(diagnosis: dict[str, Any], rows: Sequence[FetchCall]) -> None:
    """Put the call that limits into `fetch_call` of a verdict that names no operator.

    Also what is known of the loader where no call can be named.
    """
    found = _named(_worst(rows))
    diagnosis["fetch_call"] = found
    if found is None or found["name"] is None:
        return
    diagnosis["doubts"] = [doubt for doubt in diagnosis["doubts"] if doubt["code"] != "no_pipeline"]
    if found["covered"] < MOSTLY_COVERED:
        diagnosis["doubts"].append({"code": "waits_uncovered", "covered": found["covered"]})
    diagnosis["confidence"] = graded(diagnosis["doubts"])
    on = shown.on("loading", threads=found["threads"])
    diagnosis["evidence"].append(
        shown.evidence("fetch_call", found["share"], "share", "diagnose/fetch_call", on, name=found["name"])
    )


def host_call(rows: Sequence[HostCall], gap_share: float) -> dict[str, Any] | None:
    """The function of the user's that takes most of the time without an operator; None where none takes HOT of it.

    `name`, its `share` of the steps, the library's function `inside` it with `inside_share`, and whether it `waits` in
    that. `gap_share`: of the steps, that no operator runs. One whose time is spread over many functions of libraries
    only launches operators.
    """
    if not rows:
        return None
    best = max(rows, key=lambda row: (row.own_ns / row.step_ns, row.name))
    share = best.own_ns / best.step_ns
    inside = best.inside if (best.inside_ns or 0) >= HOT * best.own_ns else None
    if share < HOT * gap_share or (inside is None and best.self_ns < HOT * best.own_ns):
        return None
    return {
        "name": best.name, "share": share, "inside": inside,
        "inside_share": None if inside is None or best.inside_ns is None else best.inside_ns / best.step_ns,
        "waits": inside is not None and _WAITS.search(inside) is not None,
    }  # fmt: skip


def loop_calls(rows: Sequence[LoopCall]) -> list[dict[str, Any]]:
    """The calls in the training's own thread that take LOOP_SHARE of the loop or more, the largest first.

    Each with `name` (of a line, file:line), `site` (file:line that calls it, null when it is not known), `code`
    (file:line that takes most by itself or lies in `mostly`, a function of the user's in it that takes nearly all
    of it; null when none does), `where` (outside | network | loop | line), `share` of the loop, `most_share` (what
    that may be by chance), its `wait_share` for the network (`waits_beside`: which is no part of its `share`), the
    function `inside` it that takes most by itself with `inside_share`, `looks`, `rank` and `confidence`. None lies
    in another one. Of a function that trains, and of one of the network, only Python of its own counts: the rest is
    what the training is for.
    """
    found: list[dict[str, Any]] = []
    whole: list[int] = []  # ns of each that was found
    callers = {(row.rep, row.rank, row.name): row.caller for row in rows}
    for row in sorted(rows, key=lambda row: (-row.total_ns / row.loop_ns, row.depth, row.name)):
        call = None if row.name.startswith(_FRAMEWORKS) else _loop_call(row)
        within = next((at for at, one in enumerate(found) if _lies_in(row, one, callers)), None)
        if within is not None and not row.is_library and row.total_ns >= MOST_OF_CALL * whole[within]:
            found[within].update(mostly=row.name.rpartition(": ")[2], code=_place_of(row.frame))
        if call is not None and within is None:
            found.append(call | {"rep": row.rep, "key": row.name})
            whole.append(row.total_ns)
    best: dict[tuple[str, str], dict[str, Any]] = {}
    for call in sorted(found, key=lambda call: -call["share"]):
        best.setdefault((call.pop("key"), call["where"]), {name: call[name] for name in call if name != "rep"})
    return list(best.values())


def loop_site(rows: Sequence[LoopCall]) -> str | None:
    """file:line where the training loop is: in the innermost function of the user's that nearly all looks have."""
    whole = [
        row for row in rows
        if not row.is_library and row.total_ns >= WHOLE * row.loop_ns and (row.training_ns or row.caller is None)
    ]  # fmt: skip
    return _place_of(max(whole, key=lambda row: row.depth).frame) if whole else None


def is_of_callback(call: Row, part: Row) -> bool:
    """Whether a call of `loop_calls` is a method of the callback that a part of the run is."""
    return bool(part["part"] == "callback" and call["name"].partition(".")[0] == part["detail"])


def _loop_call(row: LoopCall) -> dict[str, Any] | None:
    """The call that a function is, where it takes enough of the loop."""
    total, loop = row.total_ns, row.loop_ns
    where, taken, waits = OUTSIDE, total, row.wait_ns
    trains = row.training_ns > 0
    holds_loop = row.caller is None or (trains and total > (1 - MIXED) * loop)  # of a call nothing would be left
    if _may_be_operators(row):
        if not trains or row.frame_op_ns != 0:
            return None
        where, taken, waits = LINE, min(row.frame_ns or 0, row.owned_ns), 0
    elif holds_loop or row.training_ns > MIXED * total:
        where, taken, waits = LOOP, row.owned_ns, 0
    elif row.network_ns > total / 2:
        where, taken, waits = NETWORK, row.owned_ns, 0
    looks = round(row.looks * taken / total) if total else 0
    if taken - waits < LOOP_SHARE * loop or looks < LEAST_LOOKS:
        return None
    inside = row.inside if where == OUTSIDE and row.inside and (row.inside_ns or 0) >= HOT * total else None
    waits_beside = row.launch_ns < LAUNCHES * waits  # for what others launched, which takes its time in any case
    if waits_beside:
        inside = inside if (row.inside_ns or 0) < waits else None
        taken, looks = taken - waits, round(looks * (taken - waits) / taken)
    share = taken / loop
    every = looks / share  # looks in all
    most = min(1.0, share + ERRORS * sqrt(share * (1 - share) / every))
    code = None if row.frame_ns is None else _place_of(row.frame)
    name = code.rpartition("/")[2] if where == LINE and code else row.name.rpartition(": ")[2]
    return {
        "name": name, "where": where, "share": share, "most_share": most,
        "wait_share": waits / loop, "waits_beside": waits_beside,
        "site": None if where in (LOOP, LINE) else _place_of(row.caller),
        "code": code,
        "inside": inside, "mostly": None,
        "inside_share": None if inside is None or row.inside_ns is None else row.inside_ns / loop,
        "looks": looks, "rank": row.rank, "confidence": "high" if looks >= ENOUGH_LOOKS else "medium",
    }  # fmt: skip


def _may_be_operators(row: LoopCall) -> bool:
    """Whether most of a function's time may be that of operators which it launches, without a frame that says so.

    Where the recorded operators have lines, these say it of a function that does not train.
    """
    of_library = row.inside is not None and re.match(LIBRARY, row.inside.replace(": ", "(0): ", 1)) is not None
    known = (row.inside_ns or 0) if of_library else 0
    trains = row.training_ns > MIXED * row.total_ns
    if row.op_ns is None:
        return trains or known < HOT * row.total_ns
    return row.op_ns >= HOT * row.total_ns or (row.op_ns > 0 and trains)


def _lies_in(row: LoopCall, call: Mapping[str, Any], callers: Mapping[tuple[int, int, str], str | None]) -> bool:
    """Whether the function is mostly called from a call that was found, however far below it."""
    name, seen = row.name, set[str]()
    while name not in seen:
        seen.add(name)
        if name == call["key"] and (row.rep, row.rank) == (call["rep"], call["rank"]):
            return bool(call["where"] == OUTSIDE or name == row.name)
        frame = callers.get((row.rep, row.rank, name))
        name = name if frame is None else _LINE.sub(": ", frame)
    return False


def _place_of(frame: str | None) -> str | None:
    """`train.py:12` of `train.py(12): log`; None for a frame of the framework's, where nobody could change anything."""
    match = None if frame is None or frame.startswith(_FRAMEWORKS) else _FRAME.match(frame)
    return f"{match[1]}:{match[2]}" if match else None


def stage_of_call(call: Row | None) -> Stage | None:
    """Converts a call to the stage that limits."""
    return None if call is None or call["name"] is None else Stage(None, "call", call["name"])


def _worst(rows: Sequence[FetchCall]) -> list[FetchCall]:
    """Rows of the rank that waits longest."""
    worst = max(((row.wait_ns, -row.rep, -row.rank) for row in rows), default=None)
    return [row for row in rows if (row.wait_ns, -row.rep, -row.rank) == worst]


def _named(rows: Sequence[FetchCall]) -> dict[str, Any] | None:
    """`name`, its `share` of the loading, and the library's call `inside` it with `inside_share`; else None.

    `kind`: storage | other; `loader`: own (the training's own thread) | workers (processes that were not traced) |
    threads; `covered`: the part of the waits in which anything was called; `calls`: what takes most of the loading, the
    outermost first.
    """
    if not rows:
        return None
    hot = [row for row in rows if not row.is_wait and row.busy_ns >= HOT * row.loading_ns]
    loader = next((_by_whom(row.name) for row in rows if row.name.startswith("enumerate(DataLoader)#")), THREADS)
    covered = rows[0].covered_ns / rows[0].wait_ns
    call = {
        "name": None, "share": None, "inside": None, "inside_share": None, "kind": OTHER, "loader": loader,
        "threads": max(row.tracks for row in rows), "covered": covered, "calls": _listed(rows),
    }  # fmt: skip
    calls = [row for row in hot if not _LOADERS.match(row.name) and not row.name.startswith("<built-in function next")]
    libraries = [row for row in calls if _is_library(row)]
    own = [row for row in calls if not _is_library(row)]
    waits = loader == THREADS and any(_WAITS.search(row.name) for row in libraries)
    nameable = own or [row for row in calls if not _is_of_python(row)]
    if covered < COVERED or loader == WORKERS or waits or not nameable:
        return call
    chosen = max(nameable, key=lambda row: row.depth)
    below = [row for row in libraries if row.depth > chosen.depth]
    inside = min(below, key=lambda row: row.depth, default=None)
    reads = any(row.category in _FILE_CALLS or _FILES.search(row.name) for row in (chosen, *below))
    call |= {"name": chosen.name, "share": _share(chosen), "kind": STORAGE if reads else OTHER}
    return call if inside is None else call | {"inside": inside.name, "inside_share": _share(inside)}


def _listed(rows: Sequence[FetchCall]) -> list[dict[str, Any]]:
    works = [row for row in rows if not row.is_wait]
    most = sorted(works, key=lambda row: (-row.busy_ns, row.depth, row.name))[:MOST_LISTED]
    calls = [{"name": row.name, "depth": row.depth, "threads": row.tracks, "share": _share(row)} for row in most]
    return sorted(calls, key=lambda call: (call["depth"], -call["share"], call["name"]))


def _by_whom(name: str) -> str:
    match = _LOADER.match(name)
    return {"Single": OWN, "Multi": WORKERS}.get(match[1] or "", THREADS) if match else THREADS


def _share(row: FetchCall) -> float:
    return float(row.busy_ns / row.loading_ns)


def _is_of_python(row: FetchCall) -> bool:
    """Whether a call is one of Python itself."""
    return row.category not in _FILE_CALLS and (row.name.startswith("<") or _package(row) in sys.stdlib_module_names)


def _package(row: FetchCall) -> str:
    return _INSTALLED.sub("", row.name).partition(".py(")[0].partition("/")[0]


def _is_library(row: FetchCall) -> bool:
    """Whether a call is one for arrays, images or files, or of Python itself: no place where a user could change it."""
    name = row.name
    if row.category in _FILE_CALLS or name.startswith("<built-in"):
        return True
    return ".py(" in name and (_package(row) in _LIBRARIES or _is_of_python(row))
