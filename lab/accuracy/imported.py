"""The diagnosis of imported files: MindSpore's own, recorded without pipeprof, and simulated ones of sink mode."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from archive import unpack
from score import CAPTURES, CONSUMER, answer_of
from sink import CASES, Case, write

from pipeprof.read.foreign import import_path
from pipeprof.report.build import build


def raw_one(captures: Path, name: str) -> dict[str, Any]:
    """{name, accepted, said, right} of one raw folder. Operators have the ids that they have in the recording."""
    truth = json.loads((captures / "raw" / "truth.json").read_text(encoding="utf-8"))["captures"][name]
    ops = json.loads((captures / "truth.json").read_text(encoding="utf-8"))["captures"][name]["ops"]
    with tempfile.TemporaryDirectory(prefix="raw-") as folder:
        unpack(captures / "raw" / f"{name}.tar.xz", Path(folder, "files"))
        diagnosis = build(import_path(Path(folder, "files"), Path(folder, "run")))["diagnosis"]
    stages = answer_of(diagnosis, {op_id: stage for stage, op_id in ops.items()}).stages
    return _row(name, truth["accepted"], stages[0] if stages else None)


def sink_one(case: Case) -> dict[str, Any]:
    """The same of a simulated case; what counts is the side that is late, and the operator when it is the pipeline."""
    with tempfile.TemporaryDirectory(prefix="sink-") as folder:
        write(case, Path(folder, "files"))
        diagnosis = build(import_path(Path(folder, "files"), Path(folder, "run")))["diagnosis"]
    bound = diagnosis["verdict"] == "input_bound"
    said = diagnosis.get("stage") if bound else CONSUMER
    if said == "data_processing":
        return _row(case.name, [f"{case.label} in op {case.op_id}"], f"{said} in op {diagnosis['op_id']}")
    return _row(case.name, [case.label], said)


def score_imported(captures: Path = CAPTURES) -> dict[str, list[dict[str, Any]]]:
    """{raw, sink}: one row per raw folder, and per simulated case."""
    names = sorted(path.name.removesuffix(".tar.xz") for path in (captures / "raw").glob("*.tar.xz"))
    return {"raw": [raw_one(captures, name) for name in names], "sink": [sink_one(case) for case in CASES]}


def _row(name: str, accepted: list[str], said: str | None) -> dict[str, Any]:
    return {"name": name, "accepted": accepted, "said": said, "right": said in accepted}
