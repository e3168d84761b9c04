"""`pipeprof.profile` on real MindSpore: what is recorded in which step, and what a callback is given."""

import json
import re

import pytest

pytestmark = [pytest.mark.mindspore]


@pytest.fixture(scope="module")
def profiled(pipeprof_in):
    """`profiled("scheduled")`: what that program of workloads/profile_api.py told, after it ended well."""
    session, known = pipeprof_in("profile_api"), {}

    def told(name):
        if name not in known:
            done = session.plain(session.script("profile_api.py", name, str(session.folder / name)), cwd=session.folder)
            assert done.returncode == 0, done.stderr
            assert "Traceback" not in done.stderr
            known[name] = truth(done.stdout)
        return known[name]

    return told


def truth(text):
    line = next(line for line in text.splitlines() if line.startswith("truth "))
    return json.loads(line.removeprefix("truth "))


def names(*numbers):
    return [f"ProfilerStep#{number}" for number in numbers]


def test_the_callback_comes_after_steps_18_and_27_and_never_again(profiled):
    facts = profiled("scheduled")
    assert [ready["step_num"] for ready in facts["ready"]] == [19, 28]
    assert (facts["numbers"], facts["left"]) == (list(range(32)), 32)


def test_a_cycle_holds_its_warmup_step_and_its_three_active_steps(profiled):
    first, second = profiled("scheduled")["ready"]
    assert first["named"] == names(15, 16, 17, 18)
    assert second["named"] == names(24, 25, 26, 27)
    assert first["kinds"] == second["kinds"] == ["warmup", "train", "train", "train"]


def test_operators_of_the_warmup_are_thrown_away_and_those_of_active_steps_complete(profiled):
    for ready in profiled("scheduled")["ready"]:
        assert list(ready["op_steps"]) == ["1", "2", "3"]
        assert len(set(ready["op_steps"].values())) == 1
        assert ready["op_steps"]["1"] > 10
        assert ready["user"] == {"one step": 3}


def test_operators_lie_in_the_time_of_the_active_steps_by_the_programs_own_clock(profiled):
    facts = profiled("scheduled")
    for ready, (first, last) in zip(facts["ready"], ((16, 18), (25, 27)), strict=True):
        begin, end = (time + ready["zero"] for time in ready["op_times"])
        assert facts["times"][first][0] <= begin < end <= facts["times"][last][1]


def test_each_cycle_is_a_complete_run_that_already_opens(profiled):
    facts = profiled("scheduled")
    assert [ready["state"] for ready in facts["ready"]] == ["complete", "complete"]
    assert [ready["path"] for ready in facts["ready"]] == facts["paths"]
    assert all(path.endswith(f"cycle-{number}") for number, path in enumerate(facts["paths"]))


def test_an_iterator_made_while_waiting_is_sampled_in_the_cycles_alone(profiled):
    for ready in profiled("scheduled")["ready"]:
        assert ready["queues"] == ["recorded"]
        assert ready["fetches"] == 4
        assert ready["samples"] > 0


def test_an_evaluation_between_epochs_belongs_to_no_step(profiled):
    facts = profiled("model")
    assert facts["gap"] > 0
    assert sum(facts["plain"]["op_steps"].values()) == 12 * facts["plain"]["op_steps"]["5"]


def test_a_callback_makes_steps_of_the_steps_of_model_train(profiled):
    facts = profiled("model")
    assert facts["plain"]["kinds"] == ["warmup"] + ["train"] * 11
    assert facts["epochs"] == [0] * 6 + [1] * 6
    assert set(facts["plain"]["op_steps"]) == {str(step) for step in range(12)}
    assert "CPU" in facts["memory"]


def test_a_callback_follows_the_schedule_and_lets_errors_of_the_training_through(profiled):
    facts = profiled("model")
    assert facts["error"] == "planted"
    assert facts["scheduled"]["named"] == names(1, 2, 3)
    assert list(facts["scheduled"]["op_steps"]) == ["1", "2"]
    assert facts["scheduled"]["state"] == "complete"


def test_every_call_of_a_decorated_function_is_a_run(profiled):
    facts = profiled("forms")
    assert [(path.rpartition("/")[2], steps) for path, steps in facts["called"]] == [("called", 3), ("called-2", 2)]


def test_a_profile_inside_another_one_marks_spans_and_says_so(profiled):
    facts = profiled("forms")
    spans = [tuple(span) for span in facts["outer"]]
    assert ("main", "profile", "profile") in spans
    assert ("main", "step", "ProfilerStep#0") in spans
    assert ("main", "user", "named") in spans
    assert facts["inner"] == [False, 0]
    assert "profile_nested" in facts["warned"]


