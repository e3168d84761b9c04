def test_training_steps_with_operators_and_their_executions(ask):
    steps = [
        {"step": 0, "kind": "warmup", "kind_step": 0},
        {"step": 1, "kind": "eval", "kind_step": 0},
        {"step": 2, "kind": "train", "kind_step": 1},
        {"step": 3, "kind": "train", "kind_step": 2},
    ]
    ops = [{"op_id": 1, "step": step} for step in (0, 1, 3, 3, None)]
    assert ask("step/with_operators", {"step": steps, "op": ops}, give="kind_step count") == [(0, 1), (2, 2)]
