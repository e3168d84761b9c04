"""A stage that went and one that came in its place are one cause."""

from pipeprof.report.words.comparison import _replacement, _text


def stage(name, change):
    return {"kind": "structure", "name": f"stage {name}", "shown": name, "change": change, "base": "MapOp",
            "new": "MapOp", "ratio": None, "share": None, "proven": True}  # fmt: skip


def test_the_new_stage_is_named_with_the_one_that_it_replaced():
    entries = [stage("fast", "vanished"), stage("slow", "appeared")]
    for found in entries:
        assert _text(_replacement(found, entries)) == "stage `slow` took the place of `fast`"


def test_of_several_stages_nobody_knows_which_replaced_which():
    entries = [stage("a", "vanished"), stage("b", "vanished"), stage("c", "appeared")]
    assert _replacement(entries[0], entries) is None
    assert _replacement(entries[2], [entries[2]]) is None
    assert _replacement(stage("d", "changed"), entries[1:]) is None
