import pytest
from table_rows import KEY, steps

WAITS = [KEY | {"fetch": n, "step": n, "start_ns": 1000 * n, "wait_ns": 400, "side": "iterator"} for n in (0, 1)]
STEPS = steps("train", "train", length=1000)
GIVE = "depth name tracks busy_ns loading_ns covered_ns wait_ns"


def tables(*calls, phase="data"):
    """Calls as (name, track, start, end); callers stand in front of what they call."""
    names = list(dict.fromkeys(call[0] for call in calls))
    ops = [
        {"op_id": names.index(name), "exec_id": number, "track": track, "start_ns": start, "dur_ns": end - start}
        for number, (name, track, start, end) in enumerate(calls)
    ]
    infos = [{"op_id": number, "name": name, "phase": phase} for number, name in enumerate(names)]
    return {"step": STEPS, "fetch": WAITS, "op": ops, "op_info": infos}


def test_only_what_lies_in_a_wait_counts_and_calls_in_each_other_count_once(ask):
    run = tables(
        ("next", "main", -10, 410), ("resize", "main", 100, 300), ("resize", "main", 150, 250),
        ("next", "main", 990, 1410), ("resize", "main", 1300, 1500),
    )  # fmt: skip
    rows = ask("diagnose/fetch_call", run, least=0.0, give=GIVE)
    assert rows == [
        (1.0, "next", 1, 800, 800, 800, 800),
        (pytest.approx(2.0), "resize", 1, 300, 800, 800, 800),
    ]


def test_threads_that_load_at_the_same_time_add_up_and_cover_a_wait_once(ask):
    run = tables(("read", "a", 0, 300), ("read", "b", 100, 400), ("read", "b", 500, 900))
    assert ask("diagnose/fetch_call", run, least=0.0, give=GIVE) == [(1.0, "read", 2, 600, 600, 400, 800)]


def test_the_wait_itself_is_no_loading(ask):
    """As its thread marks it, with another thread that reads meanwhile; a function of Python may last as long."""
    run = tables(("fetch", "main", 0, 400), ("f.py(1): next", "main", 0, 400), ("read", "a", 100, 400))
    run["op_info"][1]["category"] = "python_function"
    rows = ask("diagnose/fetch_call", run, least=0.0, give="name is_wait busy_ns loading_ns covered_ns")
    assert rows == [
        ("read", False, 300, 700, 400), ("fetch", True, 400, 700, 400), ("f.py(1): next", False, 400, 700, 400),
    ]  # fmt: skip
    give = "is_wait loading_ns covered_ns"
    (alone,) = ask("diagnose/fetch_call", tables(("fetch", "main", 0, 400)), least=0.5, give=give)
    assert alone == (True, 0, 0)


def test_the_address_of_an_object_is_no_part_of_a_name(ask):
    run = tables(*[(f"<built-in method read of X object at 0x{n:x}>", "main", 100 * n, 100 * n + 50) for n in (1, 2)])
    assert ask("diagnose/fetch_call", run, least=0.9, give="name busy_ns") == [
        ("<built-in method read of X object>", 100)
    ]


def test_what_takes_less_than_the_least_is_left_out_and_what_makes_no_batch_is_none(ask):
    run = tables(("next", "main", 0, 450), ("open", "main", 0, 40))
    assert [row["name"] for row in ask("diagnose/fetch_call", run, least=0.2)] == ["next"]
    assert ask("diagnose/fetch_call", tables(("conv", "main", 0, 400), phase="forward"), least=0.0) == []
