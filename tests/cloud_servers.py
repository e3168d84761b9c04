"""Servers on this machine that speak the protocols of Google's and of Azure's storage."""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import NamedTuple

from free_port import free_port
from pyarrow import fs

ACCOUNT = "devstoreaccount1"
AZURITE = shutil.which("azurite-blob")
KEY = base64.b64encode(bytes(range(64))).decode()


class Cloud(NamedTuple):
    """A running server: what its URLs begin with and end with, and the environment that its users have."""

    scheme: str
    address: str
    options: str = ""

    def url(self, path, address=""):
        """The URL of a path in the bucket `bucket`, or of one that begins with `/`, in another one."""
        user = "anonymous@" if self.scheme == "gs" else ""
        options = self.options.replace(self.address, address or self.address)
        return f"{self.scheme}://{user}{path[1:] if path.startswith('/') else f'bucket/{path}'}{options}"

    def shown(self, path):
        """The same as people see it."""
        return f"{self.scheme}://bucket/{path}"

    def environment(self, address="", key=KEY):
        """What is set besides."""
        if self.scheme == "gs":
            return {}
        endpoint = f"http://{address or self.address}/{ACCOUNT}"
        return {"AZURE_STORAGE_CONNECTION_STRING": f"AccountName={ACCOUNT};AccountKey={key};BlobEndpoint={endpoint};"}

    def system(self):
        """Its file system, made by hand."""
        if self.scheme == "gs":
            return fs.GcsFileSystem(anonymous=True, scheme="http", endpoint_override=self.address, project_id="p")
        at = {"blob_storage_authority": self.address, "dfs_storage_authority": self.address}
        return fs.AzureFileSystem(ACCOUNT, account_key=KEY, blob_storage_scheme="http", dfs_storage_scheme="http", **at)


@contextlib.contextmanager
def google_server(folder):
    """gcp-storage-emulator, with an empty bucket; it asks for no login."""
    port = free_port()
    words = [sys.executable, "-m", "gcp_storage_emulator", "start", "--port", str(port), "--in-memory"]
    with _running(words, folder, port):
        address = f"127.0.0.1:{port}"
        yield _with_bucket(Cloud("gs", address, f"?endpoint_override={address}&scheme=http"))


@contextlib.contextmanager
def azure_server(folder):
    """Azurite, with an empty container; it checks signatures."""
    port = free_port()
    words = [AZURITE, "--disableTelemetry", "--inMemoryPersistence", "--skipApiVersionCheck", "--blobPort", str(port)]
    with _running(words, folder, port):
        yield _with_bucket(Cloud("az", f"127.0.0.1:{port}"))


def _with_bucket(cloud):
    cloud.system().create_dir("bucket")
    return cloud


@contextlib.contextmanager
def _running(words, folder, port):
    environment = os.environ | {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"}
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(words, cwd=folder, stdout=log, stderr=log, env=environment)
    try:
        while not _answers(port):
            assert process.poll() is None, (folder / "server.log").read_text()
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait()


def _answers(port):
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True
