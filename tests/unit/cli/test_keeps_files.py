"""No verb replaces a file that the user names, unless told so."""

import os

import pytest
from in_process import ask
from table_rows import MS, op, steps

from pipeprof.errors import UsageError
from pipeprof.record.run import Rep

WRITERS = (
    ["report", "run", "--format", "html", "-o", "out"], ["ops", "run", "-o", "out"],
    ["ops", "run", "--format", "parquet", "-o", "out"], ["memory", "run", "-o", "out"],
    ["memory", "run", "--svg", "out"], ["timeline", "run", "-o", "out"],
    ["stacks", "run", "-o", "out", "--by", "scope"], ["compare", "run", "other", "-o", "out"],
)  # fmt: skip
REPORTS = [
    [*verb, "--format", form]
    for verb in (["runs"], ["status", "run"], ["verify", "run"], ["memory", "run"], ["compare", "run", "other"])
    for form in ("terminal", "html", "markdown", "json")
]


@pytest.fixture(autouse=True)
def _run(make_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    block = {"op_id": 0, "address": 4096, "bytes": 64, "produced_ns": 5, "released_ns": 9}
    info = {"op_id": 0, "name": "Default/Add-op0", "type": "Add"}
    tables = {"op": [op(0, 10, 1, MS)], "op_info": [info], "allocation": [block]}
    facts = {"state": "complete", "reps": [Rep(rep=0, zero_realtime_ns=0, zero_monotonic_ns=0, exit_code=0)]}
    for name, ns in (("run", MS), ("other", MS + 1)):
        run = make_run({"step": steps(*["train"] * 4, length=ns), **tables}, **facts)
        run.path.rename(tmp_path / name)


@pytest.mark.parametrize("words", WRITERS, ids=" ".join)
def test_a_file_is_replaced_with_force_alone_and_a_folder_never(tmp_path, words):
    out = tmp_path / "out"
    ask(*words)
    written = out.read_bytes()
    out.write_text("precious", encoding="utf-8")
    with pytest.raises(UsageError, match="`out` exists") as refused:
        ask(*words)
    assert "--force" in refused.value.hint
    assert out.read_text(encoding="utf-8") == "precious"
    ask(*words, "--force")
    assert out.read_bytes() == written
    out.unlink()
    out.mkdir()
    with pytest.raises(UsageError, match="`out`: it is a folder"):
        ask(*words, "--force")


@pytest.mark.parametrize(
    "words", [*REPORTS, ["top", "run", "--once"], *(words[:-2] for words in WRITERS[:2])], ids=" ".join
)
def test_a_dash_is_stdout_and_a_name_is_a_file_with_the_same_text(tmp_path, words):
    shown = ask(*words).stdout
    assert shown
    assert ask(*words, "-o", "-").stdout == shown
    assert not (tmp_path / "-").exists()
    assert ask(*words, "-o", "out").stdout == ""
    assert (tmp_path / "out").read_text(encoding="utf-8") == shown


def test_a_pipe_or_device_is_never_replaced_nor_the_usual_name_of_a_timeline(tmp_path):
    os.mkfifo(tmp_path / "out")
    with pytest.raises(UsageError, match="it is not a file"):
        ask("report", "run", "-o", "out", "--force")
    assert (tmp_path / "out").is_fifo()
    (tmp_path / "trace.json.gz").write_text("precious", encoding="utf-8")
    with pytest.raises(UsageError, match=r"`trace\.json\.gz` exists"):
        ask("timeline", "run")
