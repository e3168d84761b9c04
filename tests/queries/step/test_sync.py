from table_rows import step, steps


def sync(number, count, total, call="asnumpy", site="train.py:9", **more):
    return {"step": number, "call": call, "site": site, "count": count, "total_ns": total, "max_ns": total, **more}


STEPS = steps(*["train"] * 4)


def test_lines_are_ordered_by_their_time_and_divided_by_all_steps(ask):
    tables = {
        "step": STEPS,
        "sync": [sync(0, 2, 30), sync(1, 1, 10), sync(3, 4, 20, "__str__", "train.py:12", via="_loss_monitor.py")],
    }
    give = "position call site via count steps total_ns mean_ns max_ns per_step share"
    assert ask("step/sync", tables, give=give) == [
        (1, "asnumpy", "train.py:9", None, 3, 2, 40, 40 / 3, 30, 0.75, 0.1),
        (2, "__str__", "train.py:12", "_loss_monitor.py", 4, 1, 20, 5.0, 20, 1.0, 0.05),
    ]


def test_what_is_outside_of_training_steps_does_not_count(ask):
    tables = {
        "step": [*STEPS, step(4, 400, 500, "eval")],
        "sync": [sync(4, 9, 90), sync(None, 9, 90)],
    }
    assert ask("step/sync", tables, give="count") == []


def test_calls_of_no_known_line_are_counted_together(ask):
    tables = {"step": STEPS, "sync": [sync(0, 1, 5, None, None), sync(1, 1, 5, None, None)]}
    assert ask("step/sync", tables, give="call site count") == [(None, None, 2)]
