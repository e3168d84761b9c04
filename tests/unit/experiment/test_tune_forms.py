"""Scripts in many forms are run, patched and run again: the operators have the settings and the order that was asked for.

Their dataset only notes how it was made, and by which lines, as the recording of a real one says.
"""

import json
import subprocess
import sys

import pytest

from pipeprof.experiment.tune.patch import patch_of
from pipeprof.record.settings_file import OperatorSetting, Settings

DATASET = """
import json, sys


class Dataset:
    def __init__(self, kind, name, workers, child=None):
        frame, lines = sys._getframe(1), []
        while frame is not None:
            lines += [] if frame.f_code.co_filename == __file__ else [f"{frame.f_code.co_filename}:{frame.f_lineno}"]
            frame = frame.f_back
        known = {"op_type": kind, "name": name, "workers": workers, "site": lines[0], "callers": "\\n".join(lines[1:])}
        self.made = [known, *(child.made if child else ())]

    def map(self, name, columns=None, num_parallel_workers=1):
        return Dataset("MapOp", name, num_parallel_workers, self)

    def batch(self, size, drop_remainder=False, num_parallel_workers=1):
        return Dataset("BatchOp", "", num_parallel_workers, self)


class ImageFolderDataset(Dataset):
    def __init__(self, path, number=None, num_parallel_workers=1):
        super().__init__("ImageFolderOp", "", num_parallel_workers)
"""
FORMS = {
    "one line": 'data = ds.ImageFolderDataset("x").map("a").map("b").batch(8)\n',
    "brackets": 'data = (\n    ds.ImageFolderDataset("x")\n    .map("a")\n    .map(\n        "b",\n        ["x"],\n    )\n    .batch(8)\n)\n',
    "brackets of a part": 'data = (\n    (ds.ImageFolderDataset("x")\n     .map("a"))\n    .map("b")\n).batch(8)\n',
    "backslashes": 'data = ds.ImageFolderDataset("x") \\\n    .map("a") \\\n    .map("b") \\\n    .batch(8)\n',
    "lines": 'data = ds.ImageFolderDataset("x")\ndata = data.map("a")  # first\n# second\ndata = data.map(\n    "b",\n)\ndata = data.batch(8)',
    "returned": 'def make(path):\n    return (ds.ImageFolderDataset(path)\n            .map("a").map("b")\n            .batch(8))\n\n\ndata = make("x")\n',
    "within a call": 'data = max([ds.ImageFolderDataset("x").map("a").map("b").batch(8)], key=id)\n',
    "carriage returns": 'data = (\r\n    ds.ImageFolderDataset("x")\r\n    .map("a")\r\n    .map("b")\r\n    .batch(8))\r\n',
    "tabs": 'if True:\n\tdata = ds.ImageFolderDataset("x")\n\tdata = data.map("a")\n\tdata = data.map("b")\n\tdata = data.batch(8)',
    "helper": 'def make(n=1, m=1):\n    data = ds.ImageFolderDataset("x", num_parallel_workers=n)\n    data = data.map("a", num_parallel_workers=m)\n    data = data.map("b")\n    data = data.batch(8)\n    return data\ndata = make()\n',
}  # fmt: skip
WANTED = {"one map": {2: {"workers": 7}}, "all": {node: {"workers": 3 + node} for node in range(4)}}
WANTED |= {f"batch first of {maps}": {0: {"workers": 2, "maps_after": maps}} for maps in (1, 2)}


def made_by(folder):
    """The operators of the script, nearest the loop first."""
    script = f"import json, runpy; print(json.dumps(runpy.run_path('{folder}/train.py')['data'].made))"
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [row | {"node": node} for node, row in enumerate(json.loads(done.stdout))]


@pytest.mark.parametrize("form", FORMS)
def test_the_patched_script_makes_the_operators_that_were_asked_for(tmp_path, form):
    (tmp_path / "ds.py").write_text(DATASET)
    script = f"import ds\n{FORMS[form]}".encode()
    (tmp_path / "train.py").write_bytes(script)
    rows = made_by(tmp_path)
    for changes in WANTED.values():
        (tmp_path / "train.py").write_bytes(script)
        wanted = tuple(
            OperatorSetting(node=node, op_type=rows[node]["op_type"], place=rows[node]["site"], **change)
            for node, change in changes.items()
        )
        found = patch_of(Settings(operators=wanted), tmp_path, (), rows)
        if {one.why for one in found.by_hand} == {"same_line"}:  # of both maps
            continue
        assert found.by_hand == ()
        (tmp_path / "change.diff").write_bytes(found.diff.encode())
        done = subprocess.run(
            ["git", "apply", "change.diff"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        expected = [(row["name"], changes.get(row["node"], {}).get("workers", row["workers"])) for row in rows]
        moved = changes.get(0, {}).get("maps_after", 0)
        expected.insert(moved, expected.pop(0))
        assert [(row["name"], row["workers"]) for row in made_by(tmp_path)] == expected
