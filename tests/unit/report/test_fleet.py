"""Questions over many runs: answers are the generator's truth, and what is kept is believed only while it is true."""

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from fleet_runs import SLOW_HOSTS, make_fleet

from pipeprof.cli import cli
from pipeprof.record.compact import put
from pipeprof.record.run import load
from pipeprof.report import rollup
from pipeprof.report.fleet import gather as gathering
from pipeprof.report.fleet import sections
from pipeprof.report.fleet.content import content_of
from pipeprof.report.fleet.gather import SCHEMA, gather, rows_of

pytestmark = pytest.mark.usefixtures("own_cache")
RUNS, WORKLOADS = 750, 5


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """A folder of runs, and what is true of them."""
    folder = tmp_path_factory.mktemp("fleet")
    return folder, make_fleet(folder, RUNS, WORKLOADS)


@pytest.fixture
def few(tmp_path):
    """A few runs that may be changed."""
    make_fleet(tmp_path / "few", 6, 3)
    return tmp_path / "few"


@pytest.fixture
def asked(monkeypatch):
    """The runs that were read and not recalled."""
    names = []
    monkeypatch.setattr(gathering, "rows_of", lambda path, name: names.append(name) or rows_of(path, name))
    return names


def invoked(*words):
    return CliRunner().invoke(cli, ["fleet", *map(str, words)])


def answer(*words):
    found = invoked(*words)
    assert found.exit_code == 0, found.output
    return found.stdout


def ordered(table):
    return table.sort_by([("run", "ascending"), ("rank", "ascending")])


def test_the_report_finds_what_was_planted(fleet):
    folder, truth = fleet
    content = content_of(gather([folder]), [str(folder)], 100)

    def found(rows, key, value):
        return {row[key]: row[value] for row in content[rows]}

    truth.states["partial"] = truth.states.pop("running")  # nobody records them any more
    assert (content["runs"], found("states", "state", "runs")) == (RUNS, truth.states)
    assert found("waits", "workload", "rank_hours") == pytest.approx(truth.rank_hours)
    assert found("waits", "workload", "wait_hours") == pytest.approx(truth.wait_hours)
    assert found("causes", "code", "runs") == truth.causes
    assert content["fixes"][0]["all_hours"] == pytest.approx(truth.saved_hours)
    assert {row["host"] for row in content["machines"]} == set(SLOW_HOSTS)
    assert found("regressions", "workload", "ratio") == pytest.approx(dict.fromkeys(truth.slower, 1.12), abs=0.05)
    assert {row["run"] for row in content["left_out"] if row["state"] == "damaged"} == {
        str(path.parent) for path in folder.rglob("run.json") if b'"run_id"' not in path.read_bytes()
    }


def test_stored_and_raw_answers_are_equal(fleet):
    """What the generator wrote as rollups are the numbers that the step tables give."""
    names = ["rep", "rank", "kind", "steps", "timed_steps", "median_ns", "training_ns", "wait_ns", "data_wait_share"]
    for path in sorted(fleet[0].glob("team-*/*"))[:9]:
        run = load(path)
        assert rollup.stored(run).select(names).equals(rollup.make(run).select(names))


def test_the_second_question_reads_no_run_but_those_that_may_have_changed(few, asked):
    first = gather([few])
    assert len(asked) == 6
    asked.clear()
    assert ordered(gather([few])).equals(ordered(first))
    assert asked == []
    gather([few], fresh=True)
    assert len(asked) == 6


def test_a_run_that_was_changed_added_or_removed_is_seen(few, asked):
    gather([few])
    asked.clear()
    changed, gone = sorted(path.parent for path in few.rglob("run.json"))[:2]
    run = load(changed)
    run.manifest.command = ["python", "another.py"]
    run.save()
    gone.joinpath("run.json").unlink()
    make_fleet(few / "new", 1)
    found = {row["run"]: row["workload"] for row in gather([few]).to_pylist()}
    assert found[str(changed)] == "another"
    assert str(gone) not in found
    assert len(asked) == 2


