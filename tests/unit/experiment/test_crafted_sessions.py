"""A session that somebody wrote by hand names nothing outside its folder, and gives the command no code to load."""

import json

import msgspec
import pytest

from pipeprof.errors import RunError
from pipeprof.experiment.bisect.state import Bisection, Commit, open_bisection
from pipeprof.experiment.journal import SESSION, refuse_links, saved, session_folder
from pipeprof.experiment.qualify.pool import PoolState
from pipeprof.experiment.session import Session
from pipeprof.experiment.sweep.session import SweepSession
from pipeprof.experiment.tune.state import FailedRun, Trial, TuneState
from pipeprof.record.settings_file import Settings

PATHS = ["../outside", "/nowhere/at/all", "..", ".", "", "a/b", "a\n", "-rf", "x" * 200, "a\x00"]
ONE, OTHER = "a" * 40, "b" * 40


def entered(name, session, *place):
    session.enter(*place).name = name
    return session


def ab(name):
    return entered(name, Session(pair="p", seed=1, first="base", arms={}, policy="x"), "base")


def bisection(name, revision=ONE):
    commits = [Commit(revision=revision, subject="s")]
    return entered(name, Bisection(key="k", metric="m", command=[], commits=commits), 0)


def pool(name):
    content = {"schema_version": 1, "command": [], "slow_downs": [], "seed": 1, "machine": {}, "job": None}
    return content | {"repetitions": {name: {"seconds": 1.0, "values": {}}}}


MADE = {
    Session: ab,
    SweepSession: lambda name: entered(name, SweepSession(sweep="p", seed=1), 0, 0, "base"),
    Bisection: bisection,
    TuneState: lambda name: TuneState(tune="t", command=[], failed_runs=[FailedRun(folder=name, side="a", error="")]),
    PoolState: pool,
}


def read(folder, kind, session):
    folder.joinpath(kind.FILE).write_text(json.dumps(msgspec.to_builtins(session)), encoding="utf-8")
    return saved(folder, kind, 1, "session", "")


@pytest.mark.parametrize("kind", MADE)
def test_names_that_are_paths_are_damage(tmp_path, kind):
    assert read(tmp_path, kind, MADE[kind]("run-000")) is not None
    for name in PATHS:
        with pytest.raises(RunError, match="damaged session"):
            read(tmp_path, kind, MADE[kind](name))


def test_what_a_kill_left_is_removed_and_nothing_beside_it(tmp_path):
    inside, outside = tmp_path / "session", tmp_path / "outside"
    for folder in (inside / "base-000", outside):
        folder.mkdir(parents=True)
    session = read(inside, Session, ab("base-000"))
    assert [one.name for one in session.throw_away(inside, lambda _path: ())] == ["base-000"]
    assert (inside.joinpath("base-000").exists(), outside.is_dir()) == (False, True)


@pytest.mark.parametrize(
    ("kind", "asked"), [(TuneState, {"tune": "t"}), (PoolState, {"slow_downs": [0.1], "seed": 1})]
)  # fmt: skip
def test_what_notes_its_machine_under_another_name_goes_on_from_a_file_without_the_rest(tmp_path, kind, asked):
    before = {"schema_version": 1, "command": ["train"], "machine": {"cpu_model": "one"}, **asked}
    state = read(tmp_path, kind, before)
    assert (state.fingerprint, state.starts) == ({"cpu_model": "one"}, 0)
    assert msgspec.to_builtins(state).items() >= before.items()


def test_the_commits_of_a_bisection_are_those_that_were_asked_for(tmp_path):
    """Their code is run."""
    fresh = Bisection(key="k", metric="m", command=[], commits=[Commit(revision=ONE, subject="s")])
    for revision, words in ((OTHER, "names other commits"), (ONE, "has runs of no commit")):
        session = bisection("run-000", revision)
        session.repetitions[0].commit = 7
        tmp_path.joinpath(SESSION).write_text(json.dumps(msgspec.to_builtins(session)), encoding="utf-8")
        with pytest.raises(RunError, match=words):
            open_bisection(tmp_path, fresh)
    with pytest.raises(RunError, match="damaged"):
        read(tmp_path, Bisection, bisection("run-000", "--upload-pack=x"))


@pytest.mark.parametrize("environment", [{"LD_PRELOAD": "/x.so"}, {"PYTHONPATH": "1"}, {"OMP_NUM_THREADS": "$(x)"}])
def test_settings_of_a_tuning_set_numbers_of_threads_alone(tmp_path, environment):
    trial = Trial(key="k", what=[], prediction={}, settings=Settings(environment=environment), verdict="accepted")
    with pytest.raises(RunError, match="damaged"):
        read(tmp_path, TuneState, TuneState(tune="t", command=[], trials=[trial]))


@pytest.mark.parametrize("name", ["base-000", "base-000.log", ".gitignore", "history.jsonl", ".lock", "trial-0/a0"])
def test_nothing_is_written_through_a_link_out_of_a_session(tmp_path, name):
    outside = tmp_path / "outside"
    outside.write_text("", encoding="utf-8")
    link = tmp_path / "session" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)
    tmp_path.joinpath("session", SESSION).write_text("{}", encoding="utf-8")
    with pytest.raises(RunError, match="is a link out of"):
        refuse_links(tmp_path / "session")
    with pytest.raises(RunError, match="is a link out of"), session_folder(tmp_path / "session", print):
        pass
    assert outside.read_text(encoding="utf-8") == ""
