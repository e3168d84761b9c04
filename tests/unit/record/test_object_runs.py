"""Many runs below a prefix of a real local S3 server: the verbs answer as for a folder, with few requests."""

import contextlib
import json
import shutil
import urllib.request
from urllib.parse import quote

import pyarrow.compute as pc
import pytest
from click.testing import CliRunner
from fleet_cost import forget_rollup
from fleet_runs import make_fleet
from in_process import refused, said
from object_server import SECRET, system_of

from pipeprof.cli import cli
from pipeprof.errors import RunError, UsageError
from pipeprof.record import object_runs
from pipeprof.record.object_runs import HALF, runs_below
from pipeprof.record.run import MANIFEST, load
from pipeprof.record.run_objects import push
from pipeprof.report import kept
from pipeprof.report.fleet import gather as gathering
from pipeprof.report.fleet.gather import gather, once_each

pytestmark = pytest.mark.slow  # starts servers of object storage

RUNS = 12


@pytest.fixture(autouse=True)
def settled(storage_account, monkeypatch):
    monkeypatch.setattr(object_runs, "_SETTLED_S", -60)  # what this test wrote is not changed within its second
    monkeypatch.setattr(object_runs, "_PAUSE_S", 0.0)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder of complete runs."""
    folder = tmp_path_factory.mktemp("runs")
    make_fleet(folder, RUNS, 3)
    return folder


def paths(runs):
    return sorted(found.parent for found in runs.rglob(MANIFEST))


@pytest.fixture(scope="module")
def bucket(server, runs):
    """A bucket with these runs below `runs`: half of them pushed, half of them copied by another program."""
    system_of(server).create_dir("many")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "key")
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        for number, path in enumerate(paths(runs)):
            name = path.relative_to(runs).as_posix()
            if number % 2:
                push(load(path), url_of(server, f"runs/{name}"))
            else:
                copy(server, runs, number, f"runs/{name}")
    return "many"


@contextlib.contextmanager
def requests_to(server):
    """A list, which has the requests of the block at its end."""
    before, seen = len(server.requests()), []
    yield seen
    seen += server.requests()[before:]


def url_of(server, path, bucket="many"):
    address = getattr(server, "address", None) or f"127.0.0.1:{server.server_port}"
    return f"s3://{bucket}/{path}?endpoint_override=http://{address}&region=us-east-1"


def put(server, key, data, bucket="many"):
    address, kind = f"http://{server.address}/{bucket}/{quote(key)}", {"Content-Type": "application/octet-stream"}
    urllib.request.urlopen(urllib.request.Request(address, data, kind, method="PUT")).close()


def cut_steps(server, prefix):
    """Cut a table of the first run below a prefix: the server takes that from its owner alone."""
    sizes = runs_below(url_of(server, prefix))[0].sizes
    name = next(name for name in sizes if name.startswith("step/rep=0/rank=0/"))
    with system_of(server).open_output_stream(f"many/{prefix}/a/{name}") as stream:
        stream.write(b"cut")


def copy(server, runs, number, key):
    """Write a run below another key, as another program does."""
    path = paths(runs)[number]
    for file in path.rglob("*"):
        if file.is_file():
            put(server, f"{key}/{file.relative_to(path).as_posix()}", file.read_bytes())


@pytest.fixture
def url(server, bucket):
    return url_of(server, "runs")


def answered(rows):
    """Rows without the names of runs, which differ, by the ids of runs."""
    return rows.drop_columns(["run"]).sort_by([("run_id", "ascending"), ("rep", "ascending"), ("rank", "ascending")])


def as_json(*words):
    return json.loads(said(*words, "--format", "json"))


def test_a_bucket_and_a_folder_give_the_same_rows(url, runs):
    below = gather([url])
    assert answered(below).equals(answered(gather([runs])))
    assert set(below.column("run").to_pylist()) == {
        f"s3://many/runs/{path.parent.relative_to(runs).as_posix()}" for path in runs.rglob(MANIFEST)
    }


def test_a_question_lists_once_and_reads_two_objects_of_each_new_run(url, server):
    with requests_to(server) as asked:
        gather([url])
    assert [method for method, path in asked if "list-type" in path] == ["GET"]
    assert len(asked) == 1 + 4 * RUNS
    with requests_to(server) as asked:
        gather([url])
    assert [path.partition("?")[0] for _, path in asked] == ["/many"]


def test_a_run_that_was_changed_is_seen_and_of_two_places_the_one_that_is_whole_counts(server, bucket, runs):
    url = url_of(server, "changes")
    copy(server, runs, 0, "changes/a")
    copy(server, runs, 1, "changes/b")
    assert gather([url]).column("state").unique().to_pylist() == ["complete"]
    cut_steps(server, "changes")
    rows = gather([url]).to_pylist()
    assert {row["run"]: row["state"] for row in rows} == {
        "s3://many/changes/a": "damaged", "s3://many/changes/b": "complete",
    }  # fmt: skip
    assert rows[-1]["problem"] is None or "s3://many/changes/a/step" in rows[-1]["problem"]
    copy(server, runs, 0, "changes/c")
    rows, twice = once_each(gather([url]))
    assert (set(rows.column("run").to_pylist()), twice) == ({"s3://many/changes/b", "s3://many/changes/c"}, 1)


def test_a_half_uploaded_run_is_said_and_left_out(server, bucket, runs):
    copy(server, runs, 0, "halves/whole")
    file = next(paths(runs)[1].rglob("*.parquet"))
    put(server, f"halves/half/{file.relative_to(paths(runs)[1]).as_posix()}", file.read_bytes())
    put(server, "halves/pushed/step/rows-0123456789abcdef.parquet", b"x")
    url = url_of(server, "halves")
    states = {row["run"]: (row["state"], row["problem"]) for row in gather([url]).to_pylist()}
    assert states == {
        "s3://many/halves/whole": ("complete", None), "s3://many/halves/half": ("partial", HALF),
        "s3://many/halves/pushed": ("partial", HALF),
    }  # fmt: skip
    listed = said("runs", url)
    for name in ("half", "pushed"):
        assert f"s3://many/halves/{name}: {HALF}" in listed
    assert listed.startswith("3 runs in `s3://many/halves`\n")  # without the options of the URL, or a password
    assert "whole" in listed


def test_what_is_no_run_is_passed_over(server, bucket, runs):
    for number in range(1200):
        put(server, f"beside/models/{number:04}/weights.ckpt", b"x")
    put(server, "beside/folder/", b"")
    put(server, "beside/.trash/run.json", b"{}")
    copy(server, runs, 0, "beside/one")
    with requests_to(server) as asked:
        found = runs_below(url_of(server, "beside"))
    assert [one.name for one in found] == ["one"]
    assert len(asked) == 2  # a listing for each 1,000 keys


@pytest.mark.parametrize("name", ["a b", "é", "50%", "a+b", "q?x=1", "h#1", "[1]", "x=1&y=2", "%41", '"', "<b>", "{k}"])
def test_a_run_with_an_odd_name_is_found_and_its_url_opens_it(server, bucket, runs, name):
    copy(server, runs, 0, f"odd-names/{name}/deep")
    url = url_of(server, "odd-names")
    (found,) = [one for one in runs_below(url) if one.name == f"{name}/deep"]
    rows = gather([url])
    shown = found.url.partition("?")[0]
    assert shown in rows.column("run").to_pylist()
    assert rows.column("problem").to_pylist() == [None] * rows.num_rows
    assert [(row["path"], row["state"]) for row in as_json("runs", found.url)["runs"]] == [(shown, "complete")]


@pytest.mark.parametrize("key", ["keys//a", "keys/./b", "keys/x/../c"])
def test_a_key_that_cannot_be_opened_is_said(server, bucket, runs, key):
    put(server, f"{key}/run.json", b"{}")
    rows = gather([url_of(server, "keys")])
    assert set(rows.column("state").to_pylist()) == {"damaged"}
    assert all("other programs take" in problem for problem in rows.column("problem").to_pylist())


def test_the_same_run_here_and_there_counts_once(url, runs):
    rows, twice = once_each(gather([runs, url]))
    assert twice == RUNS
    assert answered(rows).equals(answered(gather([runs])))
    content = as_json("fleet", runs, url)
    assert (content["runs"], content["twice"]) == (RUNS, RUNS)
    assert "12 runs are there twice and counted once" in " ".join(said("fleet", runs, url).split())


def test_a_run_without_its_rollup_is_summed_up_from_a_copy(server, bucket, runs, tmp_path, monkeypatch):
    copy(server, runs, 0, "older/a")
    monkeypatch.setattr(kept, "VERSION", kept.VERSION + 1)  # what is stored there is another one's
    expected = answered(gather([paths(runs)[0]]))
    with requests_to(server) as asked:
        assert answered(gather([url_of(server, "older")])).equals(expected)
    assert len(asked) > 5
    assert not (tmp_path / "cache" / "pipeprof" / "runs").exists()  # the copy is gone


def test_push_adds_the_rollup_that_an_older_run_has_not(server, bucket, runs, tmp_path):
    expected = answered(gather([paths(runs)[0]]))
    older = shutil.copytree(paths(runs)[0], tmp_path / "older")
    forget_rollup(older)
    shutil.rmtree(older / "rollup")
    said("push", older, url_of(server, "renewed/a"))
    with requests_to(server) as asked:
        rows = answered(gather([url_of(server, "renewed")]))
    assert len(asked) == 1 + 4
    assert rows.select(["run_id", "median_ns", "steps"]).equals(expected.select(["run_id", "median_ns", "steps"]))


def test_runs_lists_what_a_folder_lists(server, bucket, runs):
    for number in range(3):
        copy(server, runs, number, f"list/run-{number}")
    url = url_of(server, "list")
    listed = as_json("runs", url)["runs"]
    assert [row["path"] for row in listed] == [f"s3://many/list/run-{number}" for number in (2, 1, 0)]
    alone = [as_json("runs", path)["runs"][0] for path in reversed(paths(runs)[:3])]
    assert [row | {"path": ""} for row in listed] == [row | {"path": ""} for row in alone]
    with requests_to(server) as asked:
        assert as_json("runs", url)["runs"] == listed
    assert len(asked) == 1


def test_history_of_a_bucket_is_that_of_a_folder(server, bucket, runs, tmp_path):
    place = tmp_path / "nightly"
    place.mkdir()
    for number, path in enumerate(paths(runs)[:4]):
        place.joinpath(f"run-{number}").symlink_to(path)
        copy(server, runs, number, f"nightly/run-{number}")
    copy(server, runs, 0, "nightly/twice")
    url = url_of(server, "nightly")
    below, here = as_json("history", url), as_json("history", place)
    assert below["measurements"] == here["measurements"] == 4
    assert [one["path"] for one in below["left_out"]] == ["s3://many/nightly/twice"]
    for point in [point for one in (below, here) for series in one["series"] for point in series["points"]]:
        del point["label"]
    assert below["series"] == here["series"]
    with requests_to(server) as asked:
        said("history", url)
    assert len(asked) == 1


@pytest.mark.parametrize("of", ["list-type", "run.json", ".parquet"])
@pytest.mark.parametrize("fault", ["500", "cut"])
def test_a_storage_that_fails_now_and_then_changes_no_answer(url, server, faulty, fault, of):
    expected = gather([url])
    faulty.of, faulty.faults = of, [fault, fault]
    through = url_of(faulty, "runs")
    try:
        rows = gather([through], fresh=True)
    except RunError:  # where the client did not ask again by itself: the same command goes on
        rows = gather([through])
    assert faulty.seen.count(fault) == 2
    assert rows.equals(expected)


def test_a_slow_storage_is_asked_for_some_runs_at_once_and_not_for_all(url, faulty, monkeypatch):
    faulty.slow_s = 0.05
    monkeypatch.setattr(gathering, "READERS", 3)
    assert gather([url_of(faulty, "runs")]).equals(gather([url]))
    assert 2 <= faulty.most <= 2 * 3  # each may ask again before the server has seen it off


def test_a_failing_storage_says_nothing_about_runs_and_what_was_read_is_kept(url, faulty, monkeypatch):
    through = url_of(faulty, "runs")
    faulty.of, faulty.faults = "/000011/", ["500"] * 200
    monkeypatch.setattr(object_runs, "_TRIES", 1)
    with pytest.raises(RunError, match="cannot read"):
        gather([through])
    faulty.faults = []
    assert gather([through]).equals(gather([url]))


def test_a_forbidden_run_is_named_and_the_others_count(url, faulty):
    faulty.of, faulty.faults = "/000011/run.json", ["403"] * 20
    rows = gather([url_of(faulty, "runs")])
    bad = rows.filter(pc.equal(rows.column("state"), "damaged")).to_pylist()
    assert [row["run"].rpartition("/")[2] for row in bad] == ["000011"]
    assert "it is forbidden" in bad[0]["problem"]
    faulty.faults = []
    assert gather([url_of(faulty, "runs")]).equals(gather([url]))


@pytest.mark.parametrize("verb", ["fleet", "runs", "history"])
def test_what_is_wrong_with_a_url_is_one_clear_error(server, bucket, faulty, verb):
    for place, message, hint in (
        (url_of(server, "runs", "nosuchbucket"), "there is no such bucket", "name of the bucket"),
        (url_of(faulty, "runs"), "it is forbidden", "credentials in the environment"),
    ):
        faulty.of, faulty.faults = "list-type", ["403"] * 20
        error = refused(verb, place)
        assert isinstance(error, RunError)
        assert (error.exit_code, message in error.message, hint in error.hint) == (3, True, True)
        assert SECRET not in error.message
    named = url_of(server, "runs").replace("s3://", f"s3://key:{SECRET}@")
    done = CliRunner().invoke(cli, [verb, named])
    assert isinstance(done.exception, (UsageError, RunError))
    assert SECRET not in done.exception.message + done.exception.hint + done.output


def test_an_empty_prefix_is_said(server, bucket):
    for verb in ("fleet", "runs"):
        error = refused(verb, url_of(server, "nothing"))
        assert isinstance(error, RunError)
        assert error.message == "nothing is at `s3://many/nothing`"
