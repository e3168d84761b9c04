"""The first line of a program in Python that a test writes, wherever this Python lies."""

import shlex
import sys

# A path with a space or other letters must be quoted, which the kernel does not know of and `env -S` does.
SHEBANG = f"#!/usr/bin/env -S {shlex.quote(sys.executable)}\n"
