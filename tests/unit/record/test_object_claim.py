"""Of writers of different things below one prefix, one at a time writes."""

import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from pyarrow import fs

from pipeprof.record.objects import CLAIM, Objects, claimed


@pytest.fixture
def objects(tmp_path):
    return Objects(fs.LocalFileSystem(), str(tmp_path / "RUN"), "file:///RUN")


def claims(objects, tmp_path):
    return [path.name for path in (tmp_path / "RUN").iterdir() if path.name.startswith(CLAIM)]


def never(_seconds):
    raise InterruptedError


def test_a_claim_is_there_while_it_is_held_and_writers_of_the_same_do_not_wait_for_each_other(objects, tmp_path):
    with claimed(objects, "one"):
        (name,) = claims(objects, tmp_path)
        assert name.endswith("-one")
    assert claims(objects, tmp_path) == []
    with claimed(objects, "one", never), claimed(objects, "one", never):
        pass


@pytest.mark.parametrize("seed", range(5))
def test_no_two_writers_hold_it_at_once(objects, monkeypatch, seed):
    """Each lists the claims at a moment of its own."""
    rng = random.Random(seed)  # noqa: S311 - the same each time
    inside, most, lock = [], [], threading.Lock()
    listed = objects.listed

    def late():
        time.sleep(rng.random() / 50)
        found = listed()
        time.sleep(rng.random() / 50)
        return found

    monkeypatch.setattr(objects, "listed", late)

    def write(subject):
        with claimed(objects, subject, lambda _seconds: time.sleep(rng.random() / 50)):
            with lock:
                inside.append(subject)
                most.append(len(inside))
            time.sleep(0.02)
            with lock:
                inside.remove(subject)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write, [f"w{number}" for number in range(6)]))
    assert most == [1] * 6


def test_the_claim_of_a_writer_that_was_killed_is_removed(objects, tmp_path):
    objects.put(f"{CLAIM}{'0' * 16}-other", b"x")
    dead = tmp_path / "RUN" / f"{CLAIM}{'0' * 16}-other"

    for age, is_gone in ((50, False), (70, True)):
        old = time.time() - age
        os.utime(dead, (old, old))
        with suppress(InterruptedError), claimed(objects, "one", never):
            assert is_gone
        assert dead.exists() is not is_gone


def test_a_claim_that_is_alive_is_waited_for(objects, tmp_path):
    objects.put(f"{CLAIM}{'0' * 16}-other", b"x")
    waited = []

    def pause(seconds):
        waited.append(seconds)
        assert len(claims(objects, tmp_path)) == 1  # the own one was taken back: the other has the smaller name
        if len(waited) == 3:
            objects.discard(f"{CLAIM}{'0' * 16}-other")

    with claimed(objects, "one", pause):
        assert len(waited) == 3
