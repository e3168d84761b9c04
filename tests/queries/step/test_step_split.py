def test_means_and_shares_of_a_rank(ask):
    rows = [
        {"source": "step_trace_time", "source_step": n, "computing_ns": computing, "exposed_ns": 30, "overlapped_ns": 5,
         "free_ns": 20, "stage_ns": 60, "bubble_ns": 20, "preparing_ns": 7}
        for n, computing in ((1, 40), (2, 60))
    ]  # fmt: skip
    give = "source steps step_ns computing_ns communication_ns exposed_ns free_ns stage_ns bubble_ns preparing_ns"
    assert ask("step/split", {"step_split": rows}, give=give) == [
        ("step_trace_time", 2, 100.0, 50.0, 35.0, 30.0, 20.0, 60.0, 20.0, 7.0)
    ]
    shares = ask("step/split", {"step_split": rows}, give="computing_share exposed_share free_share bubble_share")
    assert shares == [(0.5, 0.3, 0.2, 0.25)]


def test_what_the_source_does_not_have_is_null(ask):
    rows = [{"source": "cluster_analyse", "computing_ns": 10, "exposed_ns": 30}]
    give = "step_ns communication_ns free_ns bubble_ns free_share bubble_share"
    assert ask("step/split", {"step_split": rows}, give=give) == [(40.0, None, None, None, None, None)]
