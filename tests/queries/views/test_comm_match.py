"""The same collective on several ranks: who comes last, and how long the others wait."""

GIVE = """
SELECT rank, name, place, ranks, least_ns, waiting_ns, is_last, caused_ns
FROM comm_match ORDER BY name, place, rank
"""


def tables(durations, **more):
    """`durations`: {name: one duration per rank}, all in step 0, one after the other."""
    ranks = range(max(len(values) for values in durations.values()))
    found = {
        "step": [{"rank": r, "step": 0, "kind_step": 0, "kind": "train", "start_ns": 0, "end_ns": 9999} for r in ranks]
    }
    found["collective"] = [
        {"rank": rank, "step": 0, "name": name.rstrip("'"), "kind": "all_reduce", "start_ns": 100 * place, "dur_ns": dur, **more}
        for place, (name, values) in enumerate(durations.items())
        for rank, dur in enumerate(values)
        if dur is not None
    ]  # fmt: skip
    return found


def test_the_rank_with_the_shortest_event_comes_last_and_causes_the_waiting(look):
    assert look(GIVE, tables({"a": [30, 10, 50]})) == [
        (0, "a", 1, 3, 10, 20, False, 0),
        (1, "a", 1, 3, 10, 0, True, 60),
        (2, "a", 1, 3, 10, 40, False, 0),
    ]


def test_equal_ranks_are_not_last(look):
    assert [row[-2:] for row in look(GIVE, tables({"a": [10, 10, 50]}))] == [(False, 0), (False, 0), (False, 0)]


def test_equal_names_of_a_step_are_matched_in_their_order(look):
    found = look(GIVE, tables({"a": [30, 10], "a'": [10, 30]}))
    assert [(row[0], row[2], row[6]) for row in found] == [(0, 1, False), (1, 1, True), (0, 2, True), (1, 2, False)]


def test_sends_and_what_one_rank_has_alone_are_left_out(look):
    assert look(GIVE, tables({"a": [30, 10]}, kind="send")) == []
    assert look(GIVE, tables({"a": [30, None], "b": [None, 10]})) == []


def test_named_groups_are_not_mixed(look):
    found = tables({"a": [30, 10, 20, 40]})
    for row in found["collective"]:
        row["group_name"] = "left" if row["rank"] < 2 else "right"
    assert [(row[0], row[7]) for row in look(GIVE, found)] == [(0, 0), (1, 20), (2, 20), (3, 0)]


def test_ranks_of_different_stages_are_not_mixed(look):
    found = tables({"a": [30, 10, 20, 40]})
    found["step_split"] = [{"rank": 0, "stage_index": 0}, {"rank": 2, "stage_index": 1}]
    assert [(row[0], row[7]) for row in look(GIVE, found)] == [(0, 0), (1, 20), (2, 20), (3, 0)]
