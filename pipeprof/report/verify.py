"""Whether the files of a run are those that were written, for people and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.record import checksums
from pipeprof.report.document import Document
from pipeprof.report.sections import Section
from pipeprof.units import format_bytes, format_count

if TYPE_CHECKING:
    from pipeprof.record.run import Run

VERIFY_VERSION = 1
INTACT, DAMAGED, NO_CHECKSUMS = "intact", "damaged", "no_checksums"
EXIT_CODES = {INTACT: 0, DAMAGED: 3, NO_CHECKSUMS: 3}
WORDS = {
    "missing": "removed", "unknown": "added", "unreadable": "cannot be read", "size": "rewritten",
    "footer": "rewritten", "content": "changed",
}  # fmt: skip


def build(run: Run) -> dict[str, Any]:
    """Everything that `verify` says: the verdict, how much was read, and each file that was changed."""
    files = checksums.stored(run)
    changes = [change._asdict() for change in checksums.changes(run)]
    verdict = NO_CHECKSUMS if run.manifest.parts is None else DAMAGED if changes else INTACT
    return {
        "schema_version": VERIFY_VERSION,
        "run": {"path": run.name, "run_id": run.manifest.run_id, "made_by": run.manifest.pipeprof_version},
        "verdict": verdict,
        "exit_code": EXIT_CODES[verdict],
        "files": len(files),
        "bytes": sum(part.bytes for part in (run.manifest.parts or {}).values()),
        "changes": changes,
    }


def document(content: dict[str, Any]) -> Document:
    """The verdict in a sentence, and each change."""
    changes = [
        f"{change['file']}: {WORDS[change['code']]}: found {change['found']}, expected {change['expected']}"
        for change in content["changes"]
    ]
    return Document(_sentence(content), [Section("", notes=changes, unbroken=True)])


def _sentence(content: dict[str, Any]) -> str:
    path, files = content["run"]["path"], content["files"]
    if content["verdict"] == NO_CHECKSUMS:
        return f"`{path}` has no checksums: pipeprof {content['run']['made_by']} made it without; nothing can be said"
    if content["changes"]:
        changed = len(content["changes"])
        return f"{format_count(changed, 'file')} of `{path}` {'is' if changed == 1 else 'are'} not as written"
    return f"`{path}` is as it was written: {format_count(files, 'file')}, {format_bytes(content['bytes'])}"
