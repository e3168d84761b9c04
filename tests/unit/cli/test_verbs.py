"""What each verb prints, and how it ends when it cannot."""

import csv
import errno
import io
import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from copies import files_of
from every import every
from table_rows import MS, op, steps

from pipeprof import cli as program
from pipeprof.cli import cli
from pipeprof.cli.report import OLD_SECTIONS, SectionName
from pipeprof.cli.report import SECTIONS as OF_REPORT
from pipeprof.cli.verbs import SECTIONS, VERBS
from pipeprof.errors import UsageError
from pipeprof.record.run import NotMeasured
from pipeprof.report.output import has_colours


@pytest.fixture
def run(make_run):
    ops = [op(n % 2, 10, n, n * MS) for n in range(4)]
    info = {"phase": "forward"}
    infos = [info | {"op_id": n, "name": f"Default/{kind}-op0", "type": kind} for n, kind in enumerate(("Add", "Mul"))]
    return make_run({"step": steps(*["train"] * 4, length=MS), "op": ops, "op_info": infos}, state="complete")


def failed(result, code):
    """An expected error: nothing on stdout, `error:` and `hint:`, one line each, no traceback."""
    status, out, err = result
    lines = err.splitlines()
    assert (status, out) == (code, "")
    assert lines[0].startswith("error: ")
    assert all(line.startswith("hint: ") for line in lines[1:])
    assert len(lines) <= 2
    return err


@pytest.mark.parametrize(("old", "new"), OLD_SECTIONS.items())
def test_old_names_of_sections_are_taken_but_not_shown(old, new):
    kind = SectionName(OF_REPORT)
    assert kind.convert(old, None, None) == kind.convert(new, None, None) == new
    assert f"|{old}|" not in CliRunner().invoke(cli, ["report", "--help"]).output.replace("\n", "").replace(" ", "")


@every(VERBS)
def test_help_explains_and_shows_an_example(verb):
    result = CliRunner().invoke(cli, [verb, "--help"])
    assert result.exit_code == 0
    assert f"pipeprof {verb}" in result.output.split("Options:")[0].replace(f"Usage: cli {verb}", "")


def test_help_of_the_program_groups_the_verbs_by_question_with_a_line_for_each_at_80_columns(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = call("--help")[1].splitlines()
    assert call() == (0, call("--help")[1], "")
    shown = [verb for verb in VERBS if not cli.get_command(click.Context(cli), verb).hidden]
    assert len(shown) > 15
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines if line.endswith("...") and "[ARGS]" not in line]
    for verb in shown:
        assert [line.split(maxsplit=1)[1] for line in lines if line.split()[:1] == [verb]] == [VERBS[verb].line]
    places = [[line.strip() for line in lines].index(question) for question in SECTIONS]
    assert places == sorted(places)
    assert "Did a change make it slower?" in SECTIONS


