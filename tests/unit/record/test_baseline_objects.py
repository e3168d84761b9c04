"""Baselines in object storage: against a real local S3 server, with the pointer written last."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from baseline_made import made, save
from pyarrow import fs

from pipeprof.errors import RunError, UsageError
from pipeprof.query.side import open_base
from pipeprof.record import baseline, objects, place
from pipeprof.record.baseline_files import DamagedBaselineError


@pytest.fixture
def url(server, system, request):
    bucket = f"b{abs(hash(request.node.name)) % 10**9}"
    system.create_dir(bucket)
    return f"s3://key:secret@{bucket}/some/prefix?endpoint_override=http://{server.address}&region=us-east-1"


def at(url, *parts):
    head, _, query = url.partition("?")
    return "/".join([head, *parts]) + "?" + query


def listed(system, url):
    path = url.partition("@")[2].partition("?")[0]
    infos = system.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
    return {info.path[len(path) + 1 :]: info for info in infos if info.type == fs.FileType.File}


def test_a_baseline_in_a_bucket_comes_back_is_listed_takes_jobs_and_is_removed(url, system):
    saved = save(url, made("j0"))
    assert "secret" not in saved.where
    machine = saved.document.machine
    assert baseline.names(url) == [("demo", machine)]
    found = made("j0", workload="demo", kind="baseline")
    assert baseline.load_named(url, "demo", machine) == baseline.load(at(url, "demo", machine)) == found
    names = sorted(name.rpartition("/")[2].partition("-")[0] for name in listed(system, url) if "/history/" not in name)
    assert names == ["baseline.json", "facts", "measures", "summary"]
    for number in (1, 2):
        more = made(f"j{number}", first=11e6 + number, created_at=f"2026-11-2{number + 1}T10:00:00+00:00")
        save(url, more, append=True, tag=f"v{number}")
    assert baseline.load_named(url, "demo", machine).jobs == {"j0", "j1", "j2"}
    assert [entry.tag for entry in baseline.read_history(url, "demo", machine)] == [None, "v1", "v2"]
    assert baseline.remove(url, "demo") == [("demo", machine)]
    assert baseline.names(url) == []
    assert listed(system, url) == {}


def test_a_side_of_a_comparison_may_name_the_workload_or_the_baseline_itself(url, system):
    del system
    machine = save(url).document.machine
    for parts in (("demo",), ("demo", machine)):
        assert open_base(at(url, *parts), made()).values == made().values


@pytest.mark.parametrize("name", ["measures", "facts", "summary"])
def test_a_pointer_without_its_files_is_damaged(url, system, name):
    machine = save(url).document.machine
    (path,) = [info.path for found, info in listed(system, url).items() if f"/{name}-" in found]
    with system.open_output_stream(path) as stream:
        stream.write(b"{}")
    with pytest.raises(DamagedBaselineError, match=rf"{name}\.\w+"):
        baseline.load_named(url, "demo", machine)
    system.delete_file(path)
    with pytest.raises(DamagedBaselineError, match=f"{name}.* is missing"):
        baseline.load_named(url, "demo", machine)


def test_a_writer_that_dies_before_the_pointer_changes_nothing(url, system, monkeypatch):
    machine = save(url).document.machine
    put = place.ObjectPlace.put

    def dying(self, path, data):
        if path.endswith("baseline.json"):
            raise RunError("killed")
        put(self, path, data)

    with monkeypatch.context() as patch:
        patch.setattr(place.ObjectPlace, "put", dying)
        with pytest.raises(RunError, match="killed"):
            save(url, made(first=99e6))
    assert baseline.load_named(url, "demo", machine).values == made().values
    save(url, made(first=99e6))
    assert sum("/measures-" in name for name in listed(system, url)) == 2
    monkeypatch.setattr(objects, "KEPT", -objects.KEPT)  # a day later
    save(url, made(first=98e6))
    assert sum("/measures-" in name for name in listed(system, url)) == 1


def test_a_reader_that_holds_the_old_pointer_still_finds_its_files(url, monkeypatch):
    machine = save(url).document.machine
    read = baseline.read_document

    def slow(data, where):
        monkeypatch.undo()
        save(url, made(first=99e6))
        return read(data, where)

    monkeypatch.setattr(baseline, "read_document", slow)
    assert baseline.load_named(url, "demo", machine).values == made().values
    assert baseline.load_named(url, "demo", machine).values == made(first=99e6).values


def test_concurrent_writers_leave_one_whole_baseline_and_every_entry(url):
    machine = save(url).document.machine
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda number: save(url, made(f"j{number}", first=2e6 + number)), range(6)))
    assert len(baseline.load_named(url, "demo", machine).reps) == 3
    assert len(baseline.read_history(url, "demo", machine)) == 7


def test_what_cannot_be_opened_is_named_without_the_secret_and_is_no_empty_list(server):
    missing = f"s3://key:secret@nobucket/x?endpoint_override=http://{server.address}&region=us-east-1"
    with pytest.raises(RunError, match="nobucket") as caught:
        save(missing)
    assert "secret" not in caught.value.message
    with pytest.raises(RunError, match="there is no such bucket: `nobucket`"):
        baseline.names(missing)
    for root in ("ftp://x/y", "nosuch://x"):
        with pytest.raises(UsageError, match="cannot open"):
            baseline.names(root)

    class Refusing:
        def get_file_info(self, _):
            raise OSError("Connection refused")

    with pytest.raises(RunError, match="Connection refused"):
        place.ObjectPlace(Refusing(), "bucket", "s3://bucket").names()


def test_a_url_of_a_local_folder_is_that_folder(tmp_path):
    saved = save(f"file://{tmp_path}")
    assert baseline.load(saved.where) == baseline.load(f"file://{saved.where}")
    assert (tmp_path / "demo").is_dir()
