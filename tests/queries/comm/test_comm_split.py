from table_rows import phased_step

GIVE = "source steps step_ns comm_ns overlapped_ns exposed_ns data_wait_ns forward_backward_ns tail_ns"


def test_events_tell_the_phase_but_not_what_ran_beside_them(ask):
    tables = {"step": [phased_step()], "collective": [{"step": 0, "start_ns": 10, "dur_ns": 80}]}
    assert ask("comm/split", tables, give=GIVE) == [("trace", 1, 100.0, 80.0, None, None, 10.0, 50.0, 20.0)]


def test_operators_tell_overlapped_from_exposed(ask):
    tables = {
        "step": [phased_step()],
        "collective": [{"step": 0, "start_ns": 50, "dur_ns": 40}],
        "op": [{"op_id": 0, "step": 0, "start_ns": 20, "dur_ns": 40, "track": "0"}],
        "op_info": [{"op_id": 0, "phase": "forward"}],
    }
    found = {row[0]: row[1:] for row in ask("comm/split", tables, give=GIVE)}
    assert found["parts"] == (1, 100.0, 40.0, 10.0, 30.0, None, None, 20.0)
    assert found["trace"][2] == 40.0


def test_the_profiler_s_own_division(ask):
    split = {"source": "step_trace_time", "computing_ns": 50, "exposed_ns": 30, "free_ns": 20, "overlapped_ns": 5}
    tables = {"step_split": [{**split, "source_step": n} for n in (1, 2)]}
    assert ask("comm/split", tables, give=GIVE) == [("split", 2, 100.0, 35.0, 5.0, 30.0, None, None, None)]
    shares = ask("comm/split", tables, give="comm_share exposed_share")
    assert shares == [(0.35, 0.3)]


def test_what_is_not_known_is_not_made_up(ask):
    tables = {"step_split": [{"source": "cluster_analyse", "computing_ns": 50, "exposed_ns": 50}]}
    assert ask("comm/split", tables, give="comm_ns exposed_ns comm_share exposed_share") == [(None, 50.0, None, 0.5)]
