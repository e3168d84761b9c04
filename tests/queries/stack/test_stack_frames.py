def test_frames_by_number(ask):
    stack = [{"stack_id": 2, "parent_id": 1, "frame": "b"}, {"stack_id": 1, "frame": "a"}]
    assert ask("stack/frames", {"stack": stack}, give="stack_id parent_id frame") == [(1, None, "a"), (2, 1, "b")]
