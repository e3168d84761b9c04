"""What other programs wrote and said: the project's own captures, and those that lie beside a checkout, where there are any."""

from __future__ import annotations

import atexit
import os
import tempfile
import zipfile
from functools import cache
from pathlib import Path

CAPTURES = Path(__file__).resolve().parent / "captures"
OUTSIDE = Path(os.environ.get("PIPEPROF_OUTSIDE", Path(__file__).resolve().parents[3] / "shared" / "data"))


@cache
def own(name: str) -> Path:
    """The folder of an archive of captures, unpacked for this process; see captures/PROVENANCE.md."""
    folder = tempfile.TemporaryDirectory(prefix=f"captures-{name}-")
    atexit.register(folder.cleanup)
    with zipfile.ZipFile(CAPTURES / f"{name}.zip") as archive:
        archive.extractall(folder.name)
    return Path(folder.name)


def outside(*names: str) -> list[Path]:
    """Those of these folders and files that lie beside the checkout."""
    return [OUTSIDE / name for name in names if (OUTSIDE / name).exists()]
