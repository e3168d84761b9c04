from pathlib import Path

import pytest

import pipeprof
from pipeprof.errors import QueryError
from pipeprof.query import catalog

ROOT = Path(__file__).resolve().parents[3]

TEXT = """-- Title.
--
-- Reads: {reads}
-- Gives, one row per (rep):
--   rep  bigint  repetition
SELECT rep FROM {reads}
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An imaginary place where the package is installed; `.parent` is the source tree or site-packages."""
    folder = tmp_path / "somewhere" / "pipeprof"
    folder.mkdir(parents=True)
    monkeypatch.setattr(pipeprof, "__file__", str(folder / "__init__.py"))
    return folder


def add_views(root, **reads):
    root.joinpath("views").mkdir(parents=True, exist_ok=True)
    for name, read in reads.items():
        root.joinpath("views", f"{name}.sql").write_text(TEXT.format(reads=read))


@pytest.mark.parametrize(
    ("frozen", "beside", "is_source", "expected"),
    [
        (True, True, True, "queries"),
        (True, False, False, "pipeprof/_queries"),
        (True, True, False, "pipeprof/_queries"),  # a stranger beside the installed package is not taken
        (False, False, False, None),
    ],
)
def test_a_source_tree_wins_over_a_frozen_copy_and_an_installed_package_has_its_own(
    package, frozen, beside, is_source, expected
):
    if frozen:
        add_views(package / "_queries", old="step")
    if beside:
        add_views(package.parent / "queries", new="step")
    if is_source:
        package.parent.joinpath("pyproject.toml").touch()
    if expected is None:
        with pytest.raises(QueryError, match="found no queries in"):
            catalog.queries_root()
    else:
        assert catalog.queries_root() == package.parent / expected


def test_a_query_is_found_by_name_and_an_unknown_one_names_near_ones():
    assert catalog.queries_root() == ROOT / "queries"
    query = catalog.find("step/phase_summary")
    assert (query.name, query.path) == ("step/phase_summary", ROOT / "queries/step/phase_summary.sql")
    with pytest.raises(QueryError, match="no such query: `step/phase_sumary`") as caught:
        catalog.find("step/phase_sumary")
    assert "`step/phase_summary`" in caught.value.hint
    with pytest.raises(QueryError):
        catalog.find("../queries/step/summary")
    names = [query.name for query in catalog.all_queries()]
    assert names == sorted(names)
    assert "step/summary" in names
    assert not any(name.startswith("views/") for name in names)


def test_a_view_comes_after_the_views_it_reads(package):
    add_views(package / "_queries", a="b", b="c", c="step", d="step")
    assert [catalog.view_name(view) for view in catalog.views()] == ["c", "d", "b", "a"]


def test_views_that_read_each_other_are_an_error(package):
    add_views(package / "_queries", a="b", b="a", c="step")
    with pytest.raises(QueryError, match="in a circle: a, b"):
        catalog.views()
