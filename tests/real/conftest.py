"""Copies of the captures, converted."""

from pathlib import Path

import pytest
from copies import copy_tree

from pipeprof.query.engine import Engine
from pipeprof.read.spool.finish import open_run
from pipeprof.record import store

CAPTURES = Path(__file__).parent / "captures"


class Converted:
    """A capture as a run."""

    def __init__(self, path):
        self.run = open_run(path)
        self.manifest = self.run.manifest

    def rows(self, table):
        return store.read(self.run, table).to_pylist()

    def sql(self, text):
        with Engine.open(self.run) as engine:
            return engine.sql(text).to_pylist()


@pytest.fixture(scope="session")
def converted(tmp_path_factory):
    """`converted(name)`: the capture, recovered once as after a crash of the launcher, for all tests."""
    known = {}

    def convert(name):
        if name not in known:
            path = tmp_path_factory.mktemp("capture") / name
            copy_tree(CAPTURES / name, path)
            known[name] = Converted(path)
        return known[name]

    return convert