@pytest.mark.parametrize("name", ["train.sh", "folder", "nowhere/now.txt", "train.sh/now.txt"])
def test_the_file_of_live_replaces_nothing(call, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    Path("train.sh").write_text("exit 0\n", encoding="utf-8")
    Path("folder").mkdir()
    code, out, said = call("collect", "--live", name, "--", "touch", "started")
    assert (code, out) == (2, "")
    assert name in said
    assert sorted(path.name for path in tmp_path.iterdir() if path.name in {"train.sh", "started"}) == ["train.sh"]
    assert Path("train.sh").read_text(encoding="utf-8") == "exit 0\n"


def test_a_verb_loads_its_own_file_only_and_arrow_imports_no_pandas_into_the_program(tmp_path):
    code = (
        "import sys; from pipeprof.cli import cli; cli.main(['sql', '--help'], standalone_mode=False); "
        "print(sorted(name for name in sys.modules if name.startswith('pipeprof.cli.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = ("messages", "options", "report", "streams", "verbs")
    assert done.stdout.splitlines()[-1] == str([f"pipeprof.cli.{name}" for name in names])
    words = ["collect", "-o", str(tmp_path / "run"), "--", "true"]
    command = [sys.executable, "-X", "importtime", "-m", "pipeprof", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "pyarrow" in imported
    assert "pandas.core.frame" not in imported  # `import pandas` is listed also where it fails


NAMES = ", ".join(f"`{name}`" for name in OF_REPORT)


@pytest.mark.parametrize(
    ("words", "message", "near"),
    [
        (["reprot", "x"], "no such command: `pipeprof reprot`", "`report`"),
        (["Timelin"], "no such command: `pipeprof Timelin`", "`timeline`"),
        (["baseline", "wrote"], "no such command: `pipeprof baseline wrote`", "`write`"),
        (["report", "--section", "pipelin", "x"], f"invalid value for `--section`: `pipelin` is not one of {NAMES}",
         "`pipeline`"),
        (["memory", "--rnk", "7", "x"], "no such option: `--rnk`", "`--rank`"),
        (["whatif", "--op", "1", "--worker", "2", "x"], "no such option: `--worker`", "`--workers`"),
    ],
)  # fmt: skip
def test_a_typo_is_answered_with_near_names(call, words, message, near):
    lines = failed(call(*words), 2).splitlines()
    assert lines[0] == f"error: {message}"
    assert lines[1].startswith("hint: did you mean ")
    assert near in lines[1]


def test_what_is_near_nothing_is_answered_with_the_help_and_the_version_is_told(call):
    assert failed(call("xyzzy"), 2).splitlines()[1] == "hint: see `pipeprof --help`"
    status, out, _ = call("--version")
    assert (status, out.split()[0]) == (0, "pipeprof,")


NO_COMMAND = "command not found: `no-such-command-at-all`"


@pytest.mark.parametrize(("words", "found", "code"), [
    (["report", "/no/such/run"], "no such run: `/no/such/run`", 3), (["ops", "/no/such/run"], "no such run", 3),
    (["compare", "/no/such/run", "/nor/this"], "no such run, baseline or file: `/no/such/run`, `/nor/this`", 3),
    (["sql", "/no/such/run", "SELECT 1"], "no such run", 3), (["report", "FOLDER"], "is not a pipeprof run", 3),
    (["ops", "FOLDER"], "is not a pipeprof run", 3), (["collect"], "no command to run", 2),
    (["collect", "--", "no-such-command-at-all"], NO_COMMAND, 2),
    (["headspace", "--op", "x", "--", "no-such-command-at-all"], NO_COMMAND, 2),
    (["headspace", "--", "no-such-command-at-all"], NO_COMMAND, 2),
    (["collect", "--schedule", "active=x", "--", "true"], "cannot read `active=x` in the schedule", 2),
    (["collect", "--reps", "0", "--", "true"], "--reps", 2),
    (["collect", "--redact", "one\ntwo", "--", "true"], "`one\\ntwo` has several lines", 2),
    (["collect", "--redact", "x*", "--", "true"], "matches the empty text", 2),
    (["collect", "--redact", "", "--", "true"], "matches the empty text", 2),
    (["collect", "--redact", "[", "--", "true"], "is not a regular expression", 2),
    (["collect", "--redact", "a{9999999999}", "--", "true"], "is not a regular expression", 2),
    (["nonsense"], "nonsense", 2), (["report"], "RUN", 2), (["report", "--format", "pdf", "x"], "pdf", 2),
    (["report", "x", "--nonsense"], "nonsense", 2), (["completion", "tcsh"], "tcsh", 2),
])  # fmt: skip
def test_an_error_is_one_line_without_a_full_stop_and_a_hint(call, tmp_path, monkeypatch, words, found, code):
    monkeypatch.chdir(tmp_path)
    said = failed(call(*(tmp_path if word == "FOLDER" else word for word in words)), code)
    assert list(tmp_path.iterdir()) == []
    assert found in said
    assert words[0] != "report" or not said.splitlines()[0].endswith(".")


def test_headspace_of_a_run_says_how_to_name_it(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tt").mkdir()
    (tmp_path / "tt" / "run.json").write_text("{}")
    said = failed(call("headspace", "tt", "--op", "Dataset"), 2)
    assert "`tt` is a recorded run, not a command" in said
    assert "--run tt" in said


@pytest.mark.parametrize("words", [["collect", "-o", "OUT", "--", "true"], ["tune", "--", "true"]])
def test_a_working_directory_that_is_gone_is_an_error_in_words(call, tmp_path, monkeypatch, words):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    said = failed(call(*[tmp_path / "run" if word == "OUT" else word for word in words]), 2)
    assert "the working directory is gone" in said


def test_what_cannot_be_looked_at_or_is_damaged_is_an_error_in_words(call, run, monkeypatch):
    def refuse(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    path = run.files("step")[0]
    path.write_bytes(path.read_bytes()[:-20])
    assert str(path) in failed(call("report", run.path), 3)
    monkeypatch.setattr(Path, "exists", refuse)
    assert "no permission for `/root/theirs`" in failed(call("report", "/root/theirs"), 2)


def test_collecting_into_a_folder_that_exists_is_an_error(call, run):
    assert "exists" in failed(call("collect", "-o", run.path, "--", "true"), 2)


@pytest.mark.parametrize("form", ["terminal", "markdown", "json"])
def test_a_report_is_printed_in_each_format_and_in_a_file_is_what_would_have_been_printed(call, run, tmp_path, form):
    full = ["--full"] if form == "terminal" else []  # a file holds everything
    status, printed, err = call("report", run.path, "--format", form, *full)
    assert (status, err) == (0, "")
    assert run.path.name in printed
    assert run.path.name in call("report", run.path, "--format", form)[1]
    assert call("report", run.path, "--format", form, "-o", tmp_path / "report")[:2] == (0, "")
    assert tmp_path.joinpath("report").read_text(encoding="utf-8") == printed


@pytest.mark.parametrize(("words", "said"), [
    (["report", "--full", "--section", "run"], "--full shows every section, --section only those that it names"),
    (["report", "-o", "/no/such/folder/report"], "cannot write"), (["report", "-o", "BELOW"], "Not a directory"),
    (["ops", "--format", "parquet", "-o", "BELOW"], "Not a directory"),
])  # fmt: skip
def test_a_report_that_cannot_be_made_or_written_is_an_error(call, run, words, said):
    words = [run.path / "run.json" / "report.txt" if word == "BELOW" else word for word in words]
    assert said in failed(call(*words, run.path), 2)


def as_json(call, *words):
    return json.loads(call(*words, "--format", "json")[1])


def test_operators_as_json_have_totals_over_all_and_rows_for_the_top(call, run):
    document = as_json(call, "ops", run.path, "--top", "1")
    assert next(iter(document)) == "schema_version"
    assert document["total"] == {"count": 4, "self_ns": 40, "total_ns": 40}
    assert [row["count"] for row in document["rows"]] == [2]
    rows = as_json(call, "ops", run.path, "--top", "0", "--group-by", "name")["rows"]
    assert sorted(row["name"] for row in rows) == ["Default/Add-op0", "Default/Mul-op0"]
    assert "1 more: --top 0 shows all" in call("ops", run.path, "--top", "1")[1]
    out = call("ops", run.path, "--dump-only-opr")[1]  # with the number that is known
    assert out.splitlines() == ["Default/Add-op0 Add 0", "Default/Mul-op0 Mul 1"]
    assert call("ops", run.path, "--dump-only-opr", "--print-only", "host") == (0, "", "")


def test_operators_as_csv_have_one_line_each(call, run):
    lines = list(csv.DictReader(io.StringIO(call("ops", run.path, "--format", "csv")[1])))
    assert {line["type"]: line["count"] for line in lines} == {"Add": "2", "Mul": "2"}


def test_a_run_without_operators_says_why(call, make_run):
    made = make_run({}, state="complete", not_measured=[NotMeasured(what="op", why="switched off with --ops off")])
    status, out, _ = call("ops", made.path)
    assert (status, out) == (0, "no operators: switched off with --ops off\n")


def test_sql_answers_as_a_table_csv_and_json(call, run):
    query = "SELECT step, kind, NULL AS nothing FROM step WHERE step < 2 ORDER BY step"
    assert "\n2 rows\n" in call("sql", run.path, query)[1]
    assert call("sql", run.path, query, "--format", "csv")[1] == "step,kind,nothing\n0,train,\n1,train,\n"
    assert as_json(call, "sql", run.path, query)[1] == {"step": 1, "kind": "train", "nothing": None}
    numbers = "SELECT 1e0/0 AS a, 'nan'::DOUBLE AS b"  # which json does not have
    assert as_json(call, "sql", run.path, numbers) == [{"a": None, "b": None}]
    twice = "SELECT 1 AS a, 2 AS a"  # of which json would keep one
    assert "two columns are called `a`" in failed(call("sql", run.path, twice, "--format", "json"), 2)
    assert call("sql", run.path, twice, "--format", "csv")[1] == "a,a\n1,2\n"
    assert call("sql", run.path, "-", "--format", "csv", stdin="SELECT count(*) AS n FROM step")[1] == "n\n4\n"
    assert "[bold]x[/bold]" in call("sql", run.path, "SELECT '[bold]x[/bold]' AS a")[1]  # a name is no markup
    assert all(name in call("sql", run.path)[1] for name in ("step_phase", "queue", "op_info"))


@pytest.mark.parametrize(("stdin", "why"), [
    (None, "it is closed"), (io.TextIOWrapper(io.BytesIO(b"SELECT \xff"), encoding="utf-8"), "it is no UTF-8"),
], ids=["closed", "bytes"])  # fmt: skip
def test_a_stdin_without_text_is_an_error_in_words(run, stdin, why, monkeypatch):
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(UsageError, match=f"cannot read stdin: {why}"):
        cli.main(["sql", str(run.path), "-"], standalone_mode=False)


@pytest.mark.parametrize(("query", "said"), [
    *((query, "") for query in (
        "DELETE FROM step", "CREATE TABLE x AS SELECT 1", "COPY step TO '/tmp/x'", "SELECT 1; SELECT 2",
        "SET threads = 1", "ATTACH '/tmp/x.db'", "INSERT INTO step SELECT * FROM step", ";",
        "SELECT * FROM read_csv('/etc/passwd')",
    )), ("SELECT * FROM stepp", "stepp"),
])  # fmt: skip
def test_sql_that_does_more_than_read_or_is_wrong_is_refused(call, run, query, said):
    before = files_of(run.path)
    assert said in failed(call("sql", run.path, query), 2)
    assert files_of(run.path) == before


@pytest.mark.parametrize(("typed", "expected"), [
    ("pipeprof r", ["plain,report", "plain,runs"]),
    ("pipeprof runs --format ", ["plain,terminal", "plain,html", "plain,markdown", "plain,json", "plain,csv"]),
    ("pipeprof timeline ru", ["plain,run0"]), ("pipeprof sql ru", ["plain,run0"]),
    ("pipeprof memory nosuch", ["file,nosuch"]), ("pipeprof memory --sv", ["plain,--svg"]),
    ("pipeprof whatif --op 3 -- python tr", ["file,tr"]),
])  # fmt: skip
def test_the_shell_completes_verbs_options_and_runs(call, run, monkeypatch, typed, expected):
    for shell in ("bash", "zsh", "fish"):
        status, out, _ = call("completion", shell)
        assert (status, "_PIPEPROF_COMPLETE" in out) == (0, True)
    monkeypatch.chdir(run.path.parent)
    monkeypatch.setenv("_PIPEPROF_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split(" ")) - 1))
    _, out, err = call()
    assert (out.split(), err) == (expected, "")


def test_sections_are_shown_alone_and_one_without_content_is_said_to_have_none(call, run, tmp_path):
    path = run.path.rename(tmp_path / "my run")
    out = call("report", path, "--section", "operators")[1]
    assert f"2 of 2 types; all of them: pipeprof ops '{path}' --top 0" in " ".join(out.split())
    said = "note: this run has nothing to show in the section `causes`\n"
    assert call("report", path, "--section", "causes", "--section", "causes") == (0, "", said)
    assert call("report", path, "--section", "steps")[2] == ""


def test_no_color_holds_for_what_is_printed_and_no_command_inherits_it(call, run, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    call("--no-color", "report", run.path)
    assert not has_colours()
    assert "NO_COLOR" not in program.os.environ
    call("report", run.path)
    assert has_colours()


@pytest.mark.parametrize("words", [["--format", "json"], ["-o", "now.txt"]])
def test_an_interruption_ends_the_view_and_is_no_failure(call, run, tmp_path, monkeypatch, words):
    def looks(_self):
        raise KeyboardInterrupt
        yield

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pipeprof.report.top.Watch.looks", looks)
    assert call("top", run.path, *words) == (0, "", "")


@pytest.mark.parametrize(("reps", "counts"), [("1", False), ("2", True)])
def test_repetitions_are_made_to_be_compared_and_count_instructions(call, tmp_path, monkeypatch, reps, counts):
    asked = []

    def record(_run, _command, probe, **_options):
        asked.append(probe.instructions)
        raise UsageError("enough")

    monkeypatch.setattr("pipeprof.collect.session.record", record)
    call("collect", "-o", str(tmp_path / "run"), "--reps", reps, "--", "true")
    assert asked == [counts]
