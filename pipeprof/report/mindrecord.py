"""The advice to write many small files into one MindRecord file, with the code that does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.report.sections import Section
from pipeprof.report.sections.storage import operator
from pipeprof.units import format_bytes, format_ratio

if TYPE_CHECKING:
    from collections.abc import Mapping

# A MindRecord file of encoded pictures: `files` are the (path, label) of the script, in its order.
WRITE = (
    "from pathlib import Path",
    "from mindspore.mindrecord import FileWriter",
    'writer = FileWriter("train.mindrecord", overwrite=True)',
    'schema = {"image": {"type": "bytes"}, "label": {"type": "int32"}}',
    'writer.add_schema(schema, "rows")',
    "for path, label in files:",
    "    data = Path(path).read_bytes()",
    '    writer.write_raw_data([{"image": data, "label": label}])',
    "writer.commit()",
)
READ = (
    'data = ds.MindDataset("train.mindrecord", ["image", "label"])',
    'data = data.map(vision.Decode(), ["image"])  # RGB; cv2.imread gives BGR',
)


def mindrecord(source: Mapping[str, Any] | None) -> Section:
    """What to write instead of a source that waits for many small files, with the code that does it."""
    if not source:
        return Section("")
    site = f" ({source['site']})" if source["site"] else ""
    size = "" if source["read_bytes"] is None else f", {format_bytes(source['read_bytes'])} each"
    waits = f"waits {format_ratio(source['share'])} of a row's time for small files{size}"
    gain = f"as one MindRecord file at most x{source['most']:.2f}, its rows in another order where they are shuffled"
    code = [*WRITE, "# Then, in place of the source:", *READ]
    title = "Not tried: small files as one MindRecord"
    return Section(title, notes=[f"{operator(source)}{site} {waits}: {gain}."], code=code, language="python")
