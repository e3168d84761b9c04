"""What may come of an import of damaged files: an error in words, or a run that opens."""

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

from fuzz_cases import PLACE

from pipeprof.errors import PipeprofError
from pipeprof.read.foreign import import_path
from pipeprof.record import store
from pipeprof.record.run import MANIFEST, load
from pipeprof.record.schema import BY_NAME


@contextmanager
def place():
    folder = Path(tempfile.mkdtemp(prefix="pipeprof-ascend-fuzz-", dir=PLACE))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def judge(folder):
    """State of the run, or None when the import was refused. A refusal leaves nothing behind, and names its place."""
    target = folder / "run"
    before = sorted(path for path in folder.rglob("*") if path.is_file())
    try:
        import_path(folder / "raw", target)
    except PipeprofError as error:
        assert "raw" in error.message  # noqa: PT017 - a refusal is one of two right answers
        assert "\n" not in error.message  # noqa: PT017
        assert sorted(path for path in folder.rglob("*") if path.is_file()) == before
        return None
    outside = [path for path in folder.rglob("*") if path.is_file() and target not in path.parents]
    assert sorted(outside) == before
    run = load(target)
    assert target.joinpath(MANIFEST).is_file()
    assert run.manifest.state in ("complete", "partial")
    assert {table: len(store.read(run, table)) for table in BY_NAME if run.files(table)} == run.manifest.tables
    return run.manifest.state


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())
