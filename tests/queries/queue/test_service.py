import pytest

MS = 1_000_000
ROLES = ("train", "eval", None)


def service(t, avg, rows, op=1, pipeline=0, source="log", **more):
    return {"pipeline_id": pipeline, "op_id": op, "t_ns": t, "avg_ns": avg, "rows": rows, "source": source, **more}


def tables(rows, role="train", op_type="MapOp", workers=2):
    return {
        "pipeline": [{"pipeline_id": number, "pipeline_key": "a", "role": role} for number in (0, 1)],
        "pipeline_op": [
            {"pipeline_id": number, "op_id": 1, "op_type": op_type, "workers": workers} for number in (0, 1)
        ],
        "op_service": rows,
    }


@pytest.mark.parametrize("role", ROLES)
def test_times_are_weighted_by_rows(ask, role):
    rows = [service(0, 10, 1, max_ns=None), service(1, 20, 3, max_ns=50)]
    give = "op_id source batches rows rows_per_batch mean_ns p90_ns max_ns work_per_batch_ns io_share"
    assert ask("queue/service", tables(rows, role), give=give) == [
        (1, "log", 2, 4, 2.0, 17.5, 19.0, 50, 35.0, None),
    ]


def test_a_row_of_several_batches_counts_for_as_many(ask):
    calls = [service(n, 10, 8 * batches, source="hook", batches=batches) for n, batches in enumerate((1, 4, 2, 1))]
    give = "source batches rows rows_per_batch mean_ns work_per_batch_ns"
    assert ask("queue/service", tables(calls), give=give) == [("hook", 7, 56, 8.0, 10.0, 80.0)]


def test_timed_calls_and_timing_lines_are_not_two_pieces_of_work(ask):
    # A row takes 10 ns by the lines, 7 of them in its Python; that Python goes on to take 7 for batches without lines.
    lines = [service(n, 10, 8, batches=1) for n in range(4)]
    calls = [service(n, 7, 16, source="hook", batches=2) for n in range(40)]
    give = "source batches mean_ns work_per_batch_ns"
    assert ask("queue/service", tables(lines + calls), give=give) == [("both", 60, 10.0, 80.0)]


def test_the_lines_of_a_source_with_several_workers_are_of_its_output(ask):
    rows = [service(n, 90, 8, batches=1) for n in range(4)]
    rows += [service(n, 7, 8, source="hook", batches=1) for n in range(4)]
    found = ask("queue/service", tables(rows, op_type="GeneratorOp"), give="work_per_batch_ns")
    assert found == [(56.0,)]
    assert ask("queue/service", tables(rows, op_type="GeneratorOp", workers=1), give="work_per_batch_ns") == [(720.0,)]


def test_the_first_quarter_is_left_out(ask):
    rows = [service(0, 900, 1), service(1, 10, 1), service(2, 10, 1), service(3, 10, 1)]
    assert ask("queue/service", tables(rows), give="batches mean_ns max_ns") == [(3, 10.0, 10)]


def test_the_only_row_of_a_batch_can_be_the_longest(ask):
    rows = [service(0, 90, 1), service(1, 20, 3, max_ns=50)]
    assert ask("queue/service", tables(rows), give="max_ns") == [(90,)]


def test_reading_is_a_share_of_the_work_that_says_so(ask):
    rows = [service(0, 10, 2, io_ns=5), service(1, 1000, 2, io_ns=None)]
    assert ask("queue/service", tables(rows), give="io_share") == [(0.5,)]


def test_equal_keys_are_pooled_and_operators_named(ask):
    rows = ask(
        "queue/service",
        tables([service(0, 10, 1), service(9, 30, 1, pipeline=1)]),
        give="pipeline_key op_type workers batches mean_ns",
    )
    assert rows == [("a", "MapOp", 2, 2, 20.0)]


def test_the_work_is_the_one_that_the_diagnosis_and_the_comparison_use(ask):
    calls = [service(n * MS, 10, 8 * batches, source="hook", batches=batches) for n, batches in enumerate((1, 4, 2, 1))]
    found = tables([*calls, *(service(n * MS, 13, 8) for n in range(4))])
    (work,) = ask("queue/service", found, give="op_id work_per_batch_ns")
    assert work in ask("diagnose/load", found, give="op_id work_ns")
    assert work in ask("compare/rep_pipeline_op", found, give="op_id work_ns")
