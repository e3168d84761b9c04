"""What is compiled for a wheel: one file for all Pythons, or nothing, with a line that says why."""

import sys
import sysconfig
import types
from pathlib import Path

import pytest
from action_steps import load_tool

CONTENT = b"\x7fELF GLIBC_2.4 GLIBC_2.17 GLIBC_2.2.5"


@pytest.fixture
def tool(monkeypatch):
    """tools/compile_hooks.py, without hatchling, which is there while a wheel is built alone."""
    name = "hatchling.builders.hooks.plugin.interface"
    monkeypatch.setitem(sys.modules, name, types.SimpleNamespace(BuildHookInterface=object))
    for parent in ("hatchling", "hatchling.builders", "hatchling.builders.hooks", "hatchling.builders.hooks.plugin"):
        monkeypatch.setitem(sys.modules, parent, types.ModuleType(parent))
    module = load_tool("compile_hooks")
    monkeypatch.delenv("PIPEPROF_NO_COMPILED", raising=False)
    return module


@pytest.fixture
def built(tool, tmp_path, monkeypatch):
    """`built(version, content)`: what the build is told, and the lines that it says; a compiler that writes `content`."""
    include = tmp_path / "include"
    include.mkdir()
    include.joinpath("Python.h").touch()
    monkeypatch.setattr(sysconfig, "get_path", lambda _name: str(include))
    monkeypatch.setattr(sysconfig, "get_platform", lambda: "linux-x86_64")
    monkeypatch.setenv("CC", "cc -m64")
    (tmp_path / tool.FOLDER).mkdir(parents=True)

    def build(version="standard", content=CONTENT, fails=""):
        def run(command, **_options):
            is_compiler = command[:2] == ["cc", "-m64"]
            if is_compiler and content is not None:
                Path(command[-1]).write_bytes(content)
            code = int(fails == ("cc" if is_compiler else "load"))
            return types.SimpleNamespace(returncode=code, stderr="warning: a\nerror: b\n")

        monkeypatch.setattr(tool.subprocess, "run", run)
        said, data = [], {"force_include": {}, "pure_python": True}
        hook = tool.CompiledHooks()
        hook.root, hook.app = str(tmp_path), types.SimpleNamespace(display_warning=said.append)
        hook.initialize(version, data)
        hook.finalize(version, data, "a.whl")
        return data, said

    return build


def test_a_wheel_holds_the_file_and_is_for_every_python_of_its_platform_or_this_machine(built):
    data, said = built()
    assert said == []
    assert (data["tag"], data["pure_python"]) == ("cp310-abi3-manylinux_2_17_x86_64", False)
    assert list(data["force_include"].values()) == ["pipeprof/collect/probe/_hooks.abi3.so"]
    assert built(content=CONTENT + b" GLIBC_2.34")[0]["tag"] == "cp310-abi3-linux_x86_64"  # a newer glibc is needed


def test_an_editable_installation_has_it_in_the_tree(built, tool, tmp_path):
    data, said = built("editable")
    assert (said, data) == ([], {"force_include": {}, "pure_python": True})
    assert (tmp_path / tool.FOLDER / tool.NAME).read_bytes() == CONTENT


@pytest.mark.parametrize("why", ["asked", "compiler", "header", "failed", "load"])
@pytest.mark.parametrize("version", ["standard", "editable"])
def test_where_it_cannot_be_compiled_one_line_says_so_and_the_wheel_is_for_all(
    built, tool, tmp_path, monkeypatch, version, why
):
    (tmp_path / tool.FOLDER / tool.NAME).write_bytes(b"of an older source")
    if why == "asked":
        monkeypatch.setenv("PIPEPROF_NO_COMPILED", "1")
    elif why == "compiler":
        monkeypatch.delenv("CC")
        monkeypatch.setattr(tool.shutil, "which", lambda _name: None)
    elif why == "header":
        (tmp_path / "include" / "Python.h").unlink()
    data, said = built(version, fails={"failed": "cc", "load": "load"}.get(why, ""))
    assert len(said) == 1
    assert data == {"force_include": {}, "pure_python": True}
    assert version == "standard" or not (tmp_path / tool.FOLDER / tool.NAME).exists()
