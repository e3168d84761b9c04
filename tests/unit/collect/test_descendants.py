"""New processes below known ones: found at any depth, asked once, and asked again when numbers begin anew."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pipeprof.collect.host import Descendants


@pytest.fixture
def machine(tmp_path):
    """`machine(latest, parents)` makes /proc; returns the descendants of it, which note whom they asked."""

    class Asked(Descendants):
        asked: list[int] = []  # noqa: RUF012 - of this test alone

        def _parent(self, pid):
            self.asked.append(pid)
            return super()._parent(pid)

    Asked.asked = []

    def make(latest, parents):
        for folder in tmp_path.glob("[0-9]*"):
            (folder / "stat").unlink()
            folder.rmdir()
        (tmp_path / "loadavg").write_text(f"0.1 0.2 0.3 1/100 {latest}\n")
        (tmp_path / "self").mkdir(exist_ok=True)
        for pid, parent in parents.items():
            (tmp_path / str(pid)).mkdir()
            (tmp_path / str(pid) / "stat").write_text(f"{pid} (a) b (c)) S {parent} 1 1 0\n")

    return make, Asked(tmp_path)


def test_descendants_of_any_depth_are_found(machine):
    make, descendants = machine
    make(40, {1: 0, 10: 1, 30: 20, 20: 10, 21: 20, 40: 1, 41: 40})
    assert descendants.new_below({10}) == {20, 21, 30}


def test_a_process_is_asked_once(machine):
    make, descendants = machine
    others = dict.fromkeys(range(100, 400), 1)
    make(400, {10: 1, **others})
    assert descendants.new_below({10}) == set()
    assert len(descendants.asked) == 300
    descendants.asked.clear()
    make(402, {10: 1, **others, 401: 1, 402: 10})
    assert descendants.new_below({10}) == {402}
    assert sorted(descendants.asked) == [401, 402]


def test_a_number_that_is_given_out_again_is_asked_again(machine):
    make, descendants = machine
    make(400, {10: 1, 300: 1})
    descendants.new_below({10})
    make(401, {10: 1})
    descendants.new_below({10})
    make(402, {10: 1, 300: 10})  # it was gone in between
    assert descendants.new_below({10}) == {300}
    make(500, {10: 1, 350: 1})
    descendants.new_below({10})
    make(360, {10: 1, 350: 10})  # numbers began anew between two looks
    assert descendants.new_below({10}) == {350}


def test_nothing_is_listed_while_no_process_has_begun(machine, monkeypatch):
    make, descendants = machine
    make(400, {10: 1, 300: 1})
    assert descendants.new_below({10}) == set()
    monkeypatch.setattr(os, "listdir", lambda _folder: pytest.fail("listed"))
    assert descendants.new_below({10}) == set()


def test_where_the_latest_id_is_not_told_all_are_asked_each_time(machine, tmp_path):
    make, descendants = machine
    make(400, {10: 1, 300: 1})
    (tmp_path / "loadavg").unlink()
    assert descendants.new_below({10}) == set()
    (tmp_path / "300" / "stat").write_text("300 (other) S 10 1")
    assert descendants.new_below({10}) == {300}


def test_real_processes_are_found():
    program = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(flush=True); input()'])"
    descendants = Descendants()
    before = descendants.new_below({os.getpid()})
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        found = descendants.new_below({os.getpid(), *before})
        child.communicate(b"\n")
    assert child.pid in found
    assert len(found) == 2
