from table_rows import op, steps


def info(op_id, kind, device):
    return {"op_id": op_id, "name": f"Default/{kind}-op{op_id}", "type": kind, "device": device}


GIVE = "device position type count total_ns mean_ns max_ns wait_ns share"


def test_each_device_has_its_own_shares(ask):
    tables = {
        "step": steps("train"),
        "op_info": [info(1, "GetNext", "AI_CPU"), info(2, "Print", "AI_CPU"), info(3, "MatMul", "AI_CORE")],
        "op": [op(1, 20, wait_ns=4), op(1, 40, wait_ns=6), op(2, 40), op(3, 900)],
    }
    assert ask("op/by_device", tables, give=GIVE) == [
        ("AI_CORE", 1, "MatMul", 1, 900, 900.0, 900, None, 1.0),
        ("AI_CPU", 1, "GetNext", 2, 60, 30.0, 40, 5.0, 0.6),
        ("AI_CPU", 2, "Print", 1, 40, 40.0, 40, None, 0.4),
    ]


def test_a_device_that_is_not_named_is_one_of_its_own(ask):
    tables = {"step": steps("train"), "op_info": [info(1, "MatMul", None)], "op": [op(1, 5)]}
    assert ask("op/by_device", tables, give="device type share") == [("", "MatMul", 1.0)]


def test_all_executions_of_the_ai_cpu_count_as_the_source_sums_them_up(ask):
    """One of them lies between steps, and its time reaches from the dispatch on."""
    sums = {"source": "aicpu", "device": "AI_CPU", "type": "GetNext", "count": 2, "total_ns": 90, "max_ns": 70}
    tables = {
        "step": steps("train"),
        "op_info": [info(1, "GetNext", "AI_CPU"), info(3, "MatMul", "AI_CORE")],
        "op": [op(1, 20, wait_ns=4), op(1, 40, step=None, wait_ns=6), op(3, 900)],
        "op_total": [sums | {"dispatch_ns": 10}, sums | {"source": "aicore_type", "device": "AI_CORE"}],
    }
    assert ask("op/by_device", tables, give=GIVE) == [
        ("AI_CORE", 1, "MatMul", 1, 900, 900.0, 900, None, 1.0),
        ("AI_CPU", 1, "GetNext", 2, 90, 45.0, 70, 5.0, 1.0),
    ]
