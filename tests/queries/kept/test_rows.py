"""kept/rows: the written answers, if they were made of what the run holds."""

ROWS = [
    {"made_of": "now", "query": "step/summary", "asked": "{}", "place": 1, "row_text": "[1]"},
    {"made_of": "now", "query": "step/summary", "asked": "{}", "place": 0, "row_text": "1"},
    {"made_of": "before", "query": "step/sync", "asked": "{}", "place": 0, "row_text": "0"},
    {"made_of": "now", "query": "op/busy", "asked": "{}", "place": 0},
]
BYTES = 2 * len("step/summary{}") + len("[1]1")


def test_rows_of_other_tables_and_those_without_a_value_are_left_out(ask):
    expected = [("step/summary", "{}", 0, "1"), ("step/summary", "{}", 1, "[1]")]
    give = "query asked place row_text"
    assert ask("kept/rows", {"kept_answer": ROWS}, give, made_of="now", most_bytes=BYTES) == expected


def test_rows_that_are_too_long_together_are_not_given(ask):
    assert ask("kept/rows", {"kept_answer": ROWS}, made_of="now", most_bytes=BYTES - 1) == []
