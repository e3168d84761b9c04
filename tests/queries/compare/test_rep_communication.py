"""Exposed communication per repetition: the mean over ranks, from operators, else as the profiler says."""

from table_rows import phased_step

GIVE = "rep ranks steps exposed_ns tail_ns"


def recorded(rank, start, dur):
    """One collective of a rank, and an operator until 60."""
    return {
        "collective": [{"step": 0, "rank": rank, "start_ns": start, "dur_ns": dur}],
        "op": [{"op_id": 0, "step": 0, "rank": rank, "start_ns": 20, "dur_ns": 40, "track": "0"}],
        "op_info": [{"op_id": 0, "rank": rank, "phase": "forward"}],
    }


def merged(*parts):
    return {name: [row for part in parts for row in part.get(name, [])] for name in ("collective", "op", "op_info")}


def test_each_rank_counts_once_whatever_steps_it_has(ask):
    ranks = merged(recorded(0, 50, 40), recorded(1, 50, 20))
    more = {"step": 1, "start_ns": 20, "dur_ns": 10, "op_id": 0, "track": "0"}
    ranks["op"].append(more)
    tables = {"step": [phased_step(), phased_step(1), phased_step(rank=1)], **ranks}
    # rank 0: 30 of which 20 behind the backward pass, and a step without any; rank 1: 10
    assert ask("compare/rep_communication", tables, give=GIVE) == [(0, 2, 3, 12.5, 5.0)]


def test_a_tail_is_known_only_behind_a_known_backward_pass(ask):
    tables = {"step": [phased_step(bp=None)], **recorded(0, 50, 40)}
    assert ask("compare/rep_communication", tables, give=GIVE) == [(0, 1, 1, 30.0, None)]


def test_operators_are_asked_before_the_profiler_s_own_division(ask):
    split = [
        {"rank": rank, "source": "step_trace_time", "source_step": 1, "computing_ns": 50, "exposed_ns": exposed}
        for rank, exposed in ((0, 7), (1, 9))
    ]
    assert ask("compare/rep_communication", {"step_split": split}, give=GIVE) == [(0, 2, 2, 8.0, None)]
    tables = {"step": [phased_step()], "step_split": split, **recorded(0, 50, 40)}
    assert ask("compare/rep_communication", tables, give=GIVE) == [(0, 1, 1, 30.0, 20.0)]


def test_a_training_on_its_own_has_none(ask):
    tables = {"step": [phased_step()], "op": [{"op_id": 0, "step": 0, "start_ns": 20, "dur_ns": 40, "track": "0"}]}
    assert ask("compare/rep_communication", tables) == []
