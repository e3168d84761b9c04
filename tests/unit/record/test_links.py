"""Nothing is written or removed through a link that leads out of a folder."""

import pytest

from pipeprof.errors import RunError
from pipeprof.inprocess.place import check_cycles
from pipeprof.record import lock
from pipeprof.record.place import LocalPlace
from pipeprof.record.plain_file import refuse_links_out, remove


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    folder.joinpath("mine").write_text("mine", encoding="utf-8")
    return folder


def test_of_a_link_only_the_link_is_removed_and_what_is_missing_is_no_error(tmp_path, outside):
    home = tmp_path / "home"
    home.joinpath("folder", "inner").mkdir(parents=True)
    home.joinpath("file").write_text("x", encoding="utf-8")
    home.joinpath("link").symlink_to(outside)
    for name in ("folder", "file", "link", "missing"):
        remove(home / name)
    assert list(home.iterdir()) == []
    assert outside.joinpath("mine").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("name", ["run-000", "trial-0/a0", "trial-0/rows/a0"])
def test_a_link_out_is_refused_by_its_name(tmp_path, outside, name):
    link = tmp_path / "session" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)
    with pytest.raises(RunError, match=f"{name}` is a link out of"):
        refuse_links_out(tmp_path / "session", 3)


def test_links_that_stay_inside_and_those_of_the_user_are_let_be(tmp_path, outside):
    session = tmp_path / "session"
    session.joinpath("artefacts").mkdir(parents=True)
    session.joinpath("artefacts", "model").symlink_to(outside)
    session.joinpath("newest").symlink_to("artefacts")
    refuse_links_out(session, 3, ("artefacts",))


@pytest.mark.parametrize("name", ["step", "step/rep=0", "spool"])
def test_a_run_with_a_link_out_cannot_be_held(tmp_path, outside, name):
    """What holds it converts its spool into its tables, and removes those of a conversion that failed."""
    link = tmp_path / "run" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)
    with pytest.raises(RunError, match="is a link out of"):
        lock.take(tmp_path / "run", "x")


def test_a_baseline_is_not_written_or_removed_through_a_link(tmp_path, outside):
    root = tmp_path / "baselines"
    root.mkdir()
    root.joinpath("w").symlink_to(outside)
    outside.joinpath("m").mkdir()
    place = LocalPlace(root)
    with pytest.raises(Exception, match="is a link to"), place.turn("w"):
        place.replace("w", "m", {"baseline.json": b"{}"}, b"")
    with pytest.raises(RunError, match="is a link to"):
        place.remove("w", "m")
    assert sorted(path.name for path in outside.iterdir()) == ["m", "mine"]


def test_a_history_that_is_a_link_is_not_copied_into_the_new_baseline(tmp_path, outside):
    place, folder = LocalPlace(tmp_path / "baselines"), tmp_path / "baselines" / "w" / "m"
    folder.mkdir(parents=True)
    folder.joinpath("history.jsonl").symlink_to(outside / "mine")
    with pytest.raises(RunError, match="it is a link to"), place.turn("w"):
        place.replace("w", "m", {"baseline.json": b"{}"}, b"")


def test_a_cycle_that_is_a_link_is_replaced_and_what_it_leads_to_stays(tmp_path, make_run):
    run = make_run({"step": []}, state="complete")
    folder = tmp_path / "cycles"
    folder.mkdir()
    folder.joinpath("cycle-0").symlink_to(run.path)
    check_cycles(folder, force=True, add=False)
    assert list(folder.iterdir()) == []
    assert run.path.joinpath("run.json").is_file()
