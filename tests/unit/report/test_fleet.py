"""Questions over many runs: the answers are the generator's truth, and what is kept is believed only while it is true."""

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from fleet_runs import SLOW_HOSTS, make_fleet

from pipeprof.cli import cli
from pipeprof.record.run import load
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

    def noted(path, name):
        names.append(name)
        return rows_of(path, name)

    monkeypatch.setattr(gathering, "rows_of", noted)
    return names


def answer(*words):
    found = CliRunner().invoke(cli, ["fleet", *map(str, words)])
    assert found.exit_code == 0, found.output
    return found.stdout


def test_the_report_finds_what_was_planted(fleet):
    folder, truth = fleet
    content = content_of(gather([folder]), [str(folder)], 100)
    states = {row["state"]: row["runs"] for row in content["states"]}
    truth.states["partial"] = truth.states.pop("running")  # nobody records them any more
    assert states == truth.states
    assert content["runs"] == RUNS
    assert {row["workload"]: row["rank_hours"] for row in content["waits"]} == pytest.approx(truth.rank_hours)
    assert {row["workload"]: row["wait_hours"] for row in content["waits"]} == pytest.approx(truth.wait_hours)
    assert {row["code"]: row["runs"] for row in content["causes"]} == truth.causes
    assert content["fixes"][0]["all_hours"] == pytest.approx(truth.saved_hours)
    assert {row["host"] for row in content["machines"]} == set(SLOW_HOSTS)
    assert {row["workload"] for row in content["regressions"]} == truth.slower.keys()
    for row in content["regressions"]:
        assert row["ratio"] == pytest.approx(1.12, abs=0.05)
    assert {row["run"] for row in content["left_out"] if row["state"] == "damaged"} == {
        str(path.parent) for path in folder.rglob("run.json") if b'"run_id"' not in path.read_bytes()
    }


def test_stored_and_raw_answers_are_equal(fleet):
    """What the generator wrote as rollups are the numbers that the step tables give."""
    from pipeprof.report import rollup

    for path in sorted(fleet[0].glob("team-*/*"))[:9]:
        run = load(path)
        stored, made = rollup.stored(run), rollup.make(run)
        names = [
            "rep",
            "rank",
            "kind",
            "steps",
            "timed_steps",
            "median_ns",
            "training_ns",
            "wait_ns",
            "data_wait_share",
        ]
        assert stored.select(names).equals(made.select(names))


def test_the_second_question_reads_no_run_but_those_that_may_have_changed(few, asked):
    first = gather([few])
    assert len(asked) == 6
    asked.clear()
    assert gather([few]).sort_by("run").equals(first.sort_by("run"))
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
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    run = str(path.parents[3])
    for _ in range(2):
        (row,) = [row for row in gather([few]).to_pylist() if row["run"] == run]
        assert row["state"] == "damaged"
        assert path.name in row["problem"]
    path.write_bytes(whole)
    assert {row["state"] for row in gather([few]).to_pylist()} == {"complete"}
    assert asked.count(str(path.parents[3].relative_to(few))) == 3


