"""Uses of `profile` and `record_function` that are no plain block: decorators of all kinds, and what goes wrong."""

import asyncio
import os
import subprocess
import sys
import threading
import traceback

import pytest

import pipeprof
from pipeprof.errors import RunError, UsageError
from pipeprof.inprocess import averages as user_spans
from pipeprof.inprocess import place, recording
from pipeprof.inprocess.averages import Average, KeyAverages, key_averages, type_of
from pipeprof.record.run import load

ONE = {"activities": ["ops"]}  # no thread that samples the machine: faster


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(place._STATE, "told", set())
    yield tmp_path
    assert place._STATE["owner"] is None


def spans(path):
    with pipeprof.open(path) as run:
        return [name for name, kind in zip(run.span.name, run.span.category, strict=True) if kind == "user"]


def steps(profile, count):
    with profile:
        for _ in range(count):
            profile.step()


def test_the_block_of_a_generator_lasts_until_it_ends_and_one_that_is_closed_early_has_not_failed(folder):
    @pipeprof.profile(out="run", **ONE)
    @pipeprof.record_function("numbers")
    def numbers():
        for number in range(3):
            with pipeprof.record_function(f"number {number}"):
                got = yield number
        return got

    items = numbers()
    assert place._STATE["owner"] is None
    assert next(items) == 0
    assert place._STATE["owner"] is numbers.profile
    assert items.send("a") == 1
    assert list(items) == [2]
    assert spans("run") == ["number 0", "number 1", "number 2", "numbers"]
    items = numbers()
    next(items)
    items.close()
    assert (load("run-2").manifest.state, load("run-2").manifest.reason) == ("complete", None)


def test_the_block_of_a_coroutine_or_an_async_generator_lasts_until_it_ends(folder):
    @pipeprof.record_function("waited")
    async def wait():
        await asyncio.sleep(0.02)

    @pipeprof.profile(out="run", **ONE)
    async def work(result):
        await asyncio.gather(wait(), wait())
        return result

    @pipeprof.profile(out="others", **ONE)
    async def numbers():
        for number in range(2):
            await wait()
            yield number

    async def take():
        return [number async for number in numbers()]

    assert asyncio.run(work(7)) == 7
    assert asyncio.run(take()) == [0, 1]
    for path in ("run", "others"):
        assert spans(path) == ["waited", "waited"]
        with pipeprof.open(path) as run:
            assert run.span.dur_ns.min() >= 20_000_000


def test_any_callable_can_be_decorated_and_with_flops_the_shapes_of_all_calls_are_recorded(folder):
    with pipeprof.profile(out="run", with_stack=True, with_flops=True, **ONE):
        assert pipeprof.record_function("built in")(len)([1]) == 1
        assert pipeprof.record_function("lambda")(lambda: 3)() == 3
        with pytest.raises(UsageError, match="only a function or class can be decorated, found int"):
            pipeprof.record_function("number")(3)
    assert spans("run") == ["built in", "lambda"]
    assert load("run").manifest.options["record_shapes"]


def test_a_decorator_without_brackets_is_refused_with_a_hint(folder):
    with pytest.raises(UsageError, match="settings by name") as refused:
        pipeprof.profile(len)
    assert refused.value.hint == "as a decorator, with brackets: @pipeprof.profile()"
    if sys.version_info >= (3, 11):  # from there on tracebacks have notes
        assert "hint: as a decorator, with brackets" in "".join(traceback.format_exception(refused.value))


def test_cycles_that_are_there_are_found_before_the_block_begins(folder):
    plan = pipeprof.schedule(wait=2, active=1, repeat=3)
    steps(pipeprof.profile(out="runs", schedule=plan, **ONE), 9)
    with pytest.raises(UsageError, match=r"cycle-0` exists"), pipeprof.profile(out="runs", schedule=plan, **ONE):
        pytest.fail("the block must not begin")
    shorter = pipeprof.schedule(wait=2, active=1, repeat=1)
    steps(pipeprof.profile(out="runs", schedule=shorter, force=True, **ONE), 9)
    assert sorted(path.name for path in folder.joinpath("runs").iterdir()) == ["cycle-0"]


