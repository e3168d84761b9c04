from table_rows import phased_step


def test_the_longest_rank_of_each_phase(ask):
    steps = [phased_step(0, 0, 10, 30, 35), phased_step(1, 35, 55, 65, 70)]
    other = [phased_step(0, 0, 5, 45, 50, rank=1)]
    assert ask("compare/rep_phase", {"step": steps + other}, give="rep phase mean_ns") == [
        (0, "data_wait", 15.0),
        (0, "forward_backward", 40.0),
        (0, "tail", 5.0),
    ]
