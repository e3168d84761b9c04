"""A name of several commits judges nothing: whoever may push a tag would choose the base."""

import pytest
from git_repository import GitRepository

from pipeprof.errors import UsageError
from pipeprof.record.git import Repository


@pytest.fixture
def made(tmp_path):
    repository = GitRepository(tmp_path / "project")
    repository.first = repository.commit({"a": "1"})
    repository.base = repository.commit({"a": "2"})
    repository.git("update-ref", "refs/remotes/origin/main", repository.base)
    repository.git("checkout", "--quiet", "-b", "change")
    repository.change = repository.commit({"a": "3"})
    return repository


def ask(made, name):
    return Repository(made.root).commit(name)


def test_names_of_one_commit_are_known_with_what_leads_on_from_them(made):
    made.git("tag", "-a", "-m", "x", "v1", made.first)
    names = ("main", "main^{commit}", "heads/main", "origin/main", "refs/heads/main", made.base, made.base[:8])
    assert {ask(made, name) for name in (*names, "HEAD~1", "@~1", "change@{1}", "v1-1-g" + made.base[:8])} == {
        made.base
    }
    assert {ask(made, name) for name in ("main~1", "main^", "v1", "HEAD~2", "refs/tags/v1")} == {made.first}
    assert {ask(made, name) for name in ("nothing", "-x", ":/change", "refs/heads/nothing", "a b")} == {None}


@pytest.mark.parametrize("rest", ["", "~0", "^{commit}", "@{0}"])
@pytest.mark.parametrize(("shadow", "name", "hint"), [
    ("refs/tags/main", "main", "refs/heads/main"), ("refs/tags/heads/main", "heads/main", "refs/heads/main"),
    ("refs/tags/origin/main", "origin/main", "refs/remotes/origin/main"),
    ("refs/heads/origin/main", "origin/main", "refs/remotes/origin/main"), ("refs/main", "main", "refs/heads/main"),
])  # fmt: skip
def test_a_name_that_something_of_the_change_shadows_is_refused(made, shadow, name, hint, rest):
    made.git("update-ref", shadow, made.change)
    with pytest.raises(UsageError, match=f"^`{name}` is ambiguous: it is .*{shadow}") as raised:
        ask(made, name + rest)
    assert hint in raised.value.hint
    assert ask(made, hint) == made.base


@pytest.mark.parametrize("kind", ["heads", "tags"])
def test_a_ref_that_is_named_as_a_short_hash_is_refused(made, kind):
    short = made.base[:8]
    made.git("update-ref", f"refs/{kind}/{short}", made.change)
    with pytest.raises(UsageError, match=rf"refs/{kind}/{short} \({made.change[:10]}\) and commit {made.base[:10]}"):
        ask(made, short)
    assert ask(made, made.base) == made.base
    made.git("update-ref", f"refs/{kind}/v1-1-g{short}", made.change)
    with pytest.raises(UsageError, match="is ambiguous"):
        ask(made, f"v1-1-g{short}")


def test_what_is_no_danger_is_let_be(made):
    """A ref named as a full hash, a full name, which is looked for nowhere else, and names of the same commit."""
    made.git("update-ref", f"refs/tags/{made.base}", made.change)
    assert ask(made, made.base) == made.base
    made.git("update-ref", "refs/tags/refs/heads/release", made.change)
    assert ask(made, "refs/heads/release") is None
    made.git("tag", "main", made.base)
    made.git("tag", "HEAD", made.change)
    assert (ask(made, "main"), ask(made, "HEAD")) == (made.base, made.change)


def test_a_tag_does_not_stand_in_for_a_branch_that_only_the_remote_has(made):
    made.git("branch", "-D", "main")
    assert ask(made, "main") is None
    made.git("tag", "main", made.change)
    with pytest.raises(UsageError, match=r"refs/tags/main .* and refs/remotes/origin/main") as raised:
        ask(made, "main")
    assert "refs/remotes/origin/main" in raised.value.hint
