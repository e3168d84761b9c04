"""How many bytes of data a value holds."""

MOST_PARTS = 64  # of a container that are looked at: a longer one has as much for each of the others


MOST_LOOKS = 4096  # values that are looked at for one answer


def of(value):
    """Bytes of a row, a column or a batch; None where a part of it does not say. Never raises."""
    return _guarded(_of, value)


def together(values):
    """Bytes of several values; None where one of them does not say. Never raises."""
    return _guarded(_together, values)


def _guarded(size, value):
    try:
        return size(value, [MOST_LOOKS])
    except Exception:  # of a property of the user's, or of a list that holds itself
        return None


def _of(value, left):
    left[0] -= 1
    if left[0] < 0:
        return None
    size = getattr(value, "nbytes", None)
    if isinstance(size, int):
        return size
    if isinstance(value, (bytes, bytearray)):
        return len(value)
    if isinstance(value, str):
        return len(value.encode("utf-8", "replace"))
    if isinstance(value, (bool, int, float)):
        return 8  # as NumPy makes an array of it
    if isinstance(value, dict):
        value = list(value.values())
    return _together(value, left) if isinstance(value, (list, tuple)) else None


def _together(values, left):
    sizes = [_of(value, left) for value in values[:MOST_PARTS]]
    if None in sizes:
        return None
    return sum(sizes) * len(values) // len(sizes) if sizes else 0