def test_a_folder_that_is_no_run_is_never_replaced(folder):
    folder.joinpath("runs", "cycle-0").mkdir(parents=True)
    folder.joinpath("runs", "cycle-0", "notes.txt").write_text("mine")
    plan = pipeprof.schedule(wait=2, active=1)
    with pytest.raises(UsageError, match="is not a pipeprof run"):
        steps(pipeprof.profile(out="runs", schedule=plan, force=True, **ONE), 1)
    assert folder.joinpath("runs", "cycle-0", "notes.txt").read_text() == "mine"
    folder.joinpath("file").write_text("x")
    with pytest.raises(UsageError, match="is not a folder that can be written"):
        steps(pipeprof.profile(out="file/runs", schedule=plan, **ONE), 1)


def test_a_cycle_that_cannot_be_recorded_does_not_end_the_training(folder, monkeypatch, capfd):
    def full(*_args, **_more):
        raise OSError(28, "No space left on device")

    profile = pipeprof.profile(out="runs", schedule=pipeprof.schedule(wait=1, active=1), **ONE)
    with profile:
        for number in range(8):
            if number == 3:
                monkeypatch.setattr(recording, "new_place", full)
            profile.step()
    assert profile.step_num == 8
    assert [path.name for path in profile.paths] == ["cycle-0", "cycle-1"]
    told = capfd.readouterr().err
    assert told.count("cannot record cycle 2: [Errno 28] No space left on device; the program goes on") == 1


def test_tables_that_cannot_be_made_do_not_end_the_training(folder, monkeypatch, capfd):
    called, errors = [], [RunError("the disk is full"), ImportError("pyarrow requires NumPy 2.0 or newer")]

    def fails(*_args):
        raise errors[0]

    with monkeypatch.context() as patched:
        patched.setattr("pipeprof.read.spool.finish.convert_rep", fails)
        steps(pipeprof.profile(out="run", on_trace_ready=called.append, **ONE), 1)
        assert "the disk is full; the program goes on, `pipeprof report" in capfd.readouterr().err
        del errors[0]  # Arrow is loaded behind the block, and may refuse the NumPy that the training needs
        steps(pipeprof.profile(out="other", **ONE), 1)
        assert "pipeprof: pyarrow requires NumPy 2.0 or newer; the program goes on" in capfd.readouterr().err
    assert called == []
    assert load("run").manifest.reason == "its tables could not be written: the disk is full"
    with pipeprof.open("run") as run:
        assert run.manifest.state == "complete"


def test_a_schedule_that_never_got_to_a_cycle_is_said(folder, capfd):
    profile = pipeprof.profile(out="runs", schedule=pipeprof.schedule(skip_first=3, wait=1, warmup=1, active=1))
    steps(profile, 0)
    why = "the block ended in step 0, the first active step is 5; call step() after every step"
    assert f"pipeprof: nothing was recorded: {why}\n" in capfd.readouterr().err
    with pytest.raises(UsageError, match="nothing has been recorded: the block ended in step 0"):
        profile.key_averages()


def test_results_asked_for_too_early_say_when_there_will_be_some(folder):
    profile = pipeprof.profile(out="run", **ONE)
    with pytest.raises(UsageError, match="enter `with profile:` first"):
        profile.export_chrome_trace("t.json")
    with profile, pytest.raises(UsageError, match="the block is not over"):
        profile.export_chrome_trace("t.json")


def test_a_program_that_exits_with_0_in_the_block_has_not_failed(folder):
    text = "import sys, pipeprof\nwith pipeprof.profile(out='run'):\n    sys.exit(int(sys.argv[1]))\n"
    for status, state in ((0, "complete"), (3, "failed")):
        subprocess.run([sys.executable, "-c", text.replace("'run'", f"'run{status}'"), str(status)], check=False)
        assert load(f"run{status}").manifest.state == state


def test_an_error_of_the_callback_is_the_users_and_later_cycles_go_on(folder):
    given = []

    def ready(profile):
        given.append(profile.path.name)
        if len(given) == 1:
            raise LookupError("callback")

    profile = pipeprof.profile(
        out="runs", schedule=pipeprof.schedule(wait=1, active=1, repeat=3), on_trace_ready=ready, **ONE
    )
    errors = 0
    with profile:
        for _ in range(8):
            try:
                profile.step()
            except LookupError:
                errors += 1
    assert errors == 1
    assert given == ["cycle-0", "cycle-1", "cycle-2"]


@pytest.mark.parametrize("column", ["self_cuda_time_total", "self_npu_time_total", "self_cpu_memory_usage", "flops"])
def test_a_column_that_is_not_recorded_orders_nothing_and_says_so_apart_from_other_notes(column):
    averages = KeyAverages([Average("short", 5, 1, 1), Average("long", 1, 9, 9)])
    text = averages.table(sort_by=column)
    assert text.index("long") < text.index("short")
    assert f"{column} is not recorded here: sorted by Self CPU\n" in text
    with pytest.raises(UsageError, match="unknown column `colour`"):
        averages.table(sort_by="colour")
    noted = KeyAverages([Average("one", 1, 1, 1)], note="nothing is recorded here")
    assert f"nothing is recorded here; {column} is not recorded here" in noted.table(column)


def test_memory_and_operations_order_the_rows_where_they_were_recorded_and_what_is_unknown_is_last():
    rows = [Average("span", 1, 9, 9), Average("small", 1, 8, 8, memory_bytes=1, self_memory_bytes=1)]
    rows.append(Average("large", 1, 1, 1, memory_bytes=2048, self_memory_bytes=-1))
    lines = KeyAverages(rows).table(sort_by="cpu_memory_usage").splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["large", "small", "span"]
    assert ("2.00 KB" in lines[2], "-1 B" in lines[2], "N/A" in lines[4]) == (True, True, True)
    rows = [Average("span", 1, 9, 9, "user"), Average("Mul", 1, 8, 8, computation=2e3), Average("Sub", 1, 1, 1)]
    rows.append(Average("MatMul", 1, 7, 7, computation=4e6))
    lines = KeyAverages(rows, flops=True).table(sort_by="total_flops").splitlines()
    assert "Total FLOPs" in lines[0]
    assert [line.split()[0] for line in lines[2:6]] == ["MatMul", "Mul", "span", "Sub"]
    assert [line.split()[-2:] for line in lines[2:4]] == [["4.00", "MFLO"], ["2.00", "KFLO"]]
    assert "Total FLOPs" not in KeyAverages(rows).table()
    text = KeyAverages([Average("Mul", 1, 1, 1, stack="a.py(1): f\nb.py(2): g")], stacks=True).table()
    first, second = (line for line in text.splitlines() if ".py(" in line)
    assert first.index("a.py") == second.index("b.py")  # frames have lines of their own


def test_frames_of_the_profiler_itself_are_in_no_stack(folder):
    @pipeprof.record_function("inside")
    def inside():
        return 1

    with pipeprof.profile(out="run", with_stack=True, **ONE) as profile:
        inside()
    stacks = [row.stack for row in profile.key_averages(group_by_stack_n=5)]
    assert len(stacks) == 1
    assert "test_frames_of_the_profiler_itself" in stacks[0]
    assert "decorate.py" not in stacks[0]


def test_own_times_of_spans_that_overlap_in_part_are_their_own():
    rows = [
        {"start_ns": start, "dur_ns": dur, "track": "main", "name": name}
        for name, start, dur in (("a", 0, 100), ("b", 50, 100), ("in a", 10, 20), ("in b", 110, 10), ("after", 200, 5))
    ]
    own = {row["name"]: time for row, time in user_spans._own_times(rows, [(12, 3), (130, 4)])}
    assert own == {"a": 80, "b": 86, "in a": 17, "in b": 10, "after": 5}


def test_operations_are_those_of_all_executions(make_run):
    tables = {
        "op": [{"op_id": 0, "start_ns": at, "dur_ns": 5, "self_ns": 5} for at in (0, 9)],
        "op_info": [{"op_id": 0, "name": "MatMul#1", "type": "MatMul", "flops": 1000}],
    }
    (row,) = key_averages(make_run(tables, state="complete").path)
    assert (row.name, row.computation) == ("MatMul", 2000)


def test_calls_that_begin_at_once_share_a_block(folder, monkeypatch):
    inside, over, others = threading.Event(), threading.Event(), []

    @pipeprof.profile(out="run", **ONE)
    def work():
        inside.set()
        if threading.current_thread() in others:
            over.wait(10)

    def getpid(real=os.getpid):
        """Where a call looks whether there is a block, another one begins."""
        if not others:
            others.append(threading.Thread(target=work))
            others[0].start()
            inside.wait(0.2)  # not when the other one waits for this one
        return real()

    monkeypatch.setattr(os, "getpid", getpid)
    try:
        work()
    finally:
        over.set()
        others[0].join()
    assert work.profile.paths


@pytest.mark.parametrize(("name", "kind"), [
    ("Default/BatchNormGrad-op0", "BatchNormGrad"), ("Default/BatchNormGrad-op0#2", "BatchNormGrad"),
    ("Conv2D#12", "Conv2D"), ("Gradients/Default/a-A/Mul-op3", "Mul"),
])  # fmt: skip
def test_operators_of_one_name_are_of_one_type(name, kind):
    assert type_of(name) == kind
