"""A real S3 server on this machine, moto's, how many requests it has answered, and a way to it that fails."""

from __future__ import annotations

import contextlib
import http.server
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from typing import NamedTuple

from free_port import free_port
from pyarrow import fs

_REQUEST = re.compile(rb'"(GET|HEAD|PUT|POST|DELETE) (\S+) HTTP/')


class Server(NamedTuple):
    """Its address, and the file of its log."""

    address: str
    log: object

    def requests(self):
        """(method, path) of all requests so far, in their order."""
        return [tuple(map(bytes.decode, found)) for found in _REQUEST.findall(self.log.read_bytes())]


SECRET = "sec" + "ret"  # of the account that may use it


def system_of(server):
    """The server's files as pyarrow has them."""
    return fs.S3FileSystem(
        access_key="key", secret_key=SECRET, endpoint_override=server.address, scheme="http", region="us-east-1",
        allow_bucket_creation=True,
    )  # fmt: skip


@contextlib.contextmanager
def object_server(folder):
    """Runs for as long as the context; its log lies in the folder."""
    port = free_port()
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


class Faulty(http.server.BaseHTTPRequestHandler):
    """Passes requests on, and fails now and then: `server.faults` are taken one by one by requests for `server.of`."""

    def _pass(self):
        with self.server.counted:
            self.server.now += 1
            self.server.most = max(self.server.most, self.server.now)
        try:
            self._answer()
        finally:
            with self.server.counted:
                self.server.now -= 1

    def _answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or None
        fault = self.server.faults.pop() if self.server.faults and self.server.of in self.path else None
        self.server.seen.append(fault)
        if self.server.slow_s:
            time.sleep(self.server.slow_s)
        if fault in ("500", "403"):
            text = (
                b"" if fault == "500" else b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
            )
            self.send_response(int(fault))
            self.send_header("Content-Length", str(len(text)))
            self.send_header("Content-Type", "application/xml")
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else text)
            self.close_connection = True
            return
        wanted = {name: value for name, value in self.headers.items() if name != "Content-Length"}
        asked = urllib.request.Request(self.server.to + self.path, body, wanted, method=self.command)  # noqa: S310
        try:
            answer = urllib.request.urlopen(asked, timeout=30)  # noqa: S310 - the server of this test
        except urllib.error.HTTPError as error:
            answer = error
        data = answer.read()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            if name not in ("Connection", "Transfer-Encoding", "Content-Length"):
                self.send_header(name, value)
        self.send_header("Content-Length", answer.headers.get("Content-Length") or str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if fault == "cut" else data)
        self.close_connection = True

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass  # noqa: N815 - names of the standard library

    def log_message(self, *_):
        """Says nothing."""


@contextlib.contextmanager
def faulty_proxy(server):
    """A proxy of a server: its `faults` to come, those `seen`, a pause for each request, and `most` at one time."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Faulty) as proxy:
        proxy.to, proxy.faults, proxy.seen, proxy.of = f"http://{server.address}", [], [], ".parquet"
        proxy.slow_s, proxy.now, proxy.most, proxy.counted = 0.0, 0, 0, threading.Lock()
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        yield proxy
        proxy.shutdown()
        thread.join()
