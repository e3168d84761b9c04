"""A batch goes in front of the maps that feed it, in the executed copy of a dataset.

Each map is then called once for a batch, not once for a row. Whether its functions give the same for a batch is for the
fingerprints to say. A shuffle between them goes along, in front of the batch: which row it hands out next does not
depend on what is in the rows.
"""

from . import describe


def why_not(batch, number):
    """Why a batch cannot go in front of so many maps; "" when it can."""
    if describe._kind(batch) != "BatchOp":
        return "%s is no batch" % describe._kind(batch)
    if getattr(batch, "per_batch_map", None) is not None or getattr(batch, "batch_size_func", None) is not None:
        return "the batch has a function of its own"
    if len(_maps(_inputs(batch, number))) < number:
        return "fewer than %d maps feed the batch" % number
    return ""


def move(batch, number):
    """Put a batch in front of the maps that feed it; returns the one that is in its place now."""
    inputs = _inputs(batch, number)
    below = list(inputs[-1].children)
    maps = _maps(inputs)
    chain = [*maps, batch, *(one for one in inputs if one not in maps)]
    for one, feeding in zip(chain, [*([part] for part in chain[1:]), below]):
        one.children = feeding
    return chain[0]


def redescribe(entry, number):
    """Let the description of a batch, with what feeds it, say the new order."""
    places = [entry]
    while sum(one["type"] == "MapOp" for one in places) < number:
        places.append(places[-1]["children"][0])
    below = places[-1].get("children")
    descriptions = [{name: value for name, value in one.items() if name != "children"} for one in places]
    maps = [one for one in descriptions if one["type"] == "MapOp"]
    chain = [*maps, descriptions[0], *(one for one in descriptions[1:] if one["type"] != "MapOp")]
    for target, facts in zip(places, chain):
        children = target.get("children")
        target.clear()
        target.update(facts, children=children)
    places[-1]["children"] = below


def _inputs(batch, number):
    """The maps and shuffles that feed a batch, nearest first, down to the map of that number."""
    inputs = []
    node = batch
    while len(_maps(inputs)) < number and len(getattr(node, "children", None) or []) == 1:
        node = node.children[0]
        if describe._kind(node) not in ("MapOp", "ShuffleOp"):
            break
        inputs.append(node)
    return inputs


def _maps(nodes):
    return [one for one in nodes if describe._kind(one) == "MapOp"]
