"""How many cases the long fuzz tests try for each family of readers; 20,000 is what a release is held against."""

import os

CASES = int(os.environ.get("PIPEPROF_FUZZ_CASES", "600"))
