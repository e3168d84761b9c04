"""Answers kept with a run: a report from them is equal to one from the tables, and they are believed of nothing else."""

import math
import shutil
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path

import msgspec
import page_cost
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import rank_runs
from copies import copy_tree
from run_files import sealed

from pipeprof.cli.compact import compacted
from pipeprof.cli.messages import opened
from pipeprof.errors import QueryError, RunError
from pipeprof.query import catalog
from pipeprof.query.answers import Answers
from pipeprof.query.engine import Engine
from pipeprof.read.spool.finish import open_run
from pipeprof.record import checksums, compact
from pipeprof.record.run import load
from pipeprof.report import build as report
from pipeprof.report import by_parts, html, kept, rollup
from pipeprof.report.build import build, keep_answers

pytestmark = pytest.mark.slow  # writes runs of a hundred ranks
CAPTURES = Path(__file__).resolve().parents[2] / "real" / "captures"
NAMES = ("2.10-graph", "2.10-ranks", "many-ranks", "long")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Recorded runs, one of many ranks with collectives and a straggler, and a long one."""
    folder = tmp_path_factory.mktemp("runs")
    for name in NAMES[:2]:
        copy_tree(CAPTURES / name, folder / name)
        open_run(folder / name)
        shutil.rmtree(folder / name / "spool", ignore_errors=True)
        found = load(folder / name)
        found.manifest.state = "complete"
        found.save()
    sealed(rank_runs.make_run(folder / "many-ranks", 8))
    page_cost.make_run(folder / "long", 301, 3)
    return folder


@pytest.fixture(scope="module")
def known(made):
    """`known(name)`: the report of one of them by its tables. Its answers are kept in `answered`. Each is made once."""
    reports = {}

    def report_of(name):
        if name not in reports:
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(made / "answered")
                assert keep_answers(load(shutil.copytree(made / name, Path(name))))
                reports[name] = by_tables(load(Path(name)))
        return deepcopy(reports[name])

    (made / "answered").mkdir()
    return report_of


@pytest.fixture
def run(made, tmp_path, monkeypatch):
    """One of them that may be changed."""
    monkeypatch.chdir(tmp_path)
    return lambda name: load(shutil.copytree(made / name, Path(name)))


@pytest.fixture
def answered(made, known, run):
    """The same with its answers in it."""

    def copy(name):
        known(name)
        return load(shutil.copytree(made / "answered" / name, Path(name), dirs_exist_ok=True))

    return copy


def by_tables(run):
    return build(run, answers=Answers())


def by_answers(run, monkeypatch, make=build):
    """The report, if no other table has to be asked for it."""
    with asking(monkeypatch, lambda name: name == "kept/rows"):
        return make(run)


@contextmanager
def asking(monkeypatch, allowed):
    """The names of the queries that are asked; one that is not allowed fails the test."""
    asked, ask = [], Engine._asked

    def noted(engine, name, params):
        asked.append(name)
        return ask(engine, name, params) if allowed(name) else pytest.fail(f"{name} was asked")

    with monkeypatch.context() as patch:
        patch.setattr(Engine, "_asked", noted)
        yield asked


def page(run, content, monkeypatch):
    """The page, and which tables were asked for it."""
    with asking(monkeypatch, lambda _name: True) as asked:
        return html.of_run(run, content), asked


@pytest.mark.parametrize("name", NAMES)
def test_a_report_from_the_answers_is_equal_to_one_from_the_tables(answered, known, monkeypatch, name):
    expected = known(name)
    found = by_answers(answered(name), monkeypatch)
    assert found == expected
    assert msgspec.json.encode(found) == msgspec.json.encode(expected)  # 5 is not 5.0
    assert expected["steps"]["summary"]
    assert name != "many-ranks" or [one["rank"] for one in expected["ranks"]["straggler"]["found"]] == [3]


@pytest.mark.parametrize("name", ["2.10-ranks", "many-ranks", "long"])
def test_answers_of_parts_of_a_run_are_those_of_the_whole(run, monkeypatch, name):
    found = run(name)
    whole = Answers(filling=True)
    expected = build(found, answers=whole)
    monkeypatch.setattr(report, "PARTED_STEPS", 1)
    monkeypatch.setattr(by_parts, "RANK_ROWS", 200)
    monkeypatch.setattr(by_parts, "STEP_ROWS", 50)
    parted = report._answers_of(found)
    assert 40 < len(parted) < len(whole)
    with asking(monkeypatch, lambda name: name not in ("rank/phase_diff", "rank/curve", "step/variation")):
        assert build(found, answers=parted) == expected
    assert list(parted.written()) == list(whole.written())


def test_steps_are_parted_where_a_point_of_the_curve_ends_for_all_ranks():
    turns = [{"rep": 0, "peers": 0, "position": turn, "turn": turn, "turns": 6} for turn in range(6)]
    later = [{"rep": 0, "peers": 1, "position": turn + 1, "turn": turn, "turns": 6} for turn in range(6)]
    assert by_parts._ends_of_points(pa.Table.from_pylist(turns), 3) == [1, 3, 5]
    assert by_parts._ends_of_points(pa.Table.from_pylist(turns), 6) == [0, 1, 2, 3, 4, 5]
    assert by_parts._ends_of_points(pa.Table.from_pylist(turns + later), 3) == []


@pytest.mark.parametrize("name", NAMES)
def test_so_is_a_page_whose_charts_ask_nothing_but_stacks(run, answered, known, monkeypatch, name):
    expected, asked = page(run(name), known(name), monkeypatch)
    assert "step/trace_curve" in asked
    found, asked = page(answered(name), known(name), monkeypatch)
    assert found == expected
    assert {one.partition("/")[0] for one in asked} <= {"kept", "stack", "timeline"}


def test_what_they_do_not_say_is_asked_of_the_tables(answered):
    found = answered("long")
    assert len(build(found)["steps"]["slowest"]) == 3 * 10
    assert len(build(found, top=3)["steps"]["slowest"]) == 3 * 3


def test_those_of_other_tables_or_other_queries_are_not_believed(answered, monkeypatch):
    found = answered("long")
    assert kept.stored(load(found.path)) is not None
    with monkeypatch.context() as patch:
        patch.setattr(kept, "_query_texts", lambda: "other queries")
        assert kept.stored(load(found.path)) is None
    changed = load(found.path)
    changed.manifest.parts["step/rep=0/rank=0/part-00000.parquet"].sha256 = "0" * 64
    assert kept.stored(changed) is None


@pytest.mark.parametrize("column", ["made_of", "query", "place", "row_text"])
def test_a_table_with_other_columns_holds_no_answers(answered, column):
    found = answered("long")
    path = found.path / kept.TABLE / compact.COMPACT
    rows = pq.read_table(path)
    number = rows.column_names.index(column)
    for changed in (rows.remove_column(number), rows.set_column(number, column, [pa.nulls(rows.num_rows)])):
        pq.write_table(changed, path)
        again = load(found.path)
        again.manifest.parts[f"{kept.TABLE}/{compact.COMPACT}"] = checksums.part_of(path)
        again.save()
        assert kept.stored(load(found.path)) is None
        assert build(load(found.path))["steps"]["summary"]


def test_answers_with_other_rows_than_the_queries_give_are_asked_anew(answered, known):
    found = answered("long")
    table = pq.read_table(found.path / kept.TABLE / compact.COMPACT)
    texts = [text if text.isdigit() else "[1]" for text in table.column("row_text").to_pylist()]
    rows = table.set_column(table.column_names.index("row_text"), "row_text", [texts])
    changed = compact.put(found.path, kept.TABLE, rows.cast(compact.schema_of(kept.TABLE)))
    assert kept.stored(changed) is not None
    assert build(changed)["steps"]["summary"] == known("long")["steps"]["summary"] != []


@pytest.mark.parametrize("text", ["", "{", "[]", '[0, 0, 3, 4, 5.5, 6, "x", 8]', "[1e999]", None])
def test_a_text_of_another_form_is_no_answer(text):
    answers = Answers()
    answers.read([("step/summary", "{}", 0, "1"), ("step/summary", "{}", 1, text)])
    assert len(answers) == 1
    assert answers.find("step/summary", {}) is None


def test_compaction_keeps_them_and_asks_nothing(answered, known, monkeypatch):
    found, expected = answered("many-ranks"), known("many-ranks")
    with monkeypatch.context() as patch:
        patch.setattr(report, "build", lambda *_, **__: pytest.fail("a report was made"))
        compacted(found.path, lambda _text: None)
    again = by_answers(load(found.path), monkeypatch)
    assert again["ranks"] == expected["ranks"]
    assert again["steps"] == expected["steps"]


def test_compaction_makes_them_for_an_older_run_and_one_that_is_not_complete_has_none(run, monkeypatch):
    found = run("many-ranks")
    compacted(found.path, lambda _text: None)
    assert by_answers(load(found.path), monkeypatch)["ranks"]["phase_diff"]
    found = run("long")
    found.manifest.state = "partial"
    assert not keep_answers(found)
    assert not found.files(kept.TABLE)


def test_the_rollup_of_a_new_run_comes_from_its_answers(answered, monkeypatch):
    found = answered("long")
    with monkeypatch.context() as patch:
        patch.setattr(kept, "stored", lambda *_: None)
        expected = rollup.make(found).to_pylist()
    assert by_answers(found, monkeypatch, rollup.make).to_pylist() == expected


def test_a_value_that_has_no_text_leaves_its_answer_out_and_so_does_a_row_that_was_lost():
    row = dict.fromkeys(field.name for field in catalog.find("step/variation").gives)
    answers = Answers(filling=True)
    answers.note("step/sync", {}, [])
    answers.note("step/variation", {}, [row | {"long_ns": 0.1}])
    answers.note("step/variation", {"other": 1}, [row | {"long_ns": math.inf}])
    assert answers.find("step/sync", {}) == []
    assert answers.find("step/variation", {})[0]["long_ns"] == 0.1
    assert answers.find("step/variation", {"other": 1}) is None
    assert answers.find("step/summary", {}) is None
    answers, cut = Answers(filling=True), Answers()
    answers.note("step/variation", {}, [row, row])
    answers.note("step/sync", {}, [])
    cut.read([line for line in answers.written() if line[2] != 2])
    assert cut.find("step/variation", {}) is None
    assert cut.find("step/sync", {}) == []


def cut(path):
    path.write_bytes(path.read_bytes()[:-20])


def flipped(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [cut, flipped, Path.unlink])
def test_damaged_answers_are_said_and_the_tables_asked(answered, known, damage):
    found, expected = answered("long"), known("long")
    damage(found.path / kept.TABLE / compact.COMPACT)
    again = build(opened(found.path))
    assert again["steps"] == expected["steps"]
    [warning] = again["run"]["warnings"]
    assert warning["code"] == kept.DAMAGED
    assert "kept_answer/rows.parquet" in warning["message"]
    compacted(found.path, lambda _text: None)
    assert kept.stored(load(found.path)) is not None
    assert not build(opened(found.path))["run"]["warnings"]


def test_sql_over_the_rest_is_answered_beside_damaged_answers(answered):
    found = answered("long")
    cut(found.path / kept.TABLE / compact.COMPACT)
    with Engine.open(opened(found.path)) as engine:
        assert engine.sql("SELECT count(*) AS n FROM step").to_pylist()[0]["n"] > 0
        assert "step" in engine.sql("SHOW TABLES").column("name").to_pylist()
        with pytest.raises(QueryError) as caught:
            engine.sql("SELECT * FROM stepp")
        assert "step" in caught.value.hint
        with pytest.raises(RunError, match="kept_answer"):
            engine.sql("SELECT * FROM kept_answer")
    cut(found.path / "step" / "rep=0" / "rank=0" / "part-00000.parquet")  # a damaged table is still refused
    with pytest.raises(RunError, match="step/rep=0/rank=0"):
        opened(found.path)
