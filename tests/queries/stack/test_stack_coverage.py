def test_counts_what_is_known(ask):
    op = [{"op_id": n % 2, "exec_id": n, "parent_id": 0 if n == 3 else None} for n in range(4)]
    info = [{"op_id": 0, "stack_id": 7}, {"op_id": 1}]
    assert ask("stack/coverage", {"op": op, "op_info": info}, give="executions located called") == [(4, 2, 1)]
