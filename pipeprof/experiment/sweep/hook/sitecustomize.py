"""Keeps MindSpore's context as PIPEPROF_CONTEXT says, whatever the script sets: mode, jit_level, threads.

Run at the start of every Python of the command; then the `sitecustomize` that would have been run without it.
Standard library only.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import machinery, util
from pathlib import Path
from typing import Any

VARIABLE = "PIPEPROF_CONTEXT"


class Finder:
    """A meta-path finder that lets the others find, and goes on once `mindspore` was imported."""

    asking = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Spec of `mindspore` from the other finders, its loader followed by `force`."""
        if name != "mindspore" or self.asking:  # another finder of this kind may ask us in turn
            return None
        self.asking = True
        try:
            for finder in sys.meta_path:
                spec = None if finder is self else finder.find_spec(name, path, target)
                if spec is not None:
                    if spec.loader is not None:
                        _follow(spec.loader)
                    return spec
        finally:
            self.asking = False
        return None


def force(module: Any, wanted: dict[str, Any]) -> None:
    """Set the context now, and put these values into every later call that would set them otherwise."""
    forced = settings(module, wanted)
    original = module.set_context

    def set_context(**given: Any) -> None:
        config = forced.get("jit_config")
        if config and "jit_config" in given:
            given["jit_config"] = {**given["jit_config"], **config}
        given.update({name: value for name, value in forced.items() if name in given and name != "jit_config"})
        original(**given)

    module.set_context = set_context
    module.context.set_context = set_context
    original(**forced)


def settings(module: Any, wanted: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments of `mindspore.set_context` for what is wanted."""
    arguments: dict[str, Any] = {}
    if "mode" in wanted:
        arguments["mode"] = {"graph": module.GRAPH_MODE, "pynative": module.PYNATIVE_MODE}[wanted["mode"]]
    if "jit_level" in wanted:
        arguments["jit_config"] = {"jit_level": wanted["jit_level"]}
    if "threads" in wanted:
        arguments["runtime_num_threads"] = int(wanted["threads"])
    return arguments


def _follow(loader: Any) -> None:
    execute = loader.exec_module

    def exec_module(module: Any) -> None:
        if "exec_module" in vars(loader):
            del loader.exec_module
        execute(module)
        force(module, json.loads(os.environ[VARIABLE]))

    loader.exec_module = exec_module


def _run_next() -> None:
    here = str(Path(__file__).resolve().parent)
    sys.path[:] = [entry for entry in sys.path if str(Path(entry or ".").resolve()) != here]
    spec = machinery.PathFinder.find_spec("sitecustomize")
    if spec is not None and spec.loader is not None:
        module = util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    if os.environ.get(VARIABLE):
        sys.meta_path.insert(0, Finder())
    _run_next()
