def step(number, kind, start, end, kind_step=None):
    kind_step = number if kind_step is None else kind_step
    return {"step": number, "kind_step": kind_step, "kind": kind, "start_ns": start, "end_ns": end}


def compiled(start, dur):
    return {"category": "compile", "start_ns": start, "dur_ns": dur}


def test_warmup_against_the_other_steps(ask):
    tables = {
        "step": [
            step(0, "warmup", 0, 60),
            step(1, "train", 60, 70),
            step(2, "warmup", 70, 90),
            step(3, "train", 90, 100),
        ],
        "span": [compiled(5, 50), compiled(75, 10), {"category": "window", "start_ns": 0, "dur_ns": 9}],
    }
    give = "warmup_steps later_steps train_steps warmup_ns later_ns train_ns train_mean_ns share compiles compile_ns"
    assert ask("diagnose/warmup_share", tables, give=give) == [(2, 1, 2, 80, 20, 20, 10.0, 0.8, 2, 60)]


def test_evaluation_does_not_count(ask):
    tables = {"step": [step(0, "warmup", 0, 10), step(1, "eval", 10, 90, 0)], "span": [compiled(20, 30)]}
    assert ask("diagnose/warmup_share", tables, give="warmup_ns train_ns share compiles") == [(10, 0, 1.0, 0)]


def test_a_compilation_counts_no_longer_than_its_step(ask):
    tables = {"step": [step(0, "warmup", 0, 10)], "span": [compiled(5, 30)]}
    assert ask("diagnose/warmup_share", tables, give="compiles compile_ns train_mean_ns") == [(1, 5, None)]
