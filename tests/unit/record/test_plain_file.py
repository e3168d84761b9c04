"""Files of others: regular ones alone, and no further than a limit."""

import ast
import gzip
import os
from pathlib import Path

import pytest

import pipeprof
from pipeprof.errors import UsageError
from pipeprof.record import limits, plain_file
from pipeprof.record.plain_file import RefusedError, TooLargeError, cut_file, open_file, read_file

ALLOWED = {  # what is ours (a template, a query) or the machine's (the process table, its nodes, the limit of a container)
    # or was opened through the one door
    "query/header.py", "record/schema.py", "query/process_memory.py", "record/plain_file.py", "record/lock.py", "record/limits.py", "experiment/trial.py", "experiment/sweep/bench.py",
    "read/chrome/spill.py", "read/tables/ranks.py", "report/charts/chart.py", "report/charts/script.py", "experiment/peak.py", "experiment/workload.py", "experiment/tune/bench.py", "report/kept.py", "report/page.py",
}  # fmt: skip


def made(kind, folder):
    path = folder / "file"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    return path


@pytest.mark.parametrize(("kind", "name"), [("pipe", "a pipe"), ("folder", "a folder"), ("device", "a device")])
@pytest.mark.parametrize("read", [lambda path: read_file(path, 10), open_file])
def test_nothing_but_a_regular_file_is_opened(tmp_path, kind, name, read):
    path = made(kind, tmp_path)
    with pytest.raises(RefusedError, match=f"^it is {name}, expected a regular file$"):
        read(path)


def test_a_link_counts_while_it_stays_inside(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    home.joinpath("file").write_bytes(b"ours")
    tmp_path.joinpath("secret").write_bytes(b"theirs")
    home.joinpath("in").symlink_to("file")
    home.joinpath("out").symlink_to("../secret")
    assert read_file(home / "in", 10, inside=home) == b"ours"
    assert read_file(home / "out", 10) == b"theirs"
    with pytest.raises(RefusedError, match="it is a link to"):
        read_file(home / "out", 10, inside=home)
    tmp_path.joinpath("name").symlink_to("home")  # a folder that is a link itself is as good as any
    assert read_file(tmp_path / "name" / "file", 10, inside=tmp_path / "name") == b"ours"


def test_a_size_is_held_while_reading_and_not_by_what_the_file_says(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 11)
    with pytest.raises(TooLargeError, match=r"has more than 10 bytes; .* PIPEPROF_MAX_BYTES"):
        read_file(path, 10)
    monkeypatch.setenv("PIPEPROF_MAX_BYTES", "11")
    assert len(read_file(path, 10)) == 11
    path.write_bytes(b"x" * 1000)
    with open_file(path, packed=False) as file, pytest.raises(TooLargeError):
        file.read()


def test_what_a_file_unpacks_to_is_limited(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(b"x" * 100_000))
    with open_file(path) as file:
        assert file.read() == b"x" * 100_000
    monkeypatch.setenv("PIPEPROF_MAX_BYTES", "50000")
    with open_file(path) as file, pytest.raises(TooLargeError, match="unpacked, it has more than 50,000 bytes"):
        file.read()


def test_of_a_file_with_holes_little_is_read(tmp_path, monkeypatch):
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    data, whole = cut_file(path, 1 << 30)
    assert (len(data), whole) == (1 << 26, False)
    with pytest.raises(TooLargeError, match="67,108,864 bytes"):
        read_file(path, 1 << 30)
    with monkeypatch.context() as patch:
        patch.setenv("PIPEPROF_MAX_BYTES", str(1 << 27))
        assert len(cut_file(path, 1 << 30)[0]) == 1 << 27
    monkeypatch.setattr(limits, "_PACKED_FEW", 1 << 20)
    with open_file(path) as file, pytest.raises(TooLargeError, match="1,048,576 bytes"):  # noqa: PT012
        while file.read1(1 << 18):
            pass


def test_what_stands_in_front_of_damage_is_read(tmp_path):
    path = tmp_path / "file"
    whole = gzip.compress(os.urandom(100_000))
    path.write_bytes(whole[:60_000])
    got = b""
    with open_file(path) as file, pytest.raises(EOFError):  # noqa: PT012
        while piece := file.read1(1 << 16):
            got += piece
    assert len(got) > 50_000


def test_reading_takes_an_end(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 300_000)
    clock = iter([0.0, 1.0, 3601.0])
    monkeypatch.setattr(plain_file.time, "monotonic", lambda: next(clock))
    with open_file(path, packed=False) as file:
        assert file.read1(10) == b"x" * 10
        with pytest.raises(TooLargeError, match="reading it took more than 3600 s"):
            file.read1(10)


@pytest.mark.parametrize("text", ["0", "-1", "1e9", "x", "9" * 30, "\u00b2"])
def test_a_limit_that_is_no_number_is_said(tmp_path, monkeypatch, text):
    monkeypatch.setenv("PIPEPROF_MAX_BYTES", text)
    tmp_path.joinpath("file").write_bytes(b"")
    with pytest.raises(UsageError, match="PIPEPROF_MAX_BYTES"):
        read_file(tmp_path / "file", 10)


def test_nothing_else_opens_files():
    """Whoever reads a file goes through `plain_file`; what is read for other reasons is named here."""
    root = Path(pipeprof.__file__).parent
    found = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and _reads(node)
    }
    assert {name for name in found if not name.startswith("collect/")} <= ALLOWED


def _reads(call):
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in ("read_bytes", "read_text"):
        return True
    owner = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    words = [
        word.value for word in [*call.args, *(key.value for key in call.keywords)] if isinstance(word, ast.Constant)
    ]
    modes = [word for word in words if isinstance(word, str) and set(word) <= set("rwabtx+")]
    return name == "open" and (
        owner == "gzip" or bool(modes and "r" in modes[0]) or (not modes and "encoding" in ast.unparse(call))
    )
