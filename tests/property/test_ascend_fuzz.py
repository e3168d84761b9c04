"""Damaged Ascend profiles: one error in words, or a run that opens. No traceback, no hang, nothing outside of RUN."""

from __future__ import annotations

import random
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from ascend_files import training_trace, write_cpu, write_graph, write_output, write_prof
from fuzz_cases import CASES
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pipeprof.errors import PipeprofError
from pipeprof.read.foreign import import_path
from pipeprof.record import store
from pipeprof.record.run import MANIFEST, load
from pipeprof.record.schema import BY_NAME


def write_raw(folder):
    folder.mkdir(parents=True)
    folder.joinpath("training_trace.46.dev.tag.0.slice_0").write_bytes(training_trace())
    return folder


MAKERS = {"graph": write_graph, "output": write_output, "prof": write_prof, "cpu": write_cpu, "raw": write_raw}
TEXTS = [b"", b"-1", b"9" * 40, b"1e99999999", b"1e300", b"nan", b"\xff\xfe", b"\0", b'"', b"{", b"]", b",", b"\n", b"'",
         b"\\ud800", b"../../x", b"-", b"0", b"18446744073709551616", b"\xef\xbb\xbf", b"[" * 300, b"\r"]  # fmt: skip
normal = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@contextmanager
def place():
    folder = Path(tempfile.mkdtemp(prefix="pipeprof-ascend-fuzz-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def judge(folder):
    """State of the run, or None when the import was refused. A refusal leaves nothing behind, and names its place."""
    target = folder / "run"
    before = sorted(path for path in folder.rglob("*") if path.is_file())
    try:
        import_path(folder / "raw", target)
    except PipeprofError as error:
        assert "raw" in error.message  # noqa: PT017 - a refusal is one of two right answers
        assert "\n" not in error.message  # noqa: PT017
        assert sorted(path for path in folder.rglob("*") if path.is_file()) == before
        return None
    outside = [path for path in folder.rglob("*") if path.is_file() and target not in path.parents]
    assert sorted(outside) == before
    run = load(target)
    assert target.joinpath(MANIFEST).is_file()
    assert run.manifest.state in ("complete", "partial")
    assert {table: len(store.read(run, table)) for table in BY_NAME if run.files(table)} == run.manifest.tables
    return run.manifest.state


def damage(data, seed):
    """Some bytes flipped, cut, doubled, or replaced by what a parser may stumble over."""
    chance = random.Random(seed)  # noqa: S311
    found = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(0, len(found))
        match chance.randint(0, 5):
            case 0:
                del found[at:]
            case 1:
                found[at : at + chance.randint(0, 30)] = chance.choice(TEXTS)
            case 2 if at < len(found):
                found[at] ^= 1 << chance.randint(0, 7)
            case 3:
                found[at:at] = found[: chance.randint(0, 200)]
            case 4:
                found[at : at + chance.randint(0, 200)] = b""
            case _:
                found[at:at] = chance.randbytes(chance.randint(0, 40))
    return bytes(found)


def one_case(kind, seed):
    with place() as folder:
        MAKERS[kind](folder / "raw")
        files = sorted(path for path in (folder / "raw").rglob("*") if path.is_file())
        path = files[seed % len(files)]
        path.write_bytes(damage(path.read_bytes(), seed))
        judge(folder)


@pytest.mark.parametrize("kind", MAKERS)
def test_undamaged_files_are_complete(kind):
    with place() as folder:
        MAKERS[kind](folder / "raw")
        assert judge(folder) == "complete"


@pytest.mark.parametrize("kind", MAKERS)
@normal
@given(seed=st.integers(0, 2**40))
@example(seed=0)
def test_any_damage_is_an_error_in_words_or_a_run(kind, seed):
    one_case(kind, seed)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", MAKERS)
def test_many_damages_of_each_family(kind):
    for seed in range(CASES):
        one_case(kind, seed)


@pytest.mark.parametrize("kind", MAKERS)
def test_a_file_may_end_anywhere_and_may_be_empty(kind):
    for share in (0.0, 0.01, 0.5, 0.99):
        with place() as folder:
            MAKERS[kind](folder / "raw")
            for path in (folder / "raw").rglob("*"):
                if path.is_file():
                    data = path.read_bytes()
                    path.write_bytes(data[: int(len(data) * share)])
            judge(folder)
