"""How many cases the long fuzz tests try for each family of readers; 20,000 is what a release is held against."""

import os

CASES = int(os.environ.get("PIPEPROF_FUZZ_CASES", "600"))
_MEMORY = "/dev/shm"  # noqa: S108 - thousands of small runs, each in a folder with a drawn name
PLACE = _MEMORY if os.access(_MEMORY, os.W_OK) else None
