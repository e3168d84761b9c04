"""Which account and login an object storage is asked with, from the environment, and how that is put into words.

Two clients are asked only where a login is there: without one, Azure's ends the process, and Google's asks for minutes.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from pipeprof.errors import UsageError

CONNECTION, ACCOUNT, KEY, SAS = (
    f"AZURE_STORAGE_{name}" for name in ("CONNECTION_STRING", "ACCOUNT", "KEY", "SAS_TOKEN")
)
KEY_FILE = "GOOGLE_APPLICATION_CREDENTIALS"
_GOOGLE_LOGIN = ".config/gcloud/application_default_credentials.json"  # below the home folder
_ENDPOINT = f"https://ACCOUNT.blob.HOST or http://HOST:PORT/ACCOUNT, in {CONNECTION}"
_LOGIN_S = 120  # the tools of Azure that its client starts take some seconds each
_LOOK = """
import sys
sys.path[:] = {!r}  # without the current folder, which may hold another `pyarrow.py`
import json, resource
from pyarrow import fs
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
fs.AzureFileSystem(**json.loads(sys.argv[1])).get_file_info("x")
"""
_WHAT = re.compile(r"what\(\): +(.*)")


class Words(NamedTuple):
    """How one storage calls its buckets, what else says where they are, and what gives the login."""

    bucket: str
    where: str
    login: str


_S3 = Words("bucket", "its region and endpoint_override", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
_GOOGLE = Words("bucket", "its endpoint_override", f"{KEY_FILE}, or `gcloud auth application-default login`")
_AZURE = Words("container", "the account", f"{CONNECTION}, or {ACCOUNT} with {KEY}, {SAS} or `az login`")


def words(url: str) -> Words:
    """The words of the storage that a URL names."""
    return {"gs": _GOOGLE, "gcs": _GOOGLE, "az": _AZURE}.get(url.partition("://")[0], _S3)


def refuse_no_google_login(url: str) -> None:
    """Raises UsageError where Google's client can find no login: no file, and a machine that is none of Google's."""
    home = Path(os.environ.get("HOME", "/"))
    login = os.environ.get("GOOGLE_GCLOUD_ADC_PATH_OVERRIDE") or home / _GOOGLE_LOGIN
    if urlsplit(url).username == "anonymous" or os.environ.get(KEY_FILE) or Path(login).exists():
        return
    try:
        socket.getaddrinfo(os.environ.get("GCE_METADATA_HOST") or "metadata.google.internal", 80)
    except OSError as error:
        raise UsageError(
            f"no login for Google Cloud: {KEY_FILE} is not set, and `{login}` is not there",
            f"set {KEY_FILE} to the file of a key, or run `gcloud auth application-default login`; "
            "gs://anonymous@bucket/prefix for a public bucket",
        ) from error


def azure_account() -> dict[str, str]:
    """The arguments of pyarrow's AzureFileSystem. Raises UsageError where they are missing, or cannot be right.

    AZURE_STORAGE_CONNECTION_STRING counts before AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_KEY or
    AZURE_STORAGE_SAS_TOKEN. Without a key and a token, the login is one that Azure's client finds.
    """
    text, account = os.environ.get(CONNECTION), os.environ.get(ACCOUNT)
    if text:
        arguments = _connected(text)
    elif account:
        secrets = {"account_key": os.environ.get(KEY), "sas_token": os.environ.get(SAS)}
        arguments = {"account_name": account} | {name: value.strip() for name, value in secrets.items() if value}
    else:
        raise UsageError(
            f"{ACCOUNT} is not set", f"set it and {KEY} or {SAS}, or set {CONNECTION}, as the portal of Azure shows it"
        )
    if "account_key" in arguments:
        arguments.pop("sas_token", None)
        _refuse_odd_key(arguments["account_key"], CONNECTION if text else KEY)
    elif "sas_token" in arguments:
        arguments["sas_token"] = "?" + arguments["sas_token"].lstrip("?")
    else:
        _refuse_no_azure_login(json.dumps(arguments))
    return arguments


def _connected(text: str) -> dict[str, str]:
    parts = dict(part.strip().partition("=")[::2] for part in text.split(";"))
    endpoint = urlsplit(parts.get("BlobEndpoint", "").rstrip("/"))
    account = parts.get("AccountName") or (endpoint.hostname or "").partition(".")[0]
    if not account:
        raise UsageError(
            f"{CONNECTION} names no account", "expected AccountName=...;AccountKey=..., as the portal of Azure shows it"
        )
    if endpoint.netloc:
        scheme, blob = endpoint.scheme, _authority(endpoint, account)
    else:
        scheme = parts.get("DefaultEndpointsProtocol", "https")
        blob = f".blob.{parts.get('EndpointSuffix') or 'core.windows.net'}"
    secrets = {"account_key": parts.get("AccountKey"), "sas_token": parts.get("SharedAccessSignature")}
    return {
        "account_name": account, "blob_storage_scheme": scheme, "dfs_storage_scheme": scheme,
        "blob_storage_authority": blob, "dfs_storage_authority": blob.replace(".blob.", ".dfs.", 1),
    } | {name: value for name, value in secrets.items() if value}  # fmt: skip


def _authority(endpoint: SplitResult, account: str) -> str:
    """As pyarrow takes it: with a dot in front where the account stands before it, and otherwise in the path."""
    if endpoint.netloc.startswith(f"{account}.") and not endpoint.path:
        return endpoint.netloc[len(account) :]
    if endpoint.path == f"/{account}":
        return endpoint.netloc
    raise UsageError(f"cannot use the BlobEndpoint `{endpoint.netloc}{endpoint.path}`", f"expected {_ENDPOINT}")


def _refuse_odd_key(key: str, where: str) -> None:
    try:
        base64.b64decode(key, validate=True)
    except ValueError as error:
        raise UsageError(
            f"the key in {where} is no key of Azure: it is not base64", "copy the whole key, with the `=` at its end"
        ) from error


@functools.cache
def _refuse_no_azure_login(arguments: str) -> None:
    """Ask once in a process of its own, which Azure's client ends where it finds no login."""
    try:
        command = [sys.executable, "-c", _LOOK.format(sys.path), arguments]
        done = subprocess.run(command, capture_output=True, timeout=_LOGIN_S, check=False)
    except subprocess.TimeoutExpired:
        why = f"no answer within {_LOGIN_S} seconds"
    else:
        if done.returncode != -signal.SIGABRT:  # other failures come again here, as errors
            return
        why = "".join(_WHAT.findall(done.stderr.decode(errors="replace"))[:1])
    raise UsageError(
        f"no login for the Azure account `{json.loads(arguments)['account_name']}`: {why}",
        f"set {KEY} or {SAS}, or log in with `az login`",
    )
