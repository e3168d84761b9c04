from table_rows import step


def compiled(start, dur):
    return {"category": "compile", "start_ns": start, "dur_ns": dur}


def test_warmup_against_the_other_steps(ask):
    tables = {
        "step": [
            step(0, 0, 60, "warmup"),
            step(1, 60, 70),
            step(2, 70, 90, "warmup"),
            step(3, 90, 100),
        ],
        "span": [compiled(5, 50), compiled(75, 10), {"category": "window", "start_ns": 0, "dur_ns": 9}],
    }
    give = "warmup_steps later_steps train_steps warmup_ns later_ns train_ns train_mean_ns share compiles compile_ns"
    assert ask("diagnose/warmup_share", tables, give=give) == [(2, 1, 2, 80, 20, 20, 10.0, 0.8, 2, 60)]


def test_evaluation_does_not_count(ask):
    tables = {"step": [step(0, 0, 10, "warmup"), step(1, 10, 90, "eval", kind_step=0)], "span": [compiled(20, 30)]}
    assert ask("diagnose/warmup_share", tables, give="warmup_ns train_ns share compiles") == [(10, 0, 1.0, 0)]


def test_a_compilation_counts_no_longer_than_its_step(ask):
    tables = {"step": [step(0, 0, 10, "warmup")], "span": [compiled(5, 30)]}
    assert ask("diagnose/warmup_share", tables, give="compiles compile_ns train_mean_ns") == [(1, 5, None)]
