"""What a chart shows."""


def values(spec):
    """All data of a chart, however its parts are nested."""
    own = spec.get("data", {}).get("values", [])
    return own + [row for key in ("layer", "vconcat") for part in spec.get(key, []) for row in values(part)]
