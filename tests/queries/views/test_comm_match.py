"""The same collective on several ranks: who comes last, and how long the others wait."""

from table_rows import collectives

GIVE = """
SELECT rank, name, place, ranks, least_ns, waiting_ns, is_last, caused_ns
FROM comm_match ORDER BY name, place, rank
"""


def test_the_rank_with_the_shortest_event_comes_last_and_causes_the_waiting(look):
    assert look(GIVE, collectives({"a": [30, 10, 50]})) == [
        (0, "a", 1, 3, 10, 20, False, 0),
        (1, "a", 1, 3, 10, 0, True, 60),
        (2, "a", 1, 3, 10, 40, False, 0),
    ]


def test_equal_ranks_are_not_last(look):
    assert [row[-2:] for row in look(GIVE, collectives({"a": [10, 10, 50]}))] == [(False, 0), (False, 0), (False, 0)]


def test_equal_names_of_a_step_are_matched_in_their_order(look):
    twice = collectives({"a": [30, 10], "again": [10, 30]}, name="a")
    found = look(GIVE, twice)
    assert [(row[0], row[2], row[6]) for row in found] == [(0, 1, False), (1, 1, True), (0, 2, True), (1, 2, False)]


def test_sends_and_what_one_rank_has_alone_are_left_out(look):
    assert look(GIVE, collectives({"a": [30, 10]}, kind="send")) == []
    assert look(GIVE, collectives({"a": [30, None], "b": [None, 10]})) == []


def test_named_groups_are_not_mixed(look):
    found = collectives({"a": [30, 10, 20, 40]})
    for row in found["collective"]:
        row["group_name"] = "left" if row["rank"] < 2 else "right"
    assert [(row[0], row[7]) for row in look(GIVE, found)] == [(0, 0), (1, 20), (2, 20), (3, 0)]


def test_ranks_of_different_stages_are_not_mixed(look):
    found = collectives({"a": [30, 10, 20, 40]})
    found["step_split"] = [{"rank": 0, "stage_index": 0}, {"rank": 2, "stage_index": 1}]
    assert [(row[0], row[7]) for row in look(GIVE, found)] == [(0, 0), (1, 20), (2, 20), (3, 0)]
