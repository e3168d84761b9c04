"""What a git revision holds is read from git, whatever the working tree has."""

from pathlib import PurePosixPath

import pytest
from baseline_made import made, save
from git_repository import GitRepository

from pipeprof.errors import RunError, UsageError
from pipeprof.record import baseline
from pipeprof.record.git import Repository
from pipeprof.record.place import address, open_place

NAME = PurePosixPath("jobs/a file.txt")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    made = GitRepository(tmp_path / "repository")
    monkeypatch.chdir(made.root)
    return made


def test_a_file_is_read_as_the_revision_has_it(repository):
    old = repository.commit({"jobs/a file.txt": "old\r\n"})
    new = repository.commit({"jobs/a file.txt": "new"})
    (repository.root / "jobs/a file.txt").write_text("edited")
    found = Repository.around(repository.root / "jobs")
    assert (found.read(old, NAME), found.read(new, NAME)) == (b"old\r\n", b"new")
    assert found.read(new, PurePosixPath("jobs/none")) is None
    assert found.read(new, PurePosixPath("jobs")) is None
    assert found.read(new, PurePosixPath("jobs/*.txt")) is None


def test_a_link_of_the_revision_is_not_followed(repository):
    (repository.root / "secret").write_text("x")
    (repository.root / "link").symlink_to("secret")
    revision = repository.commit()
    assert Repository.around(repository.root).read(revision, PurePosixPath("link")) is None


def test_no_filter_of_the_repository_changes_what_is_read(repository):
    repository.git("config", "diff.shout.textconv", "echo shouted")
    revision = repository.commit({".gitattributes": "*.txt diff=shout text eol=crlf", "jobs/a file.txt": "calm\n"})
    assert Repository.around(repository.root).read(revision, NAME) == b"calm\n"


def test_a_path_is_inside_whatever_links_the_change_puts_there(repository, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (repository.root / "baselines").symlink_to(outside)
    (tmp_path / "door").symlink_to(repository.root)
    (repository.root / "jobs").mkdir()
    (tmp_path / "side door").symlink_to(repository.root / "jobs")
    found = Repository.around(repository.root)
    assert found.inside(repository.root / "baselines" / "resnet") == PurePosixPath("baselines/resnet")
    assert found.inside(tmp_path / "door" / "baselines") == PurePosixPath("baselines")
    assert found.inside(tmp_path / "side door") == PurePosixPath("jobs")
    assert found.inside(repository.root / "jobs" / ".." / "x") == PurePosixPath("x")
    assert found.inside(outside) is None


def test_changes_are_counted_from_where_the_histories_part(repository):
    repository.commit({"kept": "1", "edited": "1", "gone": "1"})
    repository.git("checkout", "--quiet", "-b", "change")
    head = repository.commit({"edited": "2", "gone": None, "added": "1"})
    repository.git("checkout", "--quiet", "main")
    base = repository.commit({"of others": "1"})
    found = Repository.around(repository.root)
    names = {str(path): letter for path, letter in found.changed(base, head).items()}
    assert names == {"added": "A", "edited": "M", "gone": "D"}
    repository.write({"kept": "2"})
    assert {str(path): letter for path, letter in found.changed(base, None).items()} == {"kept": "M"}


def test_a_baseline_comes_from_the_revision(repository):
    save("kept here/baselines", workload="resnet")
    revision = repository.commit()
    save("kept here/baselines", made(first=90e6), "resnet")
    repository.commit()
    root = address(revision, PurePosixPath("kept here/baselines"))
    ((workload, machine),) = baseline.names(root)
    assert baseline.load(f"{root}/{workload}/{machine}").values == made().values
    assert baseline.of_machine(root, "resnet", made()).values == made().values
    assert len(baseline.read_history(root, workload, machine)) == 1


def test_what_the_revision_lacks_is_named_and_it_is_never_written(repository):
    revision = repository.commit({"a": "1"})
    root = address(revision, PurePosixPath("baselines"))
    with pytest.raises(RunError, match=f"no baseline in `{revision[:10]}:baselines/resnet/m`"):
        baseline.load(f"{root}/resnet/m")
    assert not open_place(root).exists()
    with pytest.raises(UsageError, match="cannot be written"):
        save(root)
    with pytest.raises(UsageError, match="no such revision here"):
        open_place("git-revision://main/baselines")
    for ref in ("--all", "nosuch", "HEAD^{tree}"):
        assert Repository.around(repository.root).commit(ref) is None


def test_an_object_that_stands_in_for_the_revision_is_not_read(tmp_path):
    made = GitRepository(tmp_path)
    base = made.commit({"pipeprof.toml": "strict"})
    made.commit({"pipeprof.toml": "loose"})
    made.git("replace", base, "HEAD")
    found = Repository.around(tmp_path)
    assert found.read(base, PurePosixPath("pipeprof.toml")) == b"strict"
    assert found.changed(base, "HEAD") == {PurePosixPath("pipeprof.toml"): "M"}
