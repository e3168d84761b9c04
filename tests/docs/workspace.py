"""The folder in which the pages' commands are run: what they speak of lies there under the names that they use."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lab" / "accuracy"))
from archive import unpack
from copies import copy_file, copy_tree
from shebang import SHEBANG

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
CAPTURES = Path(__file__).parent / "captures"
RUNS = {
    "slow": ["slow", "RUN", "run", "new"],
    "fast": ["fast", "base"],
}
"""The names of each stored run. The tutorial's fix makes `fast` of `slow`; where a page looks for a regression, the slow
one is the new one."""

# Enough of jq for the pages: what they ask for must be there.
JQ = f"""{SHEBANG}import json, re, sys
value = json.load(sys.stdin)
for name, place in re.findall(r"\\.(\\w+)|\\[(\\d+)\\]", sys.argv[-1]):
    value = value[name] if name else value[int(place)]
print(json.dumps(value, indent=2))
"""


def make(folder: Path) -> Path:
    """Fill a new folder and return it."""
    for stored, names in RUNS.items():
        for name in names:
            unpack(CAPTURES / f"{stored}.tar.xz", folder / name)
    copy_tree(TESTS / "real" / "captures" / "2.10-ranks", folder / "two")
    copy_tree(ROOT / "examples", folder / "examples")
    for script in ("train.py", "a.py", "b.py"):
        copy_file(ROOT / "examples" / "tutorial" / "train.py", folder / script)
    copy_file(ROOT / "examples" / "sweep.toml", folder)
    _foreign(folder)
    jq = folder / "bin" / "jq"
    jq.parent.mkdir()
    jq.write_text(JQ, encoding="utf-8")
    jq.chmod(0o755)
    return folder


def _foreign(folder: Path) -> None:
    """What other programs wrote, and in the cache what would take each page's program seconds."""
    sys.path.insert(0, str(TESTS))
    try:
        import megengine_files
        import minddata_files
        import once
    finally:
        sys.path.remove(str(TESTS))
    once.keep_bundle(folder / "home" / ".cache")
    minddata_files.write_feed(folder / "profiler")
    (folder / "profile.json").write_text(json.dumps(megengine_files.profile()), encoding="utf-8")
    trace = TESTS / "real" / "key_averages" / "torch-2.13" / "trace.pt.trace.json.gz"
    copy_file(trace, folder / "resnet.pt.trace.json.gz")
