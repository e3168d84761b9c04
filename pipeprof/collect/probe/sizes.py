"""How many bytes of data a value holds."""

MOST_PARTS = 64  # of a container that are looked at: a longer one has as much for each of the others


def of(value):
    """Bytes of a row, a column or a batch; None where a part of it does not say."""
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
    return together(value) if isinstance(value, (list, tuple)) else None


def together(values):
    """Bytes of several values; None where one of them does not say."""
    sizes = [of(value) for value in values[:MOST_PARTS]]
    if None in sizes:
        return None
    return sum(sizes) * len(values) // len(sizes) if sizes else 0
