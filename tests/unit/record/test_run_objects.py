"""Runs in object storage: pushed to a real local S3 server, read back as verified copies, and what can go wrong."""

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from copies import files_of, flip, flipped
from fuzz_cases import leaves
from in_process import ended, refused, said
from kineto_files import op as trace_op
from kineto_files import write_trace
from object_server import SECRET
from pyarrow import fs

import pipeprof
from pipeprof.errors import PipeprofError, RunError, UsageError
from pipeprof.query.side import open_measures
from pipeprof.record import checksums, objects, run_objects
from pipeprof.record.object_runs import HALF, runs_below
from pipeprof.record.run import MANIFEST, load
from pipeprof.record.run_objects import fetch, push
from pipeprof.record.schema import TABLES

TABLES_KEPT = ("step/", "fetch/", "pipeline/", "op_info/")
MOST_REQUESTS = 100  # for a report, of a run of any number of ranks
pytestmark = [pytest.mark.usefixtures("storage_account"), pytest.mark.slow]


@pytest.fixture(scope="module")
def small(recorded, tmp_path_factory):
    """The same with few of its tables: each file is several requests."""
    folder = tmp_path_factory.mktemp("small") / "RUN"
    shutil.copytree(recorded, folder)
    run = load(folder)
    for name in [name for name in run.manifest.parts if not name.startswith(TABLES_KEPT)]:
        folder.joinpath(name).unlink()
        del run.manifest.parts[name]
        del run.manifest.tables[name.partition("/")[0]]
    run.save()
    return folder


@pytest.fixture
def folder(small, tmp_path):
    return shutil.copytree(small, tmp_path / "RUN")


@pytest.fixture
def whole(recorded, tmp_path):
    return shutil.copytree(recorded, tmp_path / "RUN")


@pytest.fixture
def bucket(system, tmp_path):
    name = f"b{abs(hash(tmp_path)) % 10**9}"
    system.create_dir(name)
    return name


@pytest.fixture
def url(server, bucket):
    return f"s3://{bucket}/runs/RUN?endpoint_override=http://{server.address}&region=us-east-1"


def stored(system, bucket):
    """What is in the bucket, by its name below the run."""
    found = system.get_file_info(fs.FileSelector(f"{bucket}/runs/RUN", recursive=True, allow_not_found=True))
    return {info.path.removeprefix(f"{bucket}/runs/RUN/"): info for info in found if info.type == fs.FileType.File}


def copies(tmp_path):
    return list((tmp_path / "cache" / "pipeprof" / "runs").iterdir())


