"""A local S3 server, and what a process needs to reach it."""

from __future__ import annotations

import pytest
from object_server import SECRET, object_server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with object_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def storage_account(monkeypatch, tmp_path):
    """Credentials in the environment, and a cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
