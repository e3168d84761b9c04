from table_rows import KEY, MS, fed, times


def tables(**more):
    decode = {"name": "decode", "workers": 2, "capacity": 16, "uses_processes": True}
    return fed(("BatchOp", {"capacity": 16}), ("MapOp", decode), op_service=times(1, "log", 50), **more)


def test_settings_and_work_of_each_stage(ask):
    give = "op_id op_type name workers capacity uses_processes consumer_id"
    found = ask("compare/rep_pipeline_op", tables(), give=give)
    assert found == [(0, "BatchOp", None, 1, 16, None, None), (1, "MapOp", "decode", 2, 16, True, 0)]
    work = ask("compare/rep_pipeline_op", tables(), give="op_id work_ns")
    assert work == [(0, None), (1, 50 * MS)]


def test_the_training_loop_is_no_stage(ask):
    assert all(row["op_id"] >= 0 for row in ask("compare/rep_pipeline_op", tables()))


def test_rows_of_a_source_and_bytes_where_every_row_has_as_many(ask):
    given = tables()
    given["pipeline_op"][1]["source_rows"] = 160
    for sizes, expected in (((8, 8), 8), ((8, 9), None), ((8, None), 8), ((None, None), None)):
        for row, size in zip(given["op_service"], sizes * 20, strict=True):
            row["out_bytes"] = size
        found = ask("compare/rep_pipeline_op", given, give="op_id source_rows row_bytes")
        assert found == [(0, None, None), (1, 160, expected)]


def test_instructions_of_all_functions_of_a_stage(ask):
    counted = [KEY | {"op_id": 1, "part": part, "calls": 8, "median": 10.5 * (part + 1)} for part in (0, 1)]
    found = ask("compare/rep_pipeline_op", tables(op_instructions=counted), give="op_id instructions")
    assert found == [(0, None), (1, 31.5)]
