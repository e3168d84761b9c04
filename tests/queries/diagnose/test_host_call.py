from table_rows import step

GIVE = "name own_ns self_ns inside inside_ns step_ns"
PYTHON, OP = "python_function", "cpu_op"
# Callers in front of what they call: (name, category, caller, step, own time).
CALLS = [
    ("train.py(1): main", PYTHON, None, None, 7),
    ("ProfilerStep*", "user_annotation", 0, 0, 3),
    ("train.py(9): log", PYTHON, 1, 0, 100),
    ("lib/x.py(1): f", PYTHON, 2, 0, 30),
    ("aten::add", OP, 3, 0, 500),
    ("<built-in function sum at 0x7f>", PYTHON, 3, 0, 40),
    ("<built-in function sum at 0x8f>", PYTHON, 2, 0, 20),
    ("lib/x.py(2): g", PYTHON, 1, 0, 50),
]


def tables(calls=CALLS, **more):
    ops = [
        {"op_id": n, "exec_id": n, "parent_id": caller, "step": number, "track": "t", "side": "host", "start_ns": n,
         "dur_ns": 1, "self_ns": own}
        for n, (_, _, caller, number, own) in enumerate(calls)
    ]  # fmt: skip
    infos = [{"op_id": n, "name": call[0], "category": call[1], "phase": "other"} for n, call in enumerate(calls)]
    return {"op": ops, "op_info": infos, "step": [step(0, 0, 1000)], **more}


def test_a_function_has_its_own_time_and_that_of_libraries_but_none_of_operators(ask):
    rows = ask("diagnose/host_call", tables(), least=0.0, library="^(<|lib/)", give=GIVE)
    assert rows == [
        ("train.py(1): main", 50, 0, "lib/x.py(2): g", 50, 1000),
        ("train.py(9): log", 190, 160, "<built-in function sum>", 60, 1000),
    ]


def test_other_threads_what_makes_batches_and_short_functions_are_left_out(ask):
    run = tables()
    run["op"][2]["track"] = "other"
    run["op_info"][7]["phase"] = "data"
    assert ask("diagnose/host_call", run, least=0.0, library="^(<|lib/)", give="name") == []
    assert ask("diagnose/host_call", tables(), least=0.1, library="^(<|lib/)", give="name") == [("train.py(9): log",)]
