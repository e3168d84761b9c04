"""Who owns a file: rules as GitHub reads them, the last one that fits, else who wrote it."""

from pathlib import PurePosixPath

import pytest
from git_repository import GitRepository

from pipeprof.experiment.alerts import author_of, files_of, fits, owners_of, writer_of
from pipeprof.record.git import Repository


@pytest.mark.parametrize(
    ("pattern", "path", "fit"),
    [
        ("*", "a/b.py", True), ("*.py", "a/b.py", True), ("*.py", "b.pyc", False), ("/*.py", "a/b.py", False),
        ("/*.py", "b.py", True), ("docs/*", "docs/a.md", True), ("docs/*", "docs/a/b.md", False),
        ("docs/", "x/docs/a/b.md", True), ("/docs/", "x/docs/a.md", False), ("/docs/", "docs/a/b.md", True),
        ("data", "data/x.py", True), ("data/x.py", "data/x.py", True), ("data/x.py", "a/data/x.py", False),
        ("**/logs", "a/b/logs/x", True), ("/a/**/c.py", "a/b/b/c.py", True), ("/a/**/c.py", "a/c.py", True),
        ("a?c.py", "abc.py", True), ("a.c", "abc", False), ("(", "(", True),
    ],
)  # fmt: skip
def test_a_rule_fits_as_it_does_on_github(pattern, path, fit):
    assert fits(pattern, path) == fit


def test_the_last_rule_counts_and_the_revision_decides(tmp_path):
    git = GitRepository(tmp_path)
    rules = "# who\n* @all\n/data/ @data-team team@example.org not-one # more\n/data/free.py\n"
    base = git.commit({".github/CODEOWNERS": rules, "data/map.py": "1\n2\n", "CODEOWNERS": "* @nobody\n"})
    later = git.commit({".github/CODEOWNERS": "* @me\n", "data/map.py": "1\n3\n"})
    here = Repository(tmp_path.resolve())
    owned = {path: owners_of(here, base, PurePosixPath(path)) for path in ("data/map.py", "data/free.py", "x.py")}
    assert owned == {"data/map.py": ["@data-team", "team@example.org"], "data/free.py": [], "x.py": ["@all"]}
    assert owners_of(here, later, PurePosixPath("data/map.py")) == ["@me"]
    name = git.git("log", "-1", "--format=%an")
    assert writer_of(here, later, PurePosixPath("data/map.py"), 2) == author_of(here, later) == name
    assert writer_of(here, later, PurePosixPath("gone.py"), 2) is None
    assert files_of(here, later) == [".github/CODEOWNERS", "data/map.py"]
    assert (author_of(here, "-x"), files_of(here, "-x")) == (None, [])
