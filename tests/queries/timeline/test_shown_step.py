import pytest

LENGTHS = (50, 10, 12, 11, 30)  # the first is warm-up


def step(number, length, **more):
    return {"step": number, "kind_step": number, "kind": "train" if number else "warmup", "start_ns": number * 100,
            "end_ns": number * 100 + length, "pipeline_id": 3, **more}  # fmt: skip


@pytest.fixture
def chosen(ask):
    def rows(steps, ops=()):
        tables = {"step": steps, "op": [{"op_id": 0, "step": number} for number in ops]}
        give = "shown step dur_ns middle_ns operators pipeline_id"
        return ask("timeline/shown_step", tables, give=give, rep=0, rank=0)

    return rows


def test_the_nearest_to_the_median_and_the_slowest_without_warmup(chosen):
    steps = [step(number, length) for number, length in enumerate(LENGTHS)]
    assert chosen(steps) == [("slowest", 4, 30, 11.5, False, 3), ("usual", 2, 12, 11.5, False, 3)]


def test_a_step_with_operators_is_shown_where_there_is_one(chosen):
    steps = [step(number, length, in_window=number == 4) for number, length in enumerate(LENGTHS)]
    assert chosen(steps, ops=(0, 4)) == [("slowest", 2, 12, 11.0, False, 3), ("usual", 4, 30, 30.0, True, 3)]


def test_other_ranks_have_no_part_in_it(chosen):
    steps = [step(1, 10), step(2, 99, rank=1), step(3, 10, rep=1)]
    assert chosen(steps) == [("slowest", 1, 10, 10.0, False, 3), ("usual", 1, 10, 10.0, False, 3)]
