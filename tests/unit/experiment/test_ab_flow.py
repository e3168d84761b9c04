"""`pipeprof ab` with a fake bench: order, discards, looks, budget, resuming after a kill, failing arms."""

import errno
import json
import os
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from ab_bench import STEP, FakeBench, Killed, says

from pipeprof.collect import fingerprint
from pipeprof.errors import MeasureError, RunError, UsageError, WorkloadError
from pipeprof.experiment import journal, runs
from pipeprof.experiment.ab import AbWish, run_ab
from pipeprof.experiment.arms import ArmWish
from pipeprof.experiment.interleaved import stolen_share
from pipeprof.experiment.repetition import Bench
from pipeprof.verdict.gate.policy import Policy, Rule

POLICY = Policy(looks=(3, 4), metrics={STEP: Rule(unit="ns")})
LONG = Policy(looks=(5, 8, 12, 16, 20), metrics={STEP: Rule(unit="ns")})
PAIR = {"base": ArmWish(command=("old",)), "new": ArmWish(command=("new",))}
EQUAL = dict.fromkeys(("old", "new"), (1e6, 1.001e6, 0.999e6))
SLOW = EQUAL | {"new": (1.2e6, 1.201e6, 1.199e6)}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A working directory; `call(bench)` runs a session in it, `ends` one with that verdict at so many repetitions."""
    monkeypatch.chdir(tmp_path)
    machine = {"cpu_model": "one", "memory_bytes": 2**34}
    place = SimpleNamespace(folder=tmp_path / "s", said=[], machine=machine, job="boot:1")
    monkeypatch.setattr(fingerprint, "machine", lambda: dict(place.machine))
    monkeypatch.setattr(fingerprint, "job", lambda: place.job)

    def call(bench=None, policy=POLICY, **wish):
        place.bench = bench or FakeBench()
        kept = {**PAIR, "folder": place.folder, "seed": 1} | wish
        return run_ab(AbWish(**kept), policy, place.said.append, place.bench)

    def ends(verdict="unchanged", at=3, policy=POLICY, bench=None, **wish):
        return call(FakeBench(compare=says(verdict, at), **(bench or {})), policy, **wish)

    def refused(error, words, bench=None, **wish):
        with pytest.raises(error, match=words) as caught:
            call(bench, **wish)
        return caught.value

    def killed(at, **wish):
        with pytest.raises(Killed):
            call(FakeBench(dies_at=at), **wish)

    place.call, place.ends, place.refused, place.killed = call, ends, refused, killed
    place.session = lambda: json.loads((place.folder / "session.json").read_text())
    return place


def arms(names):
    return "".join(name[0] for name in names)


def fact(content, code):
    return next((one for one in content["note_facts"] if one["code"] == code), None)


def test_first_repetitions_are_discarded_then_both_sides_in_turn(home):
    session = home.ends("unchanged", 4)["session"]
    first, second = ("n", "b") if session["first"] == "new" else ("b", "n")
    assert arms(home.bench.ran) == first + second + (first + second + second + first) * 2
    assert session["discarded"] == sorted(session["order"][:2], key=home.bench.ran.index)
    assert session["runs"]["base"] == [f"base-{number:03d}" for number in (1, 2, 3, 4)]
    assert [entry["state"] for entry in home.session()["repetitions"]] == ["discarded"] * 2 + ["counted"] * 8
    lines = [line for line in home.said if line.startswith(("base-", "new-"))]
    assert lines[0].endswith("discarded (warm-up)")
    assert "; 1/6 runs, first check after 3 per side, at about T+" in lines[2]


def test_a_repetition_whose_cpu_was_taken_is_made_again_at_once(home):
    content = home.ends("unchanged", 4, bench={"steals": {"base-002": 0.05, "new-003": 0.3, "new-001": 0.015}})
    ran = home.bench.ran
    assert content["session"]["disturbed"] == sorted(["base-002", "new-003"], key=ran.index)
    assert ran[ran.index("base-002") + 1] == "base-003"
    assert "base-002" not in content["session"]["runs"]["base"]
    assert {len(names) for names in content["session"]["runs"].values()} == {4}
    assert any("set aside: 5.0 %" in line for line in home.said)
    assert fact(content, "set_aside") == {"code": "set_aside", "runs": 2, "most": pytest.approx(0.3)}
    assert {entry["name"]: entry["stolen"] for entry in home.session()["repetitions"]}["new-003"] == pytest.approx(0.3)


def test_where_the_cpu_is_always_taken_the_session_goes_on(home):
    content = home.ends("unchanged", 12, bench={"steals": lambda _name: 0.2})
    assert content["session"]["disturbed"] == []  # that is what is usual here
    shares = iter([0.0] * 8 + [0.5] * 99)
    later = {"steals": lambda _name: next(shares)}
    content = home.ends("unchanged", 12, bench=later, folder=home.folder.parent / "later")
    counted = sum(len(names) for names in content["session"]["runs"].values())
    assert 0 < len(content["session"]["disturbed"]) <= 2 + counted // 3


def test_a_kernel_that_counts_no_stolen_time_disturbs_nothing():
    used, stolen = Bench().cpu()
    assert used > 0
    assert stolen >= 0
    assert stolen_share((1.0, 0.0), (3.0, 0.0)) == 0
    assert stolen_share((1.0, 0.0), (3.0, 2.0)) == 0.5
    assert stolen_share((1.0, 0.5), (1.0, 0.5)) is None


def test_the_first_arm_is_drawn_with_a_recorded_seed(home):
    drawn = [home.ends(folder=home.folder.parent / f"s{seed}", seed=seed)["session"] for seed in range(8)]
    assert [session["seed"] for session in drawn] == list(range(8))
    assert {session["first"] for session in drawn} == {"base", "new"}


def test_both_arms_run_with_the_same_hash_seed(home, monkeypatch):
    monkeypatch.setenv("PYTHONHASHSEED", "random")
    home.ends(new=ArmWish(command=("new",), env=("OMP_NUM_THREADS=2",)))
    bench = home.bench
    assert {environment["PYTHONHASHSEED"] for environment in bench.environments} == {"0"}
    of_new = [e for name, e in zip(bench.ran, bench.environments, strict=True) if name.startswith("new")]
    assert all(environment["OMP_NUM_THREADS"] == "2" for environment in of_new)
    assert bench.compares[0][2].ignore_fingerprint[-1] == "environment.OMP_NUM_THREADS"


def test_it_is_judged_only_at_looks_and_stops_when_decided(home):
    first = home.ends("regressed")
    ((base, new, _),) = home.bench.compares
    assert (len(base.reps), base.interleaved, base.kind) == (3, True, "session")
    reps = [*base.reps.values(), *new.reps.values()]
    assert ({rep.job for rep in reps}, len({rep.order for rep in reps})) == ({"boot:1"}, 6)
    assert (first["verdict"], first["exit_code"], first["session"]["stopped"]) == ("regressed", 1, "decided")
    assert json.loads((home.folder / "compare.json").read_text()) == first
    assert home.ends() == first  # running again prints the result, and runs nothing
    assert home.bench.ran == home.bench.compares == []
    (home.folder / "compare.json").unlink()  # what is lost is judged again from the kept runs
    assert (home.ends("regressed")["verdict"], home.bench.ran) == ("regressed", [])


def test_the_last_look_ends_it_inconclusive(home):
    content = home.ends(at=None)
    session = content["session"]
    assert (content["exit_code"], session["stopped"], session["state"]) == (4, "looks", "finished")


def test_the_real_gate_finds_a_slow_arm_and_leaves_equal_ones_alone(home):
    content = home.call(FakeBench(SLOW))
    assert (content["verdict"], content["metrics"][0]["name"]) == ("regressed", STEP)
    home.folder = home.folder.parent / "same"
    assert home.call(FakeBench(EQUAL))["verdict"] == "unchanged"


def test_budget_ends_it_before_a_look_that_would_exceed_it_and_its_alpha_is_used(home):
    first = home.ends(at=None, budget_s=95.0)  # 2 discarded + 6 counted take 80 s, the next look 20 s more
    assert (len(home.bench.ran), first["session"]["stopped"], first["session"]["state"]) == (8, "budget", "finished")
    noted = fact(first, "session_planned")
    assert (noted["budget_s"], noted["used_s"], noted["runs"], noted["last"]) == (95.0, 80.0, 3, 4)
    assert home.ends(at=None, budget_s=500.0) == first
    assert home.bench.ran == []


def test_looks_are_planned_within_the_budget_and_the_last_has_the_alpha_that_is_left(home):
    # 20 s of warm-up, 20 s a pair: ten pairs
    plan = home.ends(at=None, policy=LONG, budget_s=225.0)["session"]["plan"]
    assert [reps for reps, _ in plan["looks"]] == [5, 8, 10]
    assert sum(alpha for _, alpha in plan["looks"]) == pytest.approx(LONG.alpha)
    assert plan["looks"][-1][1] > LONG.alpha / 2
    assert [len(base.reps) for base, _, _ in home.bench.compares] == [5, 8, 10]
    assert len(home.bench.ran) == 22
    (said,) = [line for line in home.said if "at the noise so far" in line]  # early: before the first check
    assert "% or more are found within 3 min 45 s (10 repetitions per side)" in said
    assert home.said.index(said) < home.said.index(next(line for line in home.said if "check after 5" in line[:14]))
    assert plan["finds"]["repetitions"] == 10
    assert 0.02 < plan["finds"]["change"] < 0.10


def test_a_pace_that_changes_moves_the_last_look_and_never_the_alpha_in_all(home):
    slower = {"seconds": lambda name: 10.0 if int(name[-3:]) < 7 else 25.0}
    session = home.ends(at=None, policy=LONG, bench=slower, budget_s=345.0)["session"]
    assert [reps for reps, _ in session["plan"]["looks"]][:2] == [5, 8]
    assert sum(alpha for _, alpha in session["plan"]["looks"]) == pytest.approx(LONG.alpha)
    assert session["stopped"] == "budget"
    assert session["seconds"] <= 345.0
    assert home.session()["looks"] == session["plan"]["looks"]


def test_a_budget_without_a_look_is_an_error_that_says_how_long_and_more_budget_goes_on(home):
    home.refused(MeasureError, "after 3 .* needs about 60 s more", budget_s=30.0)
    assert len(home.bench.ran) == 2
    assert home.ends(at=None, budget_s=500.0)["session"]["stopped"] == "looks"
    assert len(home.bench.ran) == 2 + 8  # warm-up again


def test_pairs_without_a_check_within_the_budget_are_no_answer(home):
    bench = FakeBench(seconds=lambda name: 10.0 if name.endswith(("0", "1")) else 100.0)
    assert home.refused(MeasureError, "the check after 3 ", bench, budget_s=130.0).exit_code == 3
    assert len([name for name in bench.ran if name.startswith("new")]) > 1
    assert bench.compares == []
    assert bench.time - 1000 <= 130.0 + 100.0  # it does not overrun the budget
    assert not (home.folder / "compare.json").exists()
    assert home.ends(budget_s=900.0)["session"]["stopped"] == "decided"


def test_a_session_that_cannot_decide_any_more_stops_early_unless_told_not_to(home):
    def hopeless(**wish):
        return home.call(FakeBench(compare=says("unchanged", hopeless=5)), LONG, **wish)

    content = hopeless()
    assert (content["session"]["stopped"], content["session"]["state"]) == ("hopeless", "open")
    assert (content["exit_code"], len(home.bench.ran)) == (4, 12)
    assert fact(content, "session_hopeless") == {"code": "session_hopeless", "runs": 5, "last": 20}
    assert (hopeless()["session"]["stopped"], home.bench.ran) == ("hopeless", [])
    assert hopeless(to_the_end=True)["session"]["stopped"] == "looks"
    assert len(home.bench.ran) == 2 + 30


def test_a_qualification_of_the_same_command_says_before_what_will_be_found(home):
    place = home.folder.parent / "pipeprof-qualify-1"
    place.mkdir()
    pool = {"seconds_per_repetition": 10.0, "spread": {STEP: 0.01}}
    for machine, told in ((home.machine, True), ({"cpu_model": "other"}, False)):
        home.said.clear()
        about = {"command": ["new"], "machine": machine, "pool": pool}
        (place / "qualify.json").write_text(json.dumps(about))
        home.ends(at=None, policy=LONG, budget_s=225.0, folder=home.folder.parent / f"t{told}")
        words = "by the qualification in `pipeprof-qualify-1`, slow-downs of about"
        assert any(words in line for line in home.said) == told


def test_new_session_is_told_in_the_result_and_in_the_history(home):
    home.ends("regressed")
    content = home.ends(new_session=True)
    assert len(home.bench.ran) == 8
    assert fact(content, "earlier_sessions")["earlier"] == [{"verdict": "regressed", "repetitions": 3}]
    assert (home.folder / "earlier-001" / "compare.json").is_file()
    (line,) = (home.folder / "history.jsonl").read_text().splitlines()
    assert json.loads(line)["verdict"] == "regressed"
    assert home.call()["session"]["earlier"][0]["moved_to"] == "earlier-001"


@pytest.mark.parametrize(
    ("name", "damage", "words"),
    [
        ("compare.json", lambda _text: "{", r"compare\.json"), ("compare.json", lambda _text: "[]", r"compare\.json"),
        ("history.jsonl", lambda _text: "{", r"damaged .*history\.jsonl"),
        ("session.json", lambda text: text[:50], r"damaged session .*session\.json"),
        ("session.json", lambda text: text.replace('"schema_version": 1', '"schema_version": 2', 1), "version 2"),
    ],
)  # fmt: skip
def test_damaged_and_newer_files_are_refused_by_name(home, name, damage, words):
    home.ends("regressed")
    home.ends(new_session=True)
    path = home.folder / name
    path.write_text(damage(path.read_text()))
    home.refused(RunError, words, new_session=name == "history.jsonl")
    if name == "compare.json":
        assert home.ends(new_session=True)["session"]["earlier"][-1]["verdict"] is None


@pytest.mark.parametrize("point", range(1, 12))  # ten files are moved, `session.json` last
def test_a_kill_while_a_session_is_replaced_hides_none_of_the_earlier_ones(home, monkeypatch, point):
    home.ends("regressed")
    moves, replace = [], Path.replace

    def dies(path, target):
        if "earlier-" in str(target):
            moves.append(path)
            if len(moves) == point:
                raise Killed
        moved = replace(path, target)
        if path.name == "session.json" and point == 11:
            raise Killed
        return moved

    monkeypatch.setattr(Path, "replace", dies)
    with pytest.raises(Killed):
        home.ends(new_session=True)
    monkeypatch.setattr(Path, "replace", replace)
    assert [old["verdict"] for old in home.ends(new_session=True)["session"]["earlier"]][:1] == ["regressed"]
    content = home.ends("improved", new_session=True)
    assert [old["verdict"] for old in content["session"]["earlier"]] == ["regressed", "unchanged"]


@pytest.mark.parametrize("point", range(1, 70))  # as many as an undisturbed session has calls
def test_after_a_kill_the_session_goes_on_where_it_was(home, point):
    try:
        home.call(FakeBench(SLOW, dies_at=point))
    except Killed:
        kept = [entry["name"] for entry in home.session()["repetitions"] if entry["state"] == "counted"]
    else:
        kept = None
    content = home.call(FakeBench(SLOW))
    entries = home.session()["repetitions"]
    counted = [entry["name"] for entry in entries if entry["state"] == "counted"]
    assert (content["verdict"], content["session"]["stopped"]) == ("regressed", "decided")
    assert not [entry for entry in entries if entry["state"] == "running"]
    one, other = ("n", "b") if content["session"]["first"] == "new" else ("b", "n")
    assert arms(counted) == (one + other + other + one + one + other)
    assert sorted(path.name for path in home.folder.glob("*-0*")) == sorted(entry["name"] for entry in entries)
    if kept is None:
        assert home.bench.ran == []
    else:
        assert not set(kept) & set(home.bench.ran)
        assert counted[: len(kept)] == kept


def test_it_waits_for_processes_that_a_kill_left_behind(home):
    home.killed(6)
    bench = FakeBench()
    bench.alive = [4711]
    home.refused(UsageError, "4711", bench)
    home.refused(UsageError, "4711", bench, new_session=True)
    assert (bench.ran, (home.folder / "earlier-001").exists()) == ([], False)


def test_words_and_variables_that_are_not_utf8_do_not_keep_a_session_from_going_on(home):
    odd = os.fsdecode(b"data-\xff")
    wish = {"new": ArmWish(command=("new", odd), env=(f"A={odd}",)), "folder": home.folder.with_name(odd)}
    home.killed(20, **wish)
    assert home.ends(**wish)["session"]["arms"]["new"]["command"] == ["new", r"data-\xff"]
    assert home.call(**wish)["verdict"] == "unchanged"


def test_another_machine_or_boot_may_not_go_on_but_may_read_a_finished_one(home):
    home.killed(20)
    home.job = "boot:2"
    home.refused(MeasureError, "another job")
    home.job = "boot:1"
    first = home.ends()
    home.job = "boot:2"
    assert home.call() == first
    home.folder = home.folder.with_name("t")
    home.killed(20)
    home.machine["cpu_model"] = "two"
    assert home.refused(MeasureError, "cpu_model").exit_code == 3
    assert fact(home.ends(new_session=True), "earlier_sessions")["earlier"][0]["verdict"] is None


def test_another_pair_is_refused_in_the_same_folder(home):
    home.ends()
    home.refused(UsageError, "the command of new has changed", new=ArmWish(command=("newer",)))
    home.refused(UsageError, "the policy has changed", policy=msgspec.structs.replace(POLICY, alpha=0.05))
    home.folder = home.folder.with_name("t")
    home.ends(new=ArmWish(command=("new", "--token", "one-long-word")))
    home.refused(UsageError, "a masked value", new=ArmWish(command=("new", "--token", "other-word")))


def test_pairs_have_folders_of_their_own_and_the_budget_is_no_part_of_a_pair(home):
    home.ends(folder=None)
    home.call(folder=None, budget_s=1.0)
    home.ends(folder=None, new=ArmWish(command=("newer",)))
    assert len(list(home.folder.parent.glob("pipeprof-ab-*"))) == 2
    home.folder.mkdir()  # nothing of the user's is written over
    (home.folder / ".gitignore").write_text("build/\n")
    home.refused(UsageError, "holds no session")
    assert (home.folder / ".gitignore").read_text() == "build/\n"


@pytest.mark.parametrize("make", [runs.make_folder, journal.make_session_folder])
@pytest.mark.parametrize("looks", ["exists", "iterdir"])
def test_a_folder_that_may_not_be_looked_into_is_told(tmp_path, monkeypatch, make, looks):
    def refused(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, looks, refused)
    with pytest.raises(UsageError, match=r"cannot write .*: Permission denied"):
        make(tmp_path)


def test_a_session_runs_once_at_a_time_and_a_file_system_without_locks_is_told(home, monkeypatch):
    def nested(reps, looks):
        home.refused(UsageError, "another pipeprof")
        return says("unchanged", 3)(reps, looks)

    def flock(_file, _how):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    assert home.call(FakeBench(compare=nested))["verdict"] == "unchanged"
    monkeypatch.setattr(journal.fcntl, "flock", flock)
    home.refused(UsageError, r"cannot lock .*: No locks available")


class Idle(FakeBench):
    def measure(self, path):
        raise MeasureError(f"no training step was seen in `{path.name}`")


@pytest.mark.parametrize(
    ("bench", "seed", "words"),  # with seed 0 `new` goes first
    [
        (FakeBench(fails=["new-000"]), 1, "`new` failed in `new-000`.* `no such layer`.*; that of `base` works\n"),
        (FakeBench(fails=["new-000"]), 0, "`new` failed in `new-000`.* `no such layer`.*; that of `base` works\n"),
        (Idle(fails=["new-000"]), 0, "`new` failed in `new-000`.*; that of `base` works, but no training step"),
        (FakeBench(fails=["new-000", "base-000"]), 0, "`new` failed in `new-000`.*; so does that of `base`"),
        (FakeBench(fails=["new-000", "base-000"]), 1, "the command of `base` failed in `base-000`"),
    ],
)
def test_a_failing_new_arm_is_told_from_a_failing_workload(home, bench, seed, words):
    assert home.refused(WorkloadError, words, bench, seed=seed).exit_code == 5


def test_a_failed_repetition_is_made_again_and_told(home):
    home.refused(WorkloadError, "new-002", FakeBench(fails=["new-002"]))
    content = home.ends()
    assert "new-002" not in content["session"]["runs"]["new"]
    (failure,) = fact(content, "repeated")["failures"]
    assert "new-002" in failure
    assert fact(content, "session_continued")["times"] == 1


def test_ctrl_c_leaves_a_session_that_goes_on(home):
    class Interrupted(FakeBench):
        def run(self, command, env, workdir, path, slow_down=None):
            if len(self.ran) == 5:
                raise KeyboardInterrupt
            super().run(command, env, workdir, path, slow_down)

    with pytest.raises(KeyboardInterrupt):
        home.call(Interrupted())
    assert "same command" in home.said[-1]
    assert home.ends()["session"]["runs"]["base"]
    assert len(home.bench.ran) == 2 + 3


class Versions(FakeBench):
    """The version of something is another one in each run, or in those of `new`."""

    def __init__(self, name, of_run):
        super().__init__(EQUAL)
        self.name, self.of_run = name, of_run

    def measure(self, path):
        found = super().measure(path)
        found.fingerprint[self.name] = self.of_run(path.name)
        return found


def test_other_versions_of_an_arms_own_software_are_part_of_the_comparison(home):
    content = home.call(Versions("mindspore", lambda run: run[:3]))
    assert content["verdict"] == "unchanged"
    assert [entry["name"] for entry in content["fingerprint"]["differences"]] == ["mindspore"]


def test_repetitions_of_one_arm_must_belong_together(home):
    home.refused(MeasureError, "together: `cpu_model` differs", Versions("cpu_model", str))
