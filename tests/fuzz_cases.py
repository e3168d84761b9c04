"""How many cases the long fuzz tests try for each family of readers; 20,000 is what a release is held against.

And the places of a JSON document that they change.
"""

import os

CASES = int(os.environ.get("PIPEPROF_FUZZ_CASES", "600"))
_MEMORY = "/dev/shm"  # noqa: S108 - thousands of small runs, each in a folder with a drawn name
PLACE = _MEMORY if os.access(_MEMORY, os.W_OK) else None


def places(content, path=()):
    """Every key and index of a JSON document."""
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def leaves(found, path=()):
    """Every value of a JSON document, with its place."""
    if isinstance(found, dict | list):
        for key, value in found.items() if isinstance(found, dict) else enumerate(found):
            yield from leaves(value, (*path, key))
    else:
        yield path, found