@pytest.mark.parametrize("damage", ["cut", "flipped", "other", "empty"])
def test_an_index_that_is_damaged_is_made_anew(few, asked, damage):
    first = gather([few])
    (index,) = Path(os.environ["XDG_CACHE_HOME"], "pipeprof", "fleet").iterdir()
    content = bytearray(index.read_bytes())
    if damage == "cut":
        content = content[: len(content) // 2]
    elif damage == "flipped":
        content[100] ^= 255
    elif damage == "other":
        content = bytearray(b"{}")
    else:
        content.clear()
    index.write_bytes(content)
    asked.clear()
    assert (
        gather([few])
        .sort_by([("run", "ascending"), ("rank", "ascending")])
        .equals(first.sort_by([("run", "ascending"), ("rank", "ascending")]))
    )
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


def test_few_indexes_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(gathering, "MOST_INDEXES", 2)
    for number in range(4):
        make_fleet(tmp_path / f"f{number}", 1)
        gather([tmp_path / f"f{number}"])
    assert len(list(Path(os.environ["XDG_CACHE_HOME"], "pipeprof", "fleet").iterdir())) == 2


def test_the_same_code_in_two_checkouts_is_one_place(tmp_path):
    from pipeprof.record.compact import put
    from pipeprof.report import rollup

    make_fleet(tmp_path / "two", 2, 1)
    for number, path in enumerate(sorted(tmp_path.glob("two/*/*"))):
        run = load(path)
        run.manifest.workdir = f"/home/user{number}/model"
        run.save()
        rows = rollup.rollup_of(run)
        code = pa.array([f"/home/user{number}/model/data.py:7"] * rows.num_rows)
        put(path, rollup.TABLE, rows.set_column(rows.schema.get_field_index("code"), "code", code))
    found = gather([tmp_path / "two"])
    assert found.column("code").unique().to_pylist() == ["data.py:7"]


def test_without_a_cache_it_answers_all_the_same(few, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    assert gather([few]).num_rows > 0


def test_a_folder_without_runs_has_none(tmp_path):
    assert gather([tmp_path]).schema.equals(SCHEMA)
    assert "no run was found" in answer(tmp_path)


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    found = CliRunner().invoke(cli, ["fleet", str(tmp_path / "none")])
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
    found = CliRunner().invoke(cli, ["fleet", str(few), "--sql", "SELECT 1 AS one", "--format", "csv"])
    assert found.stdout == "one\n1\n"
    assert f"warning: cannot be listed: {few}/private: Permission denied" in found.stderr


def test_links_to_folders_are_not_followed(few):
    (few / "loop").symlink_to(few)
    assert len(set(gather([few]).column("run").to_pylist())) == 6


def test_sql_over_the_runs(few):
    rows = json.loads(answer(few, "--sql", "SELECT run, ranks FROM fleet_run ORDER BY run", "--format", "json"))
    assert sorted(row["ranks"] for row in rows) == [1, 1, 2, 2, 3, 3]
    assert answer(few, "--sql", "SELECT count(*) AS n FROM fleet_rank", "--format", "csv") == "n\n12\n"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "COPY fleet_run TO '/tmp/x.csv'",
        "SELECT * FROM step",
        "DROP VIEW fleet_run",
    ],
)
def test_sql_opens_no_file_and_changes_nothing(few, text):
    found = CliRunner().invoke(cli, ["fleet", str(few), "--sql", text])
    assert found.exit_code != 0
    assert "root:" not in found.output


def test_names_are_escaped_in_every_form(few):
    run = load(next(few.rglob("run.json")).parent)
    run.manifest.command = ["python", "<script>alert(1)</script>|\x1b[31m.py"]
    run.save()
    for form in ("terminal", "html", "markdown", "json"):
        said = answer(few, "--format", form)
        assert "<script>" not in said if form in ("html", "markdown") else "\x1b" not in said


def test_folders_are_asked_together_and_once(few, tmp_path):
    make_fleet(tmp_path / "other", 3, 3)
    both = gather([few, tmp_path / "other", few])
    assert len(set(both.column("run").to_pylist())) == 9


def test_a_folder_in_another_is_asked_once(few):
    assert gather([few.parent, few]).num_rows == gather([few.parent]).num_rows > 0


def test_csv_is_for_sql(few):
    for words in (["--format", "csv"], ["--sql", "SELECT 1", "--format", "html"], ["--sql", "SELECT 1", "-o", "x"],
                  ["--sql", "SELECT 1", "--top", "3"]):  # fmt: skip
        assert CliRunner().invoke(cli, ["fleet", str(few), *words]).exit_code != 0


def test_what_limits_is_said_in_words():
    row = {"op_name": "decode", "op_type": "MapOp", "code": "a.py:1", "op_kind": "host_saturated", "runs": 2, "workloads": 1,
           "wait_hours": 1.0}  # fmt: skip
    (block,) = sections._causes({"causes": [row]}, 1).blocks
    assert block.rows[0][2] == "short of CPU: other programs keep the machine busy"


def test_json_has_all_rows_and_a_table_says_how_many_it_leaves_out(few):
    asked = ("--top", "1", "--format")
    content = json.loads(answer(few, *asked, "json"))
    counts = {name: len(content[name]) for name in ("waits", "causes", "fixes")}
    assert min(counts.values()) > 1
    text = answer(few, *asked, "markdown")
    for count in counts.values():
        assert f"- {count - 1} more with --format json" in text
    assert sections._waits(content, 1).blocks[0].rows == sections._waits(content, 9).blocks[0].rows[:1]
    assert sections._waits(content, 9).notes == []


def test_steps_that_took_no_time_have_no_share():
    row = {"state": "complete", "runs": 1, "measured": 1, "rank_hours": 0.0, "wait_hours": 0.0}
    assert sections._runs({"states": [row], "twice": 0}).strong == ["1 run trained for 0 ns of rank time"]


def test_a_run_that_does_not_say_why_it_failed_is_not_said_to_have_no_step():
    row = {"state": "failed", "run": "runs/a", "problem": None, "measured": True}
    assert sections._said(row) == "failed: runs/a: no reason is known (what was measured counts)"
    assert (
        sections._said(row | {"state": "complete", "measured": False}) == "complete: runs/a: no training step was seen"
    )
