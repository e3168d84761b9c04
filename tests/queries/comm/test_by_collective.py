def step(number, kind="train"):
    begin = 100 * number
    return {"step": number, "kind": kind, "start_ns": begin, "fp_ns": begin, "bp_ns": begin + 60, "end_ns": begin + 100}


def event(start, dur, name="a", step=0, **more):
    return {"step": step, "name": name, "kind": "all_reduce", "start_ns": start, "dur_ns": dur, **more}


def test_most_time_first_with_the_share_in_the_tail(ask):
    tables = {
        "step": [step(0), step(1)],
        "collective": [event(50, 20, bytes=8), event(160, 20, step=1, bytes=8), event(0, 50, "b")],
    }
    give = "place name kind events steps total_ns mean_ns median_ns max_ns moved_bytes tail_share"
    assert ask("comm/by_collective", tables, give=give, top=5) == [
        (1, "b", "all_reduce", 1, 1, 50, 50.0, 50.0, 50, None, 0.0),
        (2, "a", "all_reduce", 2, 2, 40, 20.0, 20.0, 20, 16, 0.75),
    ]
    assert ask("comm/by_collective", tables, give="name", top=1) == [("b",)]


def test_costs_stand_beside_events_of_the_same_name(ask):
    cost = {"name": "a", "kind": "all_reduce", "step": 0, "transit_ns": 5, "wait_ns": 15}
    tables = {"step": [step(0)], "collective": [event(0, 22)], "collective_cost": [cost, {"step": 0, "wait_ns": 99}]}
    give = "name events total_ns transit_ns wait_ns profiler_share"
    assert ask("comm/by_collective", tables, give=give, top=5) == [("a", 1, 22, 5, 15, 0.75)]


def test_events_without_a_group_are_those_of_the_costs_of_that_name(ask):
    cost = {"name": "a", "group_name": "g", "step": 0, "transit_ns": 5, "wait_ns": 15}
    tables = {"step": [step(0)], "collective": [event(0, 22)], "collective_cost": [cost]}
    assert ask("comm/by_collective", tables, give="name group_name events wait_ns", top=5) == [("a", "g", 1, 15)]


def test_costs_alone_count_by_transfer_and_waiting(ask):
    costs = [{"name": "a", "step": n, "transit_ns": 5, "wait_ns": 15} for n in (0, 1)]
    give = "name events steps total_ns mean_ns tail_share"
    assert ask("comm/by_collective", {"collective_cost": costs}, give=give, top=5) == [("a", None, 2, 40, 20.0, None)]


def test_costs_of_warm_up_do_not_count_beside_training(ask):
    costs = [{"name": "a", "step": n, "transit_ns": 0, "wait_ns": wait} for n, wait in ((0, 900), (1, 10))]
    tables = {"step": [step(0, "warmup"), step(1)], "collective_cost": costs}
    assert ask("comm/by_collective", tables, give="steps total_ns", top=5) == [(1, 10)]
