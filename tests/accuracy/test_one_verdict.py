"""One run, one verdict: every screen says what the verdict does, on every stored capture."""

import os
import shutil
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from archive import unpack
from screens import disagreements

from pipeprof.read.spool.finish import open_run
from pipeprof.record.listing import runs_in
from pipeprof.report.build import build

HERE = Path(__file__).parent
REAL = HERE.parent / "real" / "captures"
STORED = HERE / "captures"
FEW = ("batch_wait", "loop_model", "map_py", "loop_2ms", "source_poll", "tie_consumer", "drawn_20261121_00")


def compared(name):
    with tempfile.TemporaryDirectory(prefix="screens-") as folder:
        path = Path(folder) / "run"
        if (REAL / name).is_dir():
            shutil.copytree(REAL / name, path)
        else:
            path.mkdir()
            unpack(STORED / f"{name}.tar.xz", path)
        run = open_run(path)
        (listed,) = runs_in(Path(folder))
        return [f"{name}: {found}" for found in disagreements(run, build(run), listed)]


def all_compared(names):
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        return [found for each in pool.map(compared, names) for found in each]


def test_all_screens_of_a_run_say_one_verdict():
    assert all_compared([*sorted(path.name for path in REAL.iterdir()), *FEW]) == []


@pytest.mark.slow
def test_all_screens_of_stored_captures_say_one_verdict():
    """Every fourth capture; PIPEPROF_ALL_CAPTURES=1 takes all, which is 20 minutes of CPU time."""
    names = sorted(path.name.removesuffix(".tar.xz") for path in STORED.glob("*.tar.xz"))
    assert len(names) > 200
    assert all_compared(names if "PIPEPROF_ALL_CAPTURES" in os.environ else names[::4]) == []
