"""Rows of tables as most queries want them; what a test is about it gives itself."""


def step(number, start, end, kind="train", **more):
    """A step outside of op windows."""
    times = {"start_ns": start, "end_ns": end}
    return {"step": number, "kind_step": number, "kind": kind, "in_window": False, **times, **more}


def phased_step(number=0, start=0, fp=20, bp=70, end=100, **more):
    """A step with its phases."""
    return step(number, start, end, **{"fp_ns": fp, "bp_ns": bp, **more})
