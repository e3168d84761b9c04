"""Damaged and adversarial files of MegEngine: an import is refused in words, or makes a run that tables open."""

import json
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from fuzz_cases import CASES, PLACE, places
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from megengine_files import profile

from pipeprof.errors import PipeprofError
from pipeprof.read.foreign import import_path
from pipeprof.record.run import MANIFEST, load
from pipeprof.report import document, json_text
from pipeprof.report.ops import sections, show
from pipeprof.report.ops.question import Question
from pipeprof.report.ops.show import answer

pytestmark = pytest.mark.slow  # makes up its input

TIMELINE = {
    "traceEvents": [
        {"name": "thread_name", "ph": "M", "tid": 1, "pid": 4, "args": {"name": "gpu0:0"}},
        {"name": "conv", "ph": "B", "cat": "Kernel", "tid": 1, "pid": 4, "ts": 1.5},
        {"name": "conv", "ph": "E", "cat": "Kernel", "tid": 1, "pid": 4, "ts": 3.25, "args": {"__id__": "3"}},
        {"name": "gpu0:0_alloc_mem", "ph": "C", "pid": 4, "tid": 0, "ts": 2, "args": {"value": 7}},
        {"name": "f", "ph": "s", "pid": 4, "tid": 0, "ts": 2, "id": 9, "cat": "KernelLaunch"},
    ],
    "metadata": {"localTime": "1625027241000000000"},
}
STATIC = {
    "chunk": {"0": {"id": "0", "time_begin": "1", "time_end": "4", "logic_addr_begin": "64", "logic_addr_end": "96"}},
    "opr": {"0": {"id": "0", "name": "conv"}},
}
SVG = (
    '<svg xmlns:tag="https://megengine.org.cn"><rect tag:type="tensor" tag:address="0x7f" tag:size="3MB 5B " '
    'tag:produced="1s 2ms " tag:erased="1s 3ms "/></svg>'
)
SOURCES = {
    "profile": json.dumps(profile()).encode(), "indented": json.dumps(profile(), indent=1).encode(),
    "timeline": json.dumps(TIMELINE).encode(), "static": json.dumps(STATIC).encode(), "flow": SVG.encode(),
}  # fmt: skip
CONTENTS = {"profile": profile(), "timeline": TIMELINE, "static": STATIC}
ODD = [
    -1, 0, 2**53 + 1, 2**62, 2**63, 2**64, 10**400, 1e300, -1e300, 1e-300, float("nan"), float("inf"), -float("inf"), "nan",
    "inf", "", "<b>&\"'</b><script>alert(1)</script>", "[red]", "\ud800", "\x00", "a\nb|c", "x" * 100_000, "9" * 5000, None, True,
    [], {}, [[[[[1]]]]], {"1": {"2": {"3": {}}}}, '}, "7": {', [None], [[None]], ["7"], [2**70],
]  # fmt: skip
SEEN = set()


@contextmanager
def folder():
    place = Path(tempfile.mkdtemp(prefix="pipeprof-fuzz-", dir=PLACE))
    try:
        yield place
    finally:
        shutil.rmtree(place)


def judge(data, name="x.json"):
    """The run's state, or None when the import was refused; what was refused has left nothing behind."""
    with folder() as place:
        path = place / name
        path.write_bytes(data)
        try:
            import_path(path, place / "run")
        except PipeprofError as error:
            assert error.message  # noqa: PT017 - a refusal is one of two right answers
            assert [item.name for item in place.iterdir()] == [name]
            return None
        run = load(place / "run")
        assert sum(run.manifest.tables.values()) > 0
        assert (run.manifest.state == "complete") == (run.manifest.reason is None)
        assert place.joinpath("run", MANIFEST).is_file()
        said = tuple(sorted((item.code, item.message[:40]) for item in run.manifest.warnings))
        shape = name, run.manifest.state, said
        if shape not in SEEN and len(SEEN) < 60:
            SEEN.add(shape)
            tables_open(run)
        return run.manifest.state


def tables_open(run):
    for question in (Question(top=0, top_end_key="wait", show_host=True), Question(group_by="name", order_by="name")):
        content = answer(run, question)
        json.loads(json_text.text(content.document()), parse_constant=pytest.fail)
        show.csv_text(content)
        for form in ("terminal", "markdown", "html"):
            document.text(sections.document(content, "run", ""), form)


def changed(content, way, value):
    copy = json.loads(json.dumps(content))
    inside = copy
    for key in way[:-1]:
        inside = inside[key]
    inside[way[-1]] = value
    return json.dumps(copy).encode("utf-8", "surrogatepass")


many = settings(max_examples=60 + CASES // 5, deadline=None, suppress_health_check=list(HealthCheck))


def file_of(name):
    return "x.svg" if name == "flow" else "x.json"


@pytest.mark.parametrize("name", SOURCES)
def test_undamaged_files_are_complete(name):
    assert judge(SOURCES[name], file_of(name)) == "complete"


KEYS = st.one_of(st.text(max_size=5), st.sampled_from([str(2**53 + 1), str(2**70), "<b>", "2", "4", "host", ""]))
OLD = ['"2"', '"4"', '"device"', '"host"', '"worker"', '"end"', '"operator"', '"comp_seq"', '"var"']


@settings(many, max_examples=60 + CASES // 10)
@given(key=KEYS, old=st.sampled_from(OLD), times=st.integers(1, 3))
def test_any_key_may_be_another(key, old, times):
    """Another key, or the same twice, for an operator, a place, or a section."""
    text = SOURCES["profile"].decode()
    judge(text.replace(old, json.dumps(key), times).encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
@pytest.mark.parametrize("name", SOURCES)
def test_a_file_may_end_anywhere(name, share):
    judge(SOURCES[name][: int(len(SOURCES[name]) * share)], file_of(name))


@pytest.mark.parametrize("name", SOURCES)
@settings(many, max_examples=120 + 2 * CASES // 5)
@given(seed=st.integers(0, 2**40))
def test_any_bytes_and_values_may_be_wrong(name, seed):
    from damages import damage  # tests/mutations.py takes SOURCES from this file, and is where it comes from

    judge(damage(SOURCES[name], seed), file_of(name))


FEW = {kind: list(places(CONTENTS[kind])) for kind in ("timeline", "static")}
FEW["profile"] = [way for way in places(CONTENTS["profile"]) if {"2", "comp_seq"} & set(map(str, way))]


@pytest.mark.parametrize("value", ODD, ids=lambda value: repr(value)[:20])
@pytest.mark.parametrize("kind", FEW)
def test_every_odd_value_at_every_place_of_a_small_file_or_an_operator(kind, value):
    states = {judge(changed(CONTENTS[kind], way, value)) for way in FEW[kind]}
    assert states <= {"complete", "partial", None}