def test_a_damaged_run_is_named_and_asked_again_until_it_is_whole(few, asked):
    path = next(few.rglob("part-*.parquet"))
    whole, run = path.read_bytes(), path.parents[3]
    path.write_bytes(whole[:-9])
    for _ in range(2):
        (row,) = [row for row in gather([few]).to_pylist() if row["run"] == str(run)]
        assert row["state"] == "damaged"
        assert path.name in row["problem"]
    path.write_bytes(whole)
    assert {row["state"] for row in gather([few]).to_pylist()} == {"complete"}
    assert asked.count(str(run.relative_to(few))) == 3


@pytest.mark.parametrize("damaged", [
    lambda whole: whole[: len(whole) // 2], lambda whole: whole[:100] + bytes([whole[100] ^ 255]) + whole[101:],
    lambda _: b"{}", lambda _: b"",
], ids=["cut", "flipped", "other", "empty"])  # fmt: skip
def test_an_index_that_is_damaged_is_made_anew(few, asked, damaged):
    first = gather([few])
    (index,) = Path(os.environ["XDG_CACHE_HOME"], "pipeprof", "fleet").iterdir()
    index.write_bytes(damaged(index.read_bytes()))
    asked.clear()
    assert ordered(gather([few])).equals(ordered(first))
    assert len(asked) == 6


def test_an_index_of_other_rules_is_made_anew(few, asked, monkeypatch):
    gather([few])
    asked.clear()
    monkeypatch.setattr(gathering, "VERSION", gathering.VERSION + 1)
    gather([few])
    assert len(asked) == 6


def test_what_interrupts_loses_no_run_that_was_read(few, asked, monkeypatch):
    monkeypatch.setattr(gathering, "BLOCK", 1)

    def stop(text):
        if text.startswith("3 "):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gather([few], stop)
    assert len(asked) == 3
    gather([few])
    assert len(asked) == 6


def test_the_rows_of_many_runs_are_one_piece(few):
    """DuckDB takes memory for each piece of an Arrow table: 10,000 runs did not fit."""
    for _ in range(2):
        assert gather([few]).column("run").num_chunks == 1


def test_few_indexes_are_kept_and_without_a_cache_it_answers_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(gathering, "MOST_INDEXES", 2)
    for number in range(4):
        make_fleet(tmp_path / f"f{number}", 1)
        gather([tmp_path / f"f{number}"])
    assert len(list(Path(os.environ["XDG_CACHE_HOME"], "pipeprof", "fleet").iterdir())) == 2
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    assert gather([tmp_path]).num_rows > 0


def test_the_same_code_in_two_checkouts_is_one_place(tmp_path):
    make_fleet(tmp_path / "two", 2, 1)
    for number, path in enumerate(sorted(tmp_path.glob("two/*/*"))):
        run = load(path)
        run.manifest.workdir = f"/home/user{number}/model"
        run.save()
        rows = rollup.rollup_of(run)
        code = pa.array([f"/home/user{number}/model/data.py:7"] * rows.num_rows)
        put(path, rollup.TABLE, rows.set_column(rows.schema.get_field_index("code"), "code", code))
    assert gather([tmp_path / "two"]).column("code").unique().to_pylist() == ["data.py:7"]


def test_a_folder_without_runs_has_none_and_one_that_is_not_there_is_an_error(tmp_path):
    assert gather([tmp_path]).schema.equals(SCHEMA)
    assert "no run was found" in answer(tmp_path)
    found = invoked(tmp_path / "none")
    assert found.exit_code != 0
    assert "cannot list the runs" in str(found.exception)


def test_a_subfolder_that_cannot_be_listed_is_told(few, monkeypatch):
    (few / "private").mkdir()
    scandir = os.scandir

    def refused(path):
        if not isinstance(path, int) and Path(path).name == "private":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    assert json.loads(answer(few, "--format", "json"))["unlisted"] == [f"{few}/private: Permission denied"]
    assert "cannot be listed: " in answer(few)
    found = invoked(few, "--sql", "SELECT 1 AS one", "--format", "csv")
    assert found.stdout == "one\n1\n"
    assert f"warning: cannot be listed: {few}/private: Permission denied" in found.stderr


def test_folders_are_asked_together_and_once_and_links_to_them_not_followed(few, tmp_path):
    (few / "loop").symlink_to(few)
    assert len(set(gather([few]).column("run").to_pylist())) == 6
    make_fleet(tmp_path / "other", 3, 3)
    assert len(set(gather([few, tmp_path / "other", few]).column("run").to_pylist())) == 9
    assert gather([few.parent, few]).num_rows == gather([few.parent]).num_rows > 0  # a folder in another


def test_sql_over_the_runs(few):
    rows = json.loads(answer(few, "--sql", "SELECT run, ranks FROM fleet_run ORDER BY run", "--format", "json"))
    assert sorted(row["ranks"] for row in rows) == [1, 1, 2, 2, 3, 3]
    assert answer(few, "--sql", "SELECT count(*) AS n FROM fleet_rank", "--format", "csv") == "n\n12\n"


@pytest.mark.parametrize("words", [
    *(["--sql", text] for text in ("SELECT * FROM read_csv('/etc/passwd')", "COPY fleet_run TO '/tmp/x.csv'",
                                   "SELECT * FROM step", "DROP VIEW fleet_run")),
    ["--format", "csv"], ["--sql", "SELECT 1", "--format", "html"], ["--sql", "SELECT 1", "-o", "x"],
    ["--sql", "SELECT 1", "--top", "3"],
])  # fmt: skip
def test_sql_opens_no_file_and_changes_nothing_and_csv_is_for_it(few, words):
    found = invoked(few, *words)
    assert found.exit_code != 0
    assert "root:" not in found.output


def test_names_are_escaped_in_every_form(few):
    run = load(next(few.rglob("run.json")).parent)
    run.manifest.command = ["python", "<script>alert(1)</script>|\x1b[31m.py"]
    run.save()
    for form in ("terminal", "html", "markdown", "json"):
        said = answer(few, "--format", form)
        assert "<script>" not in said if form in ("html", "markdown") else "\x1b" not in said


def test_json_has_all_rows_and_a_table_says_how_many_it_leaves_out(few):
    asked = ("--top", "1", "--format")
    content = json.loads(answer(few, *asked, "json"))
    counts = [len(content[name]) for name in ("waits", "causes", "fixes")]
    assert min(counts) > 1
    text = answer(few, *asked, "markdown")
    assert [count for count in counts if f"- {count - 1} more with --format json" not in text] == []
    assert sections._waits(content, 1).blocks[0].rows == sections._waits(content, 9).blocks[0].rows[:1]
    assert sections._waits(content, 9).notes == []


def test_what_limits_what_took_no_time_and_what_did_not_say_why_it_failed_is_said_in_words():
    row = {"op_name": "decode", "op_type": "MapOp", "code": "a.py:1", "op_kind": "host_saturated", "runs": 2,
           "workloads": 1, "wait_hours": 1.0}  # fmt: skip
    (block,) = sections._causes({"causes": [row]}, 1).blocks
    assert block.rows[0][2] == "short of CPU: other programs keep the machine busy"
    row = {"state": "complete", "runs": 1, "measured": 1, "rank_hours": 0.0, "wait_hours": 0.0}
    assert sections._runs({"states": [row], "twice": 0}).strong == ["1 run trained for 0 ns of rank time"]
    row = {"state": "failed", "run": "runs/a", "problem": None, "measured": True}
    assert sections._said(row) == "failed: runs/a: no reason is known (what was measured counts)"
    seen = row | {"state": "complete", "measured": False}
    assert sections._said(seen) == "complete: runs/a: no training step was seen"
