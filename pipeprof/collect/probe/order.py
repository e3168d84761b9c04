"""A batch goes in front of the maps that feed it, in the executed copy of a dataset.

Each map is then called once for a batch, not once for a row. Whether its functions give the same for a batch is for the
fingerprints to say.
"""


def why_not(batch, number, kind_of):
    """Why a batch cannot go in front of so many maps; "" when it can."""
    if kind_of(batch) != "BatchOp":
        return "%s is no batch" % kind_of(batch)
    if getattr(batch, "per_batch_map", None) is not None or getattr(batch, "batch_size_func", None) is not None:
        return "the batch has a function of its own"
    maps = _inputs(batch, number)
    if len(maps) < number or any(kind_of(one) != "MapOp" for one in maps):
        return "fewer than %d maps feed the batch" % number
    return ""


def move(batch, number):
    """Put a batch in front of the maps that feed it; returns the one that is in its place now."""
    maps = _inputs(batch, number)
    last = maps[-1]
    batch.children, last.children = list(last.children), [batch]
    return maps[0]


def redescribe(entry, number):
    """Let the description of a batch, with what feeds it, say the new order."""
    chain = [entry]
    for _ in range(number):
        chain.append(chain[-1]["children"][0])
    below = chain[-1].get("children")
    found = [{name: value for name, value in one.items() if name != "children"} for one in chain]
    for place, facts in zip(chain, [*found[1:], found[0]]):
        children = place.get("children")
        place.clear()
        place.update(facts, children=children)
    chain[-1]["children"] = below


def _inputs(batch, number):
    """The operators that feed a batch, nearest first, as far as each has one input."""
    found = []
    node = batch
    while len(found) < number and len(getattr(node, "children", None) or []) == 1:
        node = node.children[0]
        found.append(node)
    return found
