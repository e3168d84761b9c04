"""A port for a server that a test starts in another process."""

import itertools
import os
import random
import socket

# The kernel hands out ports from 32768 on to whoever asks for any, also between the search and the server's start.
_ports = itertools.cycle(random.Random(os.getpid()).sample(range(20_000, 32_000), 12_000))  # noqa: S311 - no secret


def free_port():
    """A port that nobody uses, and that is given to nobody who does not ask for it."""
    for port in _ports:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError
