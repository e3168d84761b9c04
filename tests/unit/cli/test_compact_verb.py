"""`pipeprof compact`: what every verb says about a run is the same before and after."""

import json
import shutil
from pathlib import Path

import pytest
from copies import copy_tree
from fuzz_cases import leaves
from in_process import ask, said

from pipeprof.read.spool.finish import open_run
from pipeprof.record.run import load

CAPTURE = Path(__file__).parents[2] / "real" / "captures" / "2.10-ranks"


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compact")
    copy_tree(CAPTURE, folder / "RUN")
    open_run(folder / "RUN")
    shutil.rmtree(folder / "RUN" / "spool")
    return folder


@pytest.fixture
def folder(captured, tmp_path, monkeypatch):
    """A run of two ranks, as it was recorded, in the current folder."""
    shutil.copytree(captured / "RUN", tmp_path / "RUN")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "words", [f"{words} --format json" for words in ("report RUN", "ops RUN --top 0", "memory RUN")]
)
def test_json_says_the_same_about_a_compacted_run(folder, words):
    before = list(leaves(json.loads(said(*words.split(" ")))))
    said("compact", "RUN")
    after = list(leaves(json.loads(said(*words.split(" ")))))
    assert [place for place, _ in after] == [place for place, _ in before]
    for (place, new), (_, old) in zip(after, before, strict=True):
        # sums of fractions in another order differ in the last digit
        assert new == (pytest.approx(old, rel=1e-9) if isinstance(old, float) else old), place


@pytest.mark.parametrize("words", [
    "report RUN --full", "sql RUN FROM\nstep\nORDER\nBY\nALL --format csv",
])  # fmt: skip
def test_a_report_says_the_same_about_a_compacted_run(folder, words):
    before = said(*words.split(" "))
    said("compact", "RUN")
    assert said(*words.split(" ")) == before
    assert len(load(folder / "RUN").files("step")) == 1


def events(path):
    """Names of tracks in any order: they come before their first event. Everything else as it stands."""
    found = json.loads(path.read_bytes())
    every = found["traceEvents"]
    assert len(every) > 1000
    return sorted(map(repr, (one for one in every if one["ph"] == "M"))), [one for one in every if one["ph"] != "M"]


@pytest.mark.parametrize("words", ["timeline RUN -o", "timeline RUN --ranks 1 -o"])
def test_a_trace_has_the_same_events_in_the_same_order_and_call_stacks_are_the_same(folder, words):
    for name in ("before", "after"):
        said(*f"{words} {name}.json".split())
        said("stacks", "RUN", "--by", "scope", "-o", f"{name}.txt")
        said("compact", "RUN")
    assert events(folder / "after.json") == events(folder / "before.json")
    assert folder.joinpath("after.txt").read_bytes() == folder.joinpath("before.txt").read_bytes() != b""


def test_it_says_how_many_files_became_how_many_and_verify_knows_them(folder):
    files = len(list(folder.joinpath("RUN").rglob("*.parquet")))
    tables = len({path.parts[-4] for path in folder.joinpath("RUN").rglob("*.parquet")})
    done = ask("compact", "RUN")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.splitlines()[-1] == f"pipeprof: {files} files became {tables}"
    assert f"as it was written: {tables + 1} files" in said("verify", "RUN")  # with the answers for its report
    again = ask("compact", "RUN")
    assert again.stderr.splitlines()[-1] == f"pipeprof: one file for each table already: {tables + 1}"
