"""Options and arguments that name a path on this machine: a URL is refused before anything runs."""

import pytest
from click.testing import CliRunner

from pipeprof.cli import cli
from pipeprof.errors import PipeprofError, UsageError
from pipeprof.record import checksums


@pytest.mark.parametrize("words", [
    ("serve", "URL"), ("timeline", "RUN", "-o", "URL"), ("report", "RUN", "-o", "URL"), ("import", "URL"),
])  # fmt: skip
def test_a_url_is_no_path_on_this_machine(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = "s3://key:word@bucket/runs"
    done = CliRunner().invoke(cli, [url if word == "URL" else word for word in words])
    assert isinstance(done.exception, UsageError)
    assert "`s3://bucket/runs` is a URL: expected a path on this machine" in done.exception.message
    assert "pipeprof push RUN URL" in done.exception.hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [
    ("report", ""), ("sql", ""), ("sql", "", "FROM step"), ("runs", ""), ("fleet", ""), ("ops", ""), ("serve", ""),
    ("push", "", "file:///tmp/x"), ("report", "RUN", "-o", ""), ("history", ""), ("compare", "", "RUN"),
    ("baseline", "write", "", "--workload", "x"),
])  # fmt: skip
def test_an_empty_path_is_not_the_current_folder(words, make_run, monkeypatch):
    """As of a variable of the shell that is not set: `pipeprof report "$RUN"`."""
    run = make_run({"step": []}, state="complete")
    monkeypatch.chdir(run.path)
    before = sorted(run.path.iterdir())
    done = CliRunner().invoke(cli, [str(run.path) if word == "RUN" else word for word in words])
    assert isinstance(done.exception, PipeprofError)
    assert done.exception.message in ("a path is empty", "no such run, baseline or file: ``")
    assert sorted(run.path.iterdir()) == before


@pytest.mark.parametrize("words", [
    ("report", "URL"), ("fleet", "URL"), ("runs", "URL"), ("history", "URL"), ("push", "RUN", "URL"), ("serve", "URL"),
    ("compare", "RUN", "URL"), ("baseline", "list", "--root", "URL"), ("collect", "-o", "URL", "--", "true"),
])  # fmt: skip
@pytest.mark.parametrize(("url", "said"), [
    ("s3://user:SECRET@[bucket/run?region=x", "`[bucket/run` is no URL"), ("s3://[bucket/run", "`s3://[bucket/run` is no URL"),
    ("s3://user:SECRET@\u2105/run", "`\u2105/run` is no URL"),
])  # fmt: skip
def test_what_looks_like_a_url_and_is_none_is_one_clear_error(words, url, said, make_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = make_run({"step": []})
    done = CliRunner().invoke(cli, [{"URL": url, "RUN": str(run.path)}.get(word, word) for word in words])
    assert isinstance(done.exception, UsageError)
    assert done.exception.message == said
    assert "SECRET" not in done.exception.message + done.exception.hint


@pytest.mark.parametrize(("sign", "code"), [("#", "%23"), ("?", "%3F")])
@pytest.mark.parametrize("verb", [("report", "URL"), ("fleet", "URL"), ("baseline", "list", "--root", "URL")])
def test_no_part_of_a_name_is_left_out_because_of_a_sign_in_it(verb, sign, code, make_run):
    run = make_run({"step": []})
    url = f"file://{run.path}{sign}1"
    done = CliRunner().invoke(cli, [url if word == "URL" else word for word in verb])
    assert isinstance(done.exception, UsageError)
    assert f"its URL has a `{sign}`" in done.exception.message
    assert code in done.exception.hint


def test_a_url_that_cannot_be_opened_leaves_the_run_as_it_is(make_run):
    run = make_run({"step": [{"step": 0, "kind": "train", "start_ns": 0, "end_ns": 1}]}, state="complete")
    checksums.seal(run)
    run.save()
    before = sorted(run.path.rglob("*"))
    assert "is no URL" in CliRunner().invoke(cli, ["push", str(run.path), "bucket/run"]).exception.message
    assert sorted(run.path.rglob("*")) == before
