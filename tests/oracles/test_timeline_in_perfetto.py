"""Perfetto's trace processor reads our timeline of a foreign trace as it reads the foreign trace itself."""

from collections import defaultdict
from pathlib import Path

import pytest
from captured import outside, own
from perfetto import FAULTS, FLOWS, ask, needs_perfetto
from trace_format import imported

from pipeprof.report.timeline.trace import Choice, write

GPU = Path(__file__).resolve().parents[1] / "real" / "gpu"
pytestmark = needs_perfetto
# Intervals of a category by name: count, time, and the name of what they lie in.
NESTED = """
SELECT s.name, count(*) AS n, sum(s.dur) AS total_ns, p.name AS parent FROM slice AS s
LEFT JOIN slice AS p ON s.parent_id = p.id WHERE s.category IN ('cpu_op', 'kernel', 'gpu_memcpy', 'gpu_memset')
GROUP BY 1, 4
"""


def totals(rows):
    """Count and time by name and by the name around it.

    As in a run, all ProfilerStep#N are one, and an operator that only calls itself again is one operator.
    """
    found = defaultdict(lambda: [0, 0])
    for row in rows:
        parent = row["parent"] or ""
        key = row["name"], "ProfilerStep" if parent.startswith("ProfilerStep") else parent
        if row["name"] != parent:
            found[key][0] += row["n"]
            found[key][1] += row["total_ns"]
    return dict(found)


def counted(rows):
    """Count and time by name alone."""
    return totals([row | {"parent": "" if row["name"] != row["parent"] else row["parent"]} for row in rows])


def both(path, tmp_path):
    """Faults, intervals and flows of the trace itself, and of our timeline of it."""
    run = imported(path, tmp_path / "run")
    write(run, tmp_path / "ours.json.gz", Choice())
    return ask(path, FAULTS, NESTED, FLOWS), ask(tmp_path / "ours.json.gz", FAULTS, NESTED, FLOWS)


@pytest.mark.parametrize(
    "path",
    [own("torch") / "small.cycle1.pt.trace.json.gz", *outside("torch/small/small.cycle1.pt.trace.json.gz")],
    ids=["own", *(["outside"] if outside("torch/small") else [])],
)
def test_the_same_operators_in_the_same_callers(tmp_path, path):
    theirs, ours = both(path, tmp_path)
    assert ours[0] == theirs[0] == []
    assert totals(ours[1]) == totals(theirs[1])
    assert ours[2] == theirs[2]
    assert ours[2][0]["n"] > 20


# Traces of a GPU, and how many intervals overlap in part so that Perfetto drops them.
@pytest.mark.parametrize(
    ("path", "lost"),
    [(GPU / "copies.pt.trace.json.gz", 0), (GPU / "launches_small.pt.trace.json.gz", 0),
     *((path, 26) for path in outside("torch/cuda/control.json.gz"))],
    ids=lambda value: getattr(value, "name", str(value)),
)  # fmt: skip
def test_what_overlaps_in_part_is_drawn_where_the_trace_itself_loses_it(tmp_path, path, lost):
    theirs, ours = both(path, tmp_path)
    assert theirs[0] == ([{"name": "slice_drop_overlapping_complete_event", "value": lost}] if lost else [])
    assert ours[0] == []
    assert ours[2] == theirs[2]
    for key, (count, _) in counted(theirs[1]).items():
        assert counted(ours[1])[key][0] >= count
    more = [sum(count for count, _ in counted(rows).values()) for rows in (ours[1], theirs[1])]
    assert (0 < more[0] - more[1] <= lost) if lost else more[0] == more[1]  # the others are no operators
