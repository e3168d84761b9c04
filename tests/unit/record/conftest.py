"""A local S3 server, what a process needs to reach it, and a run to be stored there."""

import shutil
from pathlib import Path

import pytest
from copies import copy_tree
from object_server import SECRET, faulty_proxy, object_server, system_of

from pipeprof.read.spool.finish import open_run
from pipeprof.record.compact import compact

CAPTURE = Path(__file__).parents[2] / "real" / "captures" / "2.10-ranks"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with object_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def faulty(server):
    with faulty_proxy(server) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def system(server):
    return system_of(server)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The run of a real training on two ranks, complete and compacted."""
    folder = tmp_path_factory.mktemp("recorded") / "RUN"
    copy_tree(CAPTURE, folder)
    open_run(folder)
    shutil.rmtree(folder / "spool")
    compact(folder)
    return folder


@pytest.fixture
def storage_account(monkeypatch, tmp_path):
    """Credentials in the environment, and a cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)


@pytest.fixture
def root(tmp_path):
    """Where baselines are kept."""
    return tmp_path / "baselines"
