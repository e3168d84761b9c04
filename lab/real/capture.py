"""Makes a capture of a run that was recorded with --keep-spool: `python capture.py RUN captures/NAME`.

Keeps the spool and a manifest as it was before the conversion; takes out where, on what and by whom it was recorded.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path, PurePosixPath

UNDONE = {"state": "running", "reason": None, "ended_at": None, "reps": [], "tables": {}, "not_measured": []}
HIDDEN = {"workdir": None, "launcher_pid": None, "launcher_start": None, "git": None, "parts": None}
MACHINE = ("host", "kernel", "container", "os", "python", "mindspore", "device", "mode", "numpy", "environment")


def base(text):
    return PurePosixPath(text).name if text.startswith("/") else text


def clean_manifest(path):
    manifest = json.loads(path.read_text(encoding="utf-8")) | UNDONE | HIDDEN
    manifest["command"] = [base(word) for word in manifest["command"]]
    manifest["options"].pop("points", None)
    manifest["warnings"] = []
    manifest["fingerprint"] = {key: value for key, value in manifest["fingerprint"].items() if key not in MACHINE}
    path.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def clean_line(line):
    fields = json.loads(line)
    fields |= {name: base(fields[name]) for name in ("site", "executable") if name in fields}
    fields |= {"host": "machine"} if "host" in fields else {}
    fields |= {"argv0": [base(word) for word in fields["argv0"]]} if "argv0" in fields else {}
    return json.dumps(fields)


def make(run, capture):
    shutil.copytree(run / "spool", capture / "spool")
    shutil.copy(run / "run.json", capture / "run.json")
    clean_manifest(capture / "run.json")
    for path in [*capture.rglob("events.jsonl"), *capture.rglob("hello.jsonl")]:
        lines = [clean_line(line) for line in path.read_text(encoding="utf-8").splitlines()]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for path in capture.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


if __name__ == "__main__":
    make(Path(sys.argv[1]), Path(sys.argv[2]))