@contextlib.contextmanager
def network_gone(method, is_gone):
    """Within the block the storage takes nothing of which `is_gone(path)` says so."""
    real = getattr(objects.Objects, method)

    def failing(self, path, data):
        if is_gone(path):
            raise RunError("the network is gone")
        real(self, path, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(objects.Objects, method, failing)
        with pytest.raises(RunError, match="network is gone"):
            yield


def another(folder):
    """The run of the folder becomes one of another job."""
    run = load(folder)
    run.manifest.job = "another"
    run.save()
    return run


def steps_of(system, bucket):
    """The object that holds the steps, and what is in it."""
    (name,) = [name for name in stored(system, bucket) if name.startswith("step/")]
    path = f"{bucket}/runs/RUN/{name}"
    with system.open_input_stream(path) as stream:
        return path, stream.read()


def write(system, path, data):
    with system.open_output_stream(path) as stream:
        stream.write(data)


@pytest.mark.parametrize("local", [False, True])
def test_a_run_comes_back_byte_for_byte(folder, url, local, tmp_path):
    url = f"file://{tmp_path}/store/RUN" if local else url
    pushed = push(load(folder), url)
    assert (pushed.written, pushed.there) == (len(load(folder).manifest.parts), 0)
    copy = fetch(url)
    assert files_of(copy) == files_of(folder)
    assert list(checksums.changes(load(copy))) == []
    assert copy.name == "RUN"
    assert not list(tmp_path.rglob("*.tmp"))
    assert files_of(fetch(f"file://{folder}")) == files_of(folder)


def test_the_manifest_is_written_last(folder, url, server):
    before = len(server.requests())
    push(load(folder), url)
    written = [path for method, path in server.requests()[before:] if method in ("PUT", "POST") and path[-1] != "/"]
    assert len(written) > len(load(folder).manifest.parts)
    assert f"/{MANIFEST}" in written[-1]
    first = next(at for at, path in enumerate(written) if MANIFEST in path)
    assert all(MANIFEST in path for path in written[first:])


def test_a_report_needs_few_requests_and_names_the_url(whole, url, server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    push(load(whole), url)
    counts = []
    for _ in range(2):
        before = len(server.requests())
        text = said("report", url, "--full")
        counts.append(len(server.requests()) - before)
    assert counts == [2 + 2 * len(load(whole).manifest.parts), 2]
    assert 2 + 2 * len(TABLES) <= MOST_REQUESTS  # a compact run has one file for each table
    assert url in "".join(text.split())
    assert "-o RUN-changed" in " ".join(text.replace("\\", "").split())
    assert str(tmp_path / "cache") not in text.replace("\n", "")


@pytest.mark.parametrize("verb", ["report", "ops", "memory", "verify"])
def test_a_verb_says_the_same_of_the_url(whole, url, verb):
    push(load(whole), url)
    here, there = (said(verb, place, "--format", "json") for place in (whole, url))
    assert str(fetch(url)) not in there
    wanted = list(leaves(json.loads(here)))
    found = list(leaves(json.loads(there.replace(url, str(whole)).replace("RUN-changed", f"{whole}-changed"))))
    assert [place for place, _ in found] == [place for place, _ in wanted]
    for (place, new), (_, old) in zip(found, wanted, strict=True):
        # sums of fractions in another order differ in the last digit
        assert new == (pytest.approx(old, rel=1e-9) if isinstance(old, float) else old), place


def test_tables_at_the_url_are_asked_and_measured_as_those_of_the_folder(folder, url):
    push(load(folder), url)
    words = ["SELECT * FROM step ORDER BY ALL", "--format", "csv"]
    here, there = (said("sql", place, *words) for place in (folder, url))
    assert there == here
    assert here.count("\n") > 10
    with pipeprof.open(url) as found, pipeprof.open(folder) as wanted:
        assert found.step.equals(wanted.step)
        assert len(found.step) > 0
    here, there = open_measures(folder), open_measures(url)
    assert (here.label, there.label) == (str(folder), url)
    there.label = here.label
    assert there == here
    assert refused("compare", url, url).message.count(url) == 2  # both sides hold the run ...
    nothing = url.replace("/RUN?", "/NONE?")
    for base, new in ((nothing, url), (url, nothing)):
        with pytest.raises(RunError, match=r"/NONE"):
            pipeprof.compare(base, new)


def test_another_run_is_replaced_with_force_and_its_rest_goes_a_day_later(folder, url, system, bucket, monkeypatch):
    push(load(folder), url)
    other = another(folder)
    with pytest.raises(UsageError, match="another run is at `s3://") as caught:
        push(other, url)
    assert "--force" in caught.value.hint
    assert load(fetch(url)).manifest.job is None
    assert push(other, url, force=True).written == 0  # the same tables
    assert load(fetch(url)).manifest.job == "another"
    assert len(stored(system, bucket)) == 1 + len(other.manifest.parts)
    older = f"step/rows-{'0' * 16}.parquet"
    write(system, f"{bucket}/runs/RUN/{older}", b"of an older run")
    for job in ("second", "third"):
        other.manifest.job = job
        other.save()
        push(other, url, force=True)
        assert (older in stored(system, bucket)) is (job == "second")
        monkeypatch.setattr(objects, "KEPT", -objects.KEPT)
    assert load(fetch(url)).manifest.job == "third"


@pytest.mark.parametrize("how", ["changed", "cut"])
def test_force_replaces_what_is_damaged_though_it_has_its_size(folder, url, system, bucket, how):
    """As the hint of `report` says."""
    push(load(folder), url)
    path, data = steps_of(system, bucket)
    changed = flipped(data, len(data) // 4)
    write(system, path, changed if how == "changed" else data[:-9])
    with pytest.raises(RunError, match="damaged file") as caught:
        fetch(url)
    assert "--force" in caught.value.hint
    pushed = push(load(folder), url, force=True)
    assert (pushed.written, pushed.there) == (1, len(load(folder).manifest.parts) - 1)
    assert files_of(fetch(url)) == files_of(folder)


def test_of_two_runs_that_are_pushed_at_once_one_wins_and_the_other_is_refused(folder, url, tmp_path, system, bucket):
    folders = [shutil.copytree(folder, tmp_path / name / "RUN") for name in ("one", "other")]
    another(folders[1])
    command = [sys.executable, "-m", "pipeprof", "push"]
    for _ in range(3):
        started = [subprocess.Popen([*command, str(path), url], stderr=subprocess.PIPE, text=True) for path in folders]
        texts = [process.communicate()[1] for process in started]
        codes = [process.returncode for process in started]
        assert sorted(codes) == [0, 2], texts
        assert "another run is at" in texts[codes.index(2)]
        assert files_of(fetch(url)) == files_of(folders[codes.index(0)])
        assert not [name for name in stored(system, bucket) if "claim" in name]
        system.delete_dir(f"{bucket}/runs/RUN")


def test_an_upload_that_was_cut_off_is_no_run_and_goes_on(folder, url):
    run, asked = load(folder), []
    with network_gone("put_pieces", lambda path: asked.append(path) or len(asked) > 3):
        push(run, url)
    with pytest.raises(RunError, match=r"no whole run at `s3://.*`run.json`, which is uploaded last") as caught:
        fetch(url)
    assert "again" in caught.value.hint
    assert (push(run, url).there, push(run, url).written) == (3, 0)
    assert files_of(fetch(url)) == files_of(folder)


def test_a_replacement_that_was_cut_off_leaves_the_old_run_whole(folder, url):
    push(load(folder), url)
    other = another(folder)
    with network_gone("put", lambda path: path.endswith(MANIFEST)):
        push(other, url, force=True)
    assert load(fetch(url)).manifest.job is None


def test_only_complete_runs_are_pushed(folder, url, system, bucket):
    run = load(folder)
    for state in ("partial", "failed", "running"):
        run.manifest.state = state
        with pytest.raises(RunError, match="not a complete run"):
            push(run, url)
    assert stored(system, bucket) == {}


@pytest.mark.parametrize("local", [False, True])
def test_a_file_that_is_not_as_it_was_written_is_not_pushed(folder, url, local, tmp_path):
    url = f"file://{tmp_path}/store/RUN" if local else url
    run = load(folder)
    path = run.files("step")[0]
    before = path.read_bytes()
    flip(path, len(before) // 4)  # size and footer stay
    with pytest.raises(RunError, match="changed after the run was made"):
        push(run, url)
    with pytest.raises(RunError, match="no whole run"):
        fetch(url)
    assert not list(tmp_path.rglob("*.tmp"))
    path.write_bytes(before)
    assert push(run, url).written > 0
    assert files_of(fetch(url)) == files_of(folder)


def test_many_ask_for_a_run_at_once(folder, url):
    push(load(folder), url)
    with ThreadPoolExecutor(4) as pool:
        (copy,) = set(pool.map(fetch, [url] * 8))
    assert files_of(copy) == files_of(folder)
    assert load(copy).name == url
    assert len(list(copy.parents[1].iterdir())) == 1


@pytest.mark.parametrize("how", ["changed", "cut", "longer", "gone"])
def test_a_damaged_object_is_named_and_no_copy_is_left(folder, url, system, bucket, how, tmp_path):
    push(load(folder), url)
    path, data = steps_of(system, bucket)
    changed = flipped(data, len(data) // 4)
    if how == "gone":
        system.delete_file(path)
    else:
        write(system, path, {"changed": changed, "cut": data[:-100], "longer": data * 3}[how])
    with pytest.raises(RunError, match=r"damaged file `step/rows.parquet` in `s3://") as caught:
        fetch(url)
    assert str(tmp_path) not in caught.value.message
    assert copies(tmp_path) == []


def test_thousands_of_missing_files_are_not_all_asked_for(folder, tmp_path, monkeypatch):
    local = (tmp_path / "pushed").as_uri()
    push(load(folder), local)
    run = load(folder)
    (about,) = [part for name, part in run.manifest.parts.items() if name.startswith("step/")]
    run.manifest.parts |= {f"step/rep=0/rank={rank}/part-00000.parquet": about for rank in range(3000)}
    run.save()
    shutil.copy(folder / MANIFEST, tmp_path / "pushed" / MANIFEST)
    asked, pieces = [], objects.Objects.pieces
    monkeypatch.setattr(objects.Objects, "pieces", lambda self, path: asked.append(path) or pieces(self, path))
    with pytest.raises(RunError, match=r"damaged file `step/rep=0/rank=\d+/part-00000\.parquet` in .* found none"):
        fetch(local)
    parts = len(load(folder).manifest.parts) - 3000
    assert len(asked) < 2 * (parts + 20)  # twice for each that is there, and for each reader


def test_copies_that_nobody_asks_for_are_removed_and_a_changed_one_is_read_again(folder, url, monkeypatch):
    push(load(folder), url)
    old = fetch(url)
    load(old).files("step")[0].write_bytes(b"x")
    assert fetch(url) == old
    assert files_of(old) == files_of(folder)
    push(another(folder), url, force=True)
    new = fetch(url)
    assert old.is_dir()
    monkeypatch.setattr(run_objects, "_KEPT_S", -60)
    fetch(url)
    assert (old.exists(), new.exists()) == (False, False)


def test_a_run_that_another_program_copied_is_read(small, url, system, bucket):
    for name, data in files_of(small).items():
        write(system, f"{bucket}/runs/RUN/{name}", data)
    assert files_of(fetch(url)) == files_of(small)


@pytest.mark.parametrize("name", [
    "../../../x.parquet", "/etc/x", "step/../../x", "step/rep=0/rank=0/../../../../x", "nosuch/rows.parquet", "step/x",
])  # fmt: skip
def test_a_manifest_that_names_other_files_is_refused(folder, url, system, bucket, name, tmp_path):
    push(load(folder), url)
    manifest = json.loads(folder.joinpath(MANIFEST).read_bytes())
    manifest["parts"][name] = {"bytes": 1, "footer": "", "sha256": "0" * 64}
    write(system, f"{bucket}/runs/RUN/{MANIFEST}", json.dumps(manifest).encode())
    with pytest.raises(RunError, match="damaged manifest"):
        fetch(url)
    assert copies(tmp_path) == []


@pytest.mark.parametrize(("member", "value", "said"), [
    ("state", "running", "while it was recorded"), ("parts", None, "no checksums"), ("schema_version", 10**6, "upgrade|newer"),
    ("run_id", 7, "damaged manifest `s3://"),
])  # fmt: skip
def test_a_manifest_that_cannot_be_trusted_is_refused(folder, url, system, bucket, member, value, said):
    manifest = json.loads(folder.joinpath(MANIFEST).read_bytes()) | {member: value}
    write(system, f"{bucket}/runs/RUN/{MANIFEST}", json.dumps(manifest).encode())
    with pytest.raises(RunError, match=said):
        fetch(url)


def test_what_cannot_be_read_for_its_size_or_for_the_words_in_its_url_is_refused(folder, url, monkeypatch):
    push(load(folder), url)
    with monkeypatch.context() as patch:
        patch.setenv("PIPEPROF_MAX_BYTES", "3000")
        with pytest.raises(RunError, match="bytes"):
            fetch(url)
    named = url.replace("s3://", f"s3://key:{SECRET}@")
    for call in (lambda: fetch(named), lambda: push(load(folder), named)):
        with pytest.raises(UsageError, match="user or password") as caught:
            call()
        assert SECRET not in caught.value.message + caught.value.hint
    with pytest.raises(UsageError, match=r"`runs/here` is no URL") as caught:
        push(load(folder), "runs/here")
    assert "file:///folder" in caught.value.hint


def test_nothing_there_is_one_clear_error(url, recorded, tmp_path):
    error = refused("report", url)
    assert isinstance(error, RunError)
    assert (error.message, error.exit_code) == (f"no run at `{url.partition('?')[0]}`", 3)
    assert "pipeprof push" in error.hint
    assert not (tmp_path / "cache").exists()
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="Not a directory") as caught:
        push(load(recorded), f"file://{tmp_path}/file/RUN")
    assert caught.value.hint == "check the path and its permissions"


def test_a_wrong_option_is_told_before_anything_is_read_and_a_verb_that_changes_a_run_takes_no_url(url, server):
    before = len(server.requests())
    assert ended("report", url, "--format", "nonsense")[0] == 2
    assert len(server.requests()) == before
    for words in (["compact", url], ["push", url, url]):
        error = refused(*words)
        assert isinstance(error, UsageError)
        assert "not changed" in error.message


def test_an_upload_that_was_cut_off_in_its_empty_manifest_is_no_run_and_goes_on(folder, tmp_path):
    place, store = f"file://{tmp_path}/store", tmp_path / "store"
    push(load(folder), f"{place}/RUN")
    store.joinpath("RUN", MANIFEST).write_bytes(b"")  # where Azure's client was killed
    with pytest.raises(RunError, match="no whole run"):
        fetch(f"{place}/RUN")
    assert [one.problem for one in runs_below(place)] == [HALF]
    assert push(load(folder), f"{place}/RUN").written == 0
    assert files_of(fetch(f"{place}/RUN")) == files_of(folder)


@pytest.mark.parametrize("fault", ["500", "cut"])
def test_a_storage_that_fails_now_and_then_loses_nothing(folder, url, server, faulty, fault, tmp_path):
    through = url.replace(server.address, f"127.0.0.1:{faulty.server_port}")
    push(load(folder), url)
    faulty.faults = [fault, fault]
    try:
        copy = fetch(through)
    except RunError:  # where the client did not ask again by itself
        assert copies(tmp_path) == []
        copy = fetch(through)
    assert faulty.seen.count(fault) == 2
    assert files_of(copy) == files_of(folder)


def test_a_server_that_is_gone_is_one_clear_error(folder, url, server):
    gone = url.replace(server.address, "127.0.0.1:9")
    for call in (lambda: fetch(gone), lambda: push(load(folder), gone)):
        with pytest.raises(PipeprofError, match=r"cannot read .*s3://") as caught:
            call()
        assert (caught.value.exit_code, "\n" in caught.value.message) == (3, False)
        assert "credentials in the environment" in caught.value.hint


def recording(url, code, where, *more):
    """`pipeprof collect -o URL` of a command that ends with this code, in a folder of its own; and what is in it."""
    where.mkdir()
    command = [sys.executable, "-c", f"open('ran', 'w'); raise SystemExit({code})"]
    words = [sys.executable, "-m", "pipeprof", "collect", "-o", url, *more, "--", *command]
    done = subprocess.run(words, cwd=where, capture_output=True, text=True, check=False)
    return done, next(where.glob("pipeprof-run-*"), None)


def test_a_recording_or_an_import_is_uploaded_when_it_is_done(url, tmp_path, monkeypatch):
    done, local = recording(url, 0, tmp_path / "a")
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1].endswith("files uploaded")
    assert files_of(fetch(url)) == files_of(local)
    again, _ = recording(url, 0, tmp_path / "b")
    assert again.returncode == 2
    assert again.stderr.startswith("error: another run is at `s3://")
    assert list((tmp_path / "b").iterdir()) == [], "nothing was begun"
    assert recording(url, 0, tmp_path / "c", "--force")[0].returncode == 0
    monkeypatch.chdir(tmp_path)
    write_trace(tmp_path / "trace.json", [trace_op("aten::add", 0, 5)])
    said("import", "trace.json", "-o", url.replace("/RUN?", "/IMPORT?"))
    (local,) = tmp_path.glob("pipeprof-run-*")
    assert files_of(fetch(url.replace("/RUN?", "/IMPORT?"))) == files_of(local)


def test_a_signal_reaches_the_command_though_the_storage_was_looked_at_before(url, tmp_path):
    script = "import signal, sys, time; signal.signal(signal.SIGINT, lambda *_: sys.exit(7)); open('ready', 'w'); time.sleep(60)"
    words = [sys.executable, "-m", "pipeprof", "collect", "-o", url, "--", sys.executable, "-c", script]
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE) as begun:
        for _ in range(600):
            if (tmp_path / "ready").exists():
                break
            time.sleep(0.1)
        begun.send_signal(signal.SIGINT)
        begun.communicate(timeout=60)
    assert begun.returncode == 7


def test_a_recording_that_is_not_uploaded_is_kept_here_and_said_so(url, server, system, bucket, faulty, tmp_path):
    done, local = recording(url, 3, tmp_path / "failed")
    assert done.returncode == 3
    told = f"pipeprof: not uploaded, for the run is failed: it is kept in `{local.name}`"
    assert done.stderr.splitlines()[-1] == told
    assert stored(system, bucket) == {}
    faulty.faults = ["403"] * 50
    done, local = recording(url.replace(server.address, f"127.0.0.1:{faulty.server_port}"), 0, tmp_path / "a")
    assert done.returncode == 0, "that of the command"
    error, hint = done.stderr.splitlines()[-2:]
    assert "forbidden" in error
    assert f"the run is kept in `{local.name}`; to upload it: pipeprof push {local.name} URL" in hint
    push(load(local), url)
    assert files_of(fetch(url)) == files_of(local)
