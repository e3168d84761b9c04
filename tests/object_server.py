"""A real S3 server on this machine, moto's, and how many requests it has answered."""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
import time
import urllib.request
from typing import NamedTuple

_REQUEST = re.compile(rb'"(GET|HEAD|PUT|POST|DELETE) (\S+) HTTP/')


class Server(NamedTuple):
    """Its address, and the file of its log."""

    address: str
    log: object

    def requests(self):
        """(method, path) of all requests so far, in their order."""
        return [tuple(map(bytes.decode, found)) for found in _REQUEST.findall(self.log.read_bytes())]


@contextlib.contextmanager
def object_server(folder):
    """Runs for as long as the context; its log lies in the folder."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = folder / "requests.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            stdout=subprocess.DEVNULL,
            stderr=file,
        )
    try:
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/moto-api", timeout=1).close()
                break
            except OSError:
                assert process.poll() is None
                time.sleep(0.1)
        yield Server(f"127.0.0.1:{port}", log)
    finally:
        process.terminate()
        process.wait()