def test_spans_of_other_threads_have_tracks_of_their_own(profiled):
    spans = [tuple(span) for span in profiled("forms")["outer"]]
    found = sorted(span for span in spans if span[1] == "user" and span[0] != "main")  # they run at the same time
    assert found == [(f"other-{number}", "user", f"thread {number}") for number in range(3)]


def test_spans_keep_the_stack_they_were_opened_in(profiled):
    assert "profile_api.py" in profiled("forms")["stacks"]


def test_operators_have_the_lines_that_launched_them_and_no_line_of_the_profiler(profiled):
    sites = profiled("forms")["sites"]
    assert "trainer.<locals>.<lambda>" in sites["Conv2D"]
    assert (
        sites["Conv2DBackpropFilter"].split("\n")[0] == sites["Conv2D"].split("\n")[0]
    )  # that of the forward operator
    assert not any("pipeprof/inprocess" in stack or "site-packages/mindspore" in stack for stack in sites.values())
    assert re.match(r"mindspore/nn/layer/conv.py\(\d+\): Conv2d.construct\n", sites["Conv2D"])


def test_operators_without_shapes_in_the_launch_list_have_those_of_their_call(profiled):
    assert profiled("forms")["shapes"]["ReLU"] == "[8, 4, 8, 8]"


def test_the_table_has_memory_and_is_sorted_by_it(profiled):
    text = profiled("forms")["by_memory"]
    assert "Self CPU Mem" in text.splitlines()[0]
    assert "not recorded" not in text
    assert profiled("forms")["memory_of_spans"]["named"] != 0  # of the operators in it
    assert profiled("forms")["memory_of_spans"]["thread 0"] == 0


def test_operators_of_an_inference_have_the_memory_of_their_outputs_and_without_it_nothing_is_recorded(profiled):
    with_memory, without = profiled("forms")["inferred"]
    outputs = {"Conv2D": 32 * (8 * 32 * 32 + 15 * 16 * 16) * 4, "MaxPool": 32 * (8 * 16 * 16 + 15 * 8 * 8) * 4}
    for kind, size in outputs.items():
        assert 2 * size <= with_memory[kind] < 2.2 * size
    assert with_memory["inference"] < outputs["MaxPool"]  # what it allocated it released
    assert set(without.values()) == {None}


def test_formats_of_one_recording_are_files_beside_it(profiled):
    written = profiled("forms")["formats"]
    events = json.loads(written["chrome_timeline.json"])["traceEvents"]
    assert {"0-Conv2d", "3-Dense"} <= {event["name"] for event in events}
    assert written["memory_flow.svg"].count("tag:") > 10


def test_cells_of_a_step_are_blocks_within_each_other(profiled):
    names_of_cells = [name for _, category, name in profiled("forms")["outer"] if category == "cell"]
    assert {"SequentialCell", "0-Conv2d", "1-ReLU", "2-Flatten", "3-Dense"} <= set(names_of_cells)
    assert profiled("scheduled")["ready"][0]["cells"] == [2, 3, 4]  # the active steps


def test_an_error_in_the_block_leaves_a_run_that_says_so_and_goes_on(profiled):
    facts = profiled("forms")
    assert facts["caught"] == "'planted'"
    state, reason, ops = facts["failed"]
    assert (state, reason) == ("failed", "KeyError in the profiled block: 'planted'")
    assert ops > 10


def test_the_block_of_a_generator_holds_the_steps_between_its_values(profiled):
    assert profiled("forms")["generated"] == [3, "complete", 3]


def test_samples_of_the_memory_pool_are_those_of_the_block_alone(profiled):
    (first, outside_first), (second, outside_second) = profiled("forms")["pools"]
    assert first == second > 10
    assert outside_first == outside_second == 0


def test_a_cycle_that_the_block_cuts_off_is_partial(profiled):
    assert profiled("forms")["cut"] == [
        ["complete", None],
        ["partial", "the block ended after 2 of 4 active steps of a cycle"],
    ]


def test_the_newest_run_is_exported_as_a_timeline(profiled):
    assert profiled("forms")["trace"] > 20


def test_under_collect_a_profile_only_marks_spans(pipeprof):
    recording = pipeprof.collect(pipeprof.script("profile_api.py", "inside", str(pipeprof.folder)))
    assert recording.done.returncode == 0, recording.done.stderr
    assert truth(recording.done.stdout) == {"paths": 0, "written": False}
    assert "writes no run of its own" in recording.done.stderr
    spans = [(row["category"], row["name"]) for row in recording.rows("span")]
    assert [name for category, name in spans if category == "step"] == names(0, 1, 2, 3, 4)
    assert spans.count(("user", "one step")) == 5
    assert spans.count(("profile", "profile")) == 1
    assert len(recording.training()) == 5
    assert "profile_nested" in recording.warned()
