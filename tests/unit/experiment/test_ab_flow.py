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
PAIR = {"base": ArmWish(command=("old",)), "new": ArmWish(command=("new",))}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A working directory, `call()` that runs a session in it, and what it said."""
    monkeypatch.chdir(tmp_path)
    machine = {"cpu_model": "one", "memory_bytes": 2**34}
    place = SimpleNamespace(folder=tmp_path / "s", said=[], machine=machine, job="boot:1")
    monkeypatch.setattr(fingerprint, "machine", lambda: dict(place.machine))
    monkeypatch.setattr(fingerprint, "job", lambda: place.job)

    def call(bench, policy=POLICY, **wish):
        kept = {**PAIR, "folder": place.folder, "seed": 1} | wish
        return run_ab(AbWish(**kept), policy, place.said.append, bench)

    place.call = call
    place.session = lambda: json.loads((place.folder / "session.json").read_text())
    return place


def arms(names):
    return "".join(name[0] for name in names)


def test_first_repetitions_are_discarded_then_both_sides_in_turn(home):
    bench = FakeBench(compare=says("unchanged", 4))
    content = home.call(bench)
    first, second = ("n", "b") if content["session"]["first"] == "new" else ("b", "n")
    assert arms(bench.ran) == first + second + (first + second + second + first) * 2
    assert content["session"]["discarded"] == sorted(content["session"]["order"][:2], key=bench.ran.index)
    assert content["session"]["runs"]["base"] == [f"base-{number:03d}" for number in (1, 2, 3, 4)]
    assert [entry["state"] for entry in home.session()["repetitions"]] == ["discarded"] * 2 + ["counted"] * 8


def test_a_repetition_whose_cpu_was_taken_is_made_again_at_once(home):
    bench = FakeBench(compare=says("unchanged", 4), steals={"base-002": 0.05, "new-003": 0.3, "new-001": 0.015})
    content = home.call(bench)
    assert content["session"]["disturbed"] == sorted(["base-002", "new-003"], key=bench.ran.index)
    assert bench.ran[bench.ran.index("base-002") + 1] == "base-003"
    assert "base-002" not in content["session"]["runs"]["base"]
    assert {len(names) for names in content["session"]["runs"].values()} == {4}
    assert any("set aside: 5.0 % of its CPU time" in line for line in home.said)
    assert (
        "2 runs made again: other virtual machines on the same host took up to 30 % of the CPU time" in content["notes"]
    )
    assert {entry["name"]: entry["stolen"] for entry in home.session()["repetitions"]}["new-003"] == pytest.approx(0.3)


def test_where_the_cpu_is_always_taken_the_session_goes_on(home):
    bench = FakeBench(compare=says("unchanged", 12), steals=lambda _name: 0.2)
    content = home.call(bench)
    assert content["session"]["disturbed"] == []  # that is what is usual here
    shares = iter([0.0] * 8 + [0.5] * 99)
    bench = FakeBench(compare=says("unchanged", 12), steals=lambda _name: next(shares))
    content = home.call(bench, folder=home.folder.parent / "later")
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
    firsts = set()
    for seed in range(8):
        bench = FakeBench(compare=says("unchanged", 3))
        content = home.call(bench, folder=home.folder.parent / f"s{seed}", seed=seed)
        assert content["session"]["seed"] == seed
        firsts.add(content["session"]["first"])
    assert firsts == {"base", "new"}


def test_both_arms_run_with_the_same_hash_seed(home, monkeypatch):
    monkeypatch.setenv("PYTHONHASHSEED", "random")
    bench = FakeBench(compare=says("unchanged", 3))
    home.call(bench, new=ArmWish(command=("new",), env=("OMP_NUM_THREADS=2",)))
    assert {environment["PYTHONHASHSEED"] for environment in bench.environments} == {"0"}
    of_new = [e for name, e in zip(bench.ran, bench.environments, strict=True) if name.startswith("new")]
    assert all(environment["OMP_NUM_THREADS"] == "2" for environment in of_new)
    assert bench.compares[0][2].ignore_fingerprint[-1] == "environment.OMP_NUM_THREADS"


def test_it_is_judged_only_at_looks_and_stops_when_decided(home):
    bench = FakeBench(compare=says("regressed", 3))
    content = home.call(bench)
    assert [len(base.reps) for base, _, _ in bench.compares] == [3]
    assert (content["verdict"], content["exit_code"], content["session"]["stopped"]) == ("regressed", 1, "decided")
    assert json.loads((home.folder / "compare.json").read_text()) == content


def test_the_last_look_ends_it_inconclusive(home):
    content = home.call(FakeBench(compare=says("unchanged")))
    assert (content["exit_code"], content["session"]["stopped"], content["session"]["state"]) == (
        4,
        "looks",
        "finished",
    )


def test_sides_hold_their_place_in_time_and_one_job(home):
    bench = FakeBench(compare=says("unchanged", 3))
    home.call(bench)
    base, new, _ = bench.compares[0]
    orders = sorted(rep.order for side in (base, new) for rep in side.reps.values())
    assert orders == [0, 1, 2] or orders == sorted(set(orders))
    assert {rep.job for side in (base, new) for rep in side.reps.values()} == {"boot:1"}
    assert base.interleaved
    assert base.kind == "session"


def test_the_real_gate_finds_a_slow_arm_and_leaves_equal_ones_alone(home):
    slow = {"new": [value * 1.2 for value in (1e6, 1.001e6, 0.999e6)], "old": (1e6, 1.001e6, 0.999e6)}
    content = home.call(FakeBench(slow))
    assert content["verdict"] == "regressed"
    assert content["metrics"][0]["name"] == STEP
    home.folder = home.folder.parent / "same"
    assert home.call(FakeBench({"old": slow["old"], "new": slow["old"]}))["verdict"] == "unchanged"


def test_budget_ends_it_before_a_look_that_would_exceed_it(home):
    bench = FakeBench(compare=says("unchanged"), seconds=10.0)
    content = home.call(bench, budget_s=95.0)  # 2 discarded + 6 counted take 80 s, the next look 20 s more
    assert len(bench.ran) == 8
    assert content["session"]["stopped"] == "budget"
    assert content["session"]["state"] == "finished"
    assert any("time budget of 95 s" in note for note in content["notes"])


LONG = Policy(looks=(5, 8, 12, 16, 20), metrics={STEP: Rule(unit="ns")})


def test_looks_are_planned_within_the_budget_and_the_last_has_the_alpha_that_is_left(home):
    bench = FakeBench(compare=says("unchanged"), seconds=10.0)
    plan = home.call(bench, LONG, budget_s=225.0)["session"]["plan"]  # 20 s of warm-up, 20 s a pair: ten pairs
    assert [reps for reps, _ in plan["looks"]] == [5, 8, 10]
    assert sum(alpha for _, alpha in plan["looks"]) == pytest.approx(LONG.alpha)
    assert plan["looks"][-1][1] > LONG.alpha / 2
    assert [len(base.reps) for base, _, _ in bench.compares] == [5, 8, 10]
    assert len(bench.ran) == 22


def test_a_pace_that_changes_moves_the_last_look_and_never_the_alpha_in_all(home):
    slower = FakeBench(compare=says("unchanged"), seconds=lambda name: 10.0 if int(name[-3:]) < 7 else 25.0)
    session = home.call(slower, LONG, budget_s=345.0)["session"]
    assert [reps for reps, _ in session["plan"]["looks"]][:2] == [5, 8]
    assert sum(alpha for _, alpha in session["plan"]["looks"]) == pytest.approx(LONG.alpha)
    assert session["stopped"] == "budget"
    assert session["seconds"] <= 345.0
    assert home.session()["looks"] == session["plan"]["looks"]


def test_a_session_that_used_its_alpha_is_finished_and_says_how_to_start_over(home):
    first = home.call(FakeBench(compare=says("unchanged")), budget_s=95.0)
    again = FakeBench(compare=says("unchanged"))
    assert home.call(again, budget_s=500.0) == first
    assert again.ran == []
    assert any("--new-session" in note for note in first["notes"])


def test_a_session_stopped_before_any_look_goes_on_with_more_budget(home):
    with pytest.raises(MeasureError):
        home.call(FakeBench(compare=says("unchanged")), budget_s=30.0)
    again = FakeBench(compare=says("unchanged"))
    assert home.call(again, budget_s=500.0)["session"]["stopped"] == "looks"
    assert len(again.ran) == 2 + 8  # warm-up again


def test_a_session_that_cannot_decide_any_more_stops_early_unless_told_not_to(home):
    bench = FakeBench(compare=says("unchanged", hopeless=5))
    content = home.call(bench, LONG)
    assert (content["session"]["stopped"], content["session"]["state"]) == ("hopeless", "open")
    assert content["exit_code"] == 4
    assert len(bench.ran) == 12
    assert any("most likely not tell" in note for note in content["notes"])
    again = FakeBench(compare=says("unchanged", hopeless=5))
    assert home.call(again, LONG)["session"]["stopped"] == "hopeless"
    assert again.ran == []
    assert home.call(again, LONG, to_the_end=True)["session"]["stopped"] == "looks"
    assert len(again.ran) == 2 + 30


def test_what_can_be_found_is_said_early_and_kept(home):
    bench = FakeBench(compare=says("unchanged"), seconds=10.0)
    content = home.call(bench, LONG, budget_s=225.0)
    (said,) = [line for line in home.said if "at the noise so far" in line]
    assert "% or more are found within 3 min 45 s (10 repetitions per side)" in said
    assert home.said.index(said) < home.said.index(next(line for line in home.said if "check after 5" in line[:14]))
    finds = content["session"]["plan"]["finds"]
    assert finds["repetitions"] == 10
    assert 0.02 < finds["change"] < 0.10


def test_a_qualification_of_the_same_command_says_before_what_will_be_found(home):
    place = home.folder.parent / "pipeprof-qualify-1"
    place.mkdir()
    about = {
        "command": ["new"],
        "machine": home.machine,
        "pool": {"seconds_per_repetition": 10.0, "spread": {STEP: 0.01}},
    }
    (place / "qualify.json").write_text(json.dumps(about))
    home.call(FakeBench(compare=says("unchanged")), LONG, budget_s=225.0)
    assert any("by the qualification in `pipeprof-qualify-1`, slow-downs of about" in line for line in home.said)
    home.said.clear()
    (place / "qualify.json").write_text(json.dumps(about | {"machine": {"cpu_model": "other"}}))
    home.call(FakeBench(compare=says("unchanged")), LONG, budget_s=225.0, folder=home.folder.parent / "t")
    assert not any("by the qualification" in line for line in home.said)


def test_a_budget_without_a_look_is_an_error_that_says_how_long(home):
    bench = FakeBench(compare=says("unchanged"), seconds=10.0)
    with pytest.raises(MeasureError, match="after 3 repetitions per side needs about 60 s more"):
        home.call(bench, budget_s=30.0)
    assert len(bench.ran) == 2


def test_pairs_without_a_check_within_the_budget_are_no_answer(home):
    bench = FakeBench(compare=says("unchanged"), seconds=lambda name: 10.0 if name.endswith(("0", "1")) else 100.0)
    with pytest.raises(MeasureError, match="the check after 3 repetitions per side needs about") as caught:
        home.call(bench, budget_s=130.0)
    assert caught.value.exit_code == 3
    assert len([name for name in bench.ran if name.startswith("new")]) > 1
    assert bench.compares == []
    assert not (home.folder / "compare.json").exists()
    again = FakeBench(compare=says("unchanged", 3))
    assert home.call(again, budget_s=900.0)["session"]["stopped"] == "decided"


def test_repetitions_that_become_slower_do_not_overrun_the_budget(home):
    bench = FakeBench(compare=says("unchanged"), seconds=lambda name: 10.0 if name.endswith(("0", "1")) else 40.0)
    with pytest.raises(MeasureError, match="of the time budget of 100 s"):
        home.call(bench, budget_s=100.0)
    assert bench.time - 1000 <= 100.0 + 40.0


def test_progress_tells_pace_and_expected_end(home):
    home.call(FakeBench(compare=says("unchanged", 3)))
    lines = [line for line in home.said if line.startswith(("base-", "new-"))]
    assert lines[0].endswith("discarded (warm-up)")
    assert "; 1/6 runs, first check after 3 per side, at about T+" in lines[2]


def test_running_again_prints_the_result_and_runs_nothing(home):
    first = home.call(FakeBench(compare=says("regressed", 3)))
    again = FakeBench(compare=says("unchanged", 3))
    assert home.call(again) == first
    assert again.ran == again.compares == []


def test_a_lost_result_is_judged_again_from_the_kept_runs(home):
    first = home.call(FakeBench(compare=says("regressed", 3)))
    (home.folder / "compare.json").unlink()
    again = FakeBench(compare=says("regressed", 3))
    assert home.call(again)["verdict"] == first["verdict"]
    assert again.ran == []


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_damaged_result_is_refused_by_name(home, text):
    home.call(FakeBench(compare=says("regressed", 3)))
    (home.folder / "compare.json").write_text(text)
    with pytest.raises(RunError, match=r"compare\.json"):
        home.call(FakeBench())
    content = home.call(FakeBench(compare=says("unchanged", 3)), new_session=True)
    assert content["session"]["earlier"][0]["verdict"] is None


def test_new_session_is_told_in_the_result_and_in_the_history(home):
    home.call(FakeBench(compare=says("regressed", 3)))
    bench = FakeBench(compare=says("unchanged", 3))
    content = home.call(bench, new_session=True)
    assert len(bench.ran) == 8
    assert any("session 2 of this comparison" in note and "regressed after 3" in note for note in content["notes"])
    assert (home.folder / "earlier-001" / "compare.json").is_file()
    (line,) = (home.folder / "history.jsonl").read_text().splitlines()
    assert json.loads(line)["verdict"] == "regressed"
    assert home.call(FakeBench())["session"]["earlier"][0]["moved_to"] == "earlier-001"


@pytest.mark.parametrize("point", range(1, 12))  # ten files are moved, `session.json` last
def test_a_kill_while_a_session_is_replaced_hides_none_of_the_earlier_ones(home, monkeypatch, point):
    home.call(FakeBench(compare=says("regressed", 3)))
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
        home.call(FakeBench(compare=says("unchanged", 3)), new_session=True)
    monkeypatch.setattr(Path, "replace", replace)
    content = home.call(FakeBench(compare=says("unchanged", 3)), new_session=True)
    assert [old["verdict"] for old in content["session"]["earlier"]][:1] == ["regressed"]
    content = home.call(FakeBench(compare=says("improved", 3)), new_session=True)
    assert [old["verdict"] for old in content["session"]["earlier"]] == ["regressed", "unchanged"]


def test_a_damaged_history_is_refused_by_name(home):
    home.call(FakeBench(compare=says("regressed", 3)))
    home.call(FakeBench(compare=says("unchanged", 3)), new_session=True)
    (home.folder / "history.jsonl").write_text("{")
    with pytest.raises(RunError, match=r"damaged .*history\.jsonl"):
        home.call(FakeBench(), new_session=True)


def kill_points():
    """As many as an undisturbed session has calls."""
    return range(1, 70)


@pytest.mark.parametrize("point", kill_points())
def test_after_a_kill_the_session_goes_on_where_it_was(home, point):
    steps = {"old": (1e6, 1.001e6, 0.999e6), "new": (1.2e6, 1.201e6, 1.199e6)}
    dying = FakeBench(steps, dies_at=point)
    try:
        home.call(dying)
    except Killed:
        kept = [entry["name"] for entry in home.session()["repetitions"] if entry["state"] == "counted"]
    else:
        kept = None
    bench = FakeBench(steps)
    content = home.call(bench)
    entries = home.session()["repetitions"]
    counted = [entry["name"] for entry in entries if entry["state"] == "counted"]
    assert content["verdict"] == "regressed"
    assert content["session"]["stopped"] == "decided"
    assert not [entry for entry in entries if entry["state"] == "running"]
    one, other = ("n", "b") if content["session"]["first"] == "new" else ("b", "n")
    assert arms(counted) == (one + other + other + one + one + other)
    assert sorted(path.name for path in home.folder.glob("*-0*")) == sorted(entry["name"] for entry in entries)
    if kept is None:
        assert bench.ran == []
    else:
        assert not set(kept) & set(bench.ran)
        assert counted[: len(kept)] == kept


def test_a_kill_while_the_session_file_is_written_leaves_the_one_before(home, monkeypatch):
    original, writes = journal.write_json, []
    for point in range(2, 14):
        home.folder = home.folder.parent / f"s{point}"
        writes.clear()

        def dies(path, content, point=point):
            writes.append(path)
            if len(writes) == point:
                raise Killed
            original(path, content)

        monkeypatch.setattr(journal, "write_json", dies)
        with pytest.raises(Killed):
            home.call(FakeBench(compare=says("unchanged", 3)))
        monkeypatch.setattr(journal, "write_json", original)
        content = home.call(FakeBench(compare=says("unchanged", 3)))
        assert len(content["session"]["runs"]["base"]) == len(content["session"]["runs"]["new"]) == 3
        assert not [entry for entry in home.session()["repetitions"] if entry["state"] == "running"]


def test_it_waits_for_processes_that_a_kill_left_behind(home):
    with pytest.raises(Killed):
        home.call(FakeBench(dies_at=6))
    bench = FakeBench()
    bench.alive = [4711]
    with pytest.raises(UsageError, match="4711"):
        home.call(bench)
    with pytest.raises(UsageError, match="4711"):
        home.call(bench, new_session=True)
    assert (bench.ran, (home.folder / "earlier-001").exists()) == ([], False)


def test_words_and_variables_that_are_not_utf8_do_not_keep_a_session_from_going_on(home):
    odd = os.fsdecode(b"data-\xff")
    wish = {"new": ArmWish(command=("new", odd), env=(f"A={odd}",)), "folder": home.folder.with_name(odd)}
    with pytest.raises(Killed):
        home.call(FakeBench(dies_at=20), **wish)
    content = home.call(FakeBench(compare=says("unchanged", 3)), **wish)
    assert content["session"]["arms"]["new"]["command"] == ["new", r"data-\xff"]
    assert home.call(FakeBench(), **wish)["verdict"] == "unchanged"


def test_another_machine_may_not_go_on(home):
    with pytest.raises(Killed):
        home.call(FakeBench(dies_at=20))
    home.machine["cpu_model"] = "two"
    with pytest.raises(MeasureError, match="cpu_model") as caught:
        home.call(FakeBench())
    assert caught.value.exit_code == 3
    content = home.call(FakeBench(compare=says("unchanged", 3)), new_session=True)
    assert any("undecided after" in note for note in content["notes"])


def test_another_boot_may_not_go_on_but_may_read_a_finished_one(home):
    with pytest.raises(Killed):
        home.call(FakeBench(dies_at=20))
    home.job = "boot:2"
    with pytest.raises(MeasureError, match="another job"):
        home.call(FakeBench())
    home.job = "boot:1"
    first = home.call(FakeBench(compare=says("unchanged", 3)))
    home.job = "boot:2"
    assert home.call(FakeBench()) == first


def test_another_pair_is_refused_in_the_same_folder(home):
    home.call(FakeBench(compare=says("unchanged", 3)))
    with pytest.raises(UsageError, match="the command of new has changed"):
        home.call(FakeBench(), new=ArmWish(command=("newer",)))
    with pytest.raises(UsageError, match="the policy has changed"):
        home.call(FakeBench(), policy=msgspec.structs.replace(POLICY, alpha=0.05))
    secret = ArmWish(command=("new", "--token", "one-long-word"))
    home.call(FakeBench(compare=says("unchanged", 3)), new=secret, folder=home.folder.with_name("t"))
    with pytest.raises(UsageError, match="a masked value"):
        home.call(FakeBench(), new=ArmWish(command=("new", "--token", "other-word")), folder=home.folder.with_name("t"))


def test_pairs_have_folders_of_their_own_and_the_budget_is_no_part_of_a_pair(home):
    run = {"folder": None}
    home.call(FakeBench(compare=says("unchanged", 3)), **run)
    home.call(FakeBench(), budget_s=1.0, **run)
    home.call(FakeBench(compare=says("unchanged", 3)), new=ArmWish(command=("newer",)), **run)
    assert len(list(home.folder.parent.glob("pipeprof-ab-*"))) == 2


def test_nothing_of_the_users_is_written_over(home):
    home.folder.mkdir()
    (home.folder / ".gitignore").write_text("build/\n")
    with pytest.raises(UsageError, match="holds no session"):
        home.call(FakeBench())
    assert (home.folder / ".gitignore").read_text() == "build/\n"


@pytest.mark.parametrize("make", [runs.make_folder, journal.make_session_folder])
@pytest.mark.parametrize("looks", ["exists", "iterdir"])
def test_a_folder_that_may_not_be_looked_into_is_told(tmp_path, monkeypatch, make, looks):
    def refused(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, looks, refused)
    with pytest.raises(UsageError, match=r"cannot write .*: Permission denied"):
        make(tmp_path)


def test_a_session_runs_once_at_a_time(home):
    def nested(_reps, _policy):
        with pytest.raises(UsageError, match="another pipeprof"):
            home.call(FakeBench())
        return says("unchanged", 3)(_reps, _policy)

    home.call(FakeBench(compare=nested))


def test_a_file_system_without_locks_is_told(home, monkeypatch):
    def flock(_file, _how):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(journal.fcntl, "flock", flock)
    with pytest.raises(UsageError, match=r"cannot lock .*: No locks available"):
        home.call(FakeBench())


def test_damaged_and_newer_sessions_are_refused_by_name(home):
    home.call(FakeBench(compare=says("unchanged", 3)))
    path = home.folder / "session.json"
    whole = path.read_text()
    path.write_text(whole[:50])
    with pytest.raises(RunError, match=r"damaged session .*session\.json"):
        home.call(FakeBench())
    path.write_text(whole.replace('"schema_version": 1', '"schema_version": 2', 1))
    with pytest.raises(RunError, match="schema_version 2"):
        home.call(FakeBench())


def test_a_failing_new_arm_is_told_from_a_failing_workload(home):
    with pytest.raises(WorkloadError) as caught:
        home.call(FakeBench(fails=["new-000"]))
    assert caught.value.exit_code == 5
    assert "the command of `new` failed in `new-000`" in caught.value.message
    assert "no such layer" in caught.value.message
    assert "that of `base` works" in caught.value.message


def test_when_both_arms_fail_it_says_so(home):
    bench = FakeBench(fails=["new-000", "base-000"])
    with pytest.raises(WorkloadError) as caught:
        home.call(bench)
    if bench.ran[0] == "new-000":
        assert "so does that of `base`" in caught.value.message
    else:
        assert "the command of `base` failed" in caught.value.message


def test_a_failing_new_arm_is_told_where_that_of_base_trains_nothing(home):
    class Idle(FakeBench):
        def measure(self, path):
            raise MeasureError(f"no training step was seen in `{path.name}`")

    with pytest.raises(WorkloadError, match=r"`new` failed in `new-000`.*; that of `base` works, but no training step"):
        home.call(Idle(fails=["new-000"]), seed=0)  # `new` goes first


def test_a_failed_repetition_is_made_again_and_told(home):
    with pytest.raises(WorkloadError):
        home.call(FakeBench(fails=["new-002"]))
    content = home.call(FakeBench(compare=says("unchanged", 3)))
    assert "new-002" not in content["session"]["runs"]["new"]
    assert any("repeated: 1 failed run: " in note and "new-002" in note for note in content["notes"])
    assert any("continued 1 time" in note for note in content["notes"])


def test_ctrl_c_leaves_a_session_that_goes_on(home):
    class Interrupted(FakeBench):
        def run(self, command, env, workdir, path, slow_down=None):
            if len(self.ran) == 5:
                raise KeyboardInterrupt
            super().run(command, env, workdir, path, slow_down)

    with pytest.raises(KeyboardInterrupt):
        home.call(Interrupted())
    assert "run the same command again" in home.said[-1]
    bench = FakeBench(compare=says("unchanged", 3))
    assert home.call(bench)["session"]["runs"]["base"]
    assert len(bench.ran) == 2 + 3


def test_other_versions_of_an_arms_own_software_are_part_of_the_comparison(home):
    class Versions(FakeBench):
        def measure(self, path):
            found = super().measure(path)
            found.fingerprint["mindspore"] = "2.10" if path.name.startswith("new") else "2.9"
            return found

    content = home.call(Versions({"old": (1e6, 1.001e6, 0.999e6), "new": (1e6, 1.001e6, 0.999e6)}))
    assert content["verdict"] == "unchanged"
    assert [entry["name"] for entry in content["fingerprint"]["differences"]] == ["mindspore"]


def test_repetitions_of_one_arm_must_belong_together(home):
    class Moving(FakeBench):
        def measure(self, path):
            found = super().measure(path)
            found.fingerprint["cpu_model"] = path.name
            return found

    with pytest.raises(MeasureError, match="cannot be put together: `cpu_model` differs"):
        home.call(Moving())
