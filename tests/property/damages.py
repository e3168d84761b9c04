"""Damage as `make mutations` does it, drawn from a number."""

import random

from mutations import any_bytes, any_cell, any_value


def damage(data, seed):
    """What stands in a file, with some of it changed: bytes, or whole values where it is JSON or a table of text."""
    chance = random.Random(seed)  # noqa: S311 - test data
    return chance.choice([any_bytes, any_value, any_cell])(chance, data)[1] if data else b"x"
