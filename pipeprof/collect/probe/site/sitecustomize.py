"""Imported by every Python of the recorded process tree, because this folder stands first on PYTHONPATH.

Starts the probe, takes this folder off `sys.path` again, and runs the `sitecustomize` that would have been imported
without us. Standard library only, quiet on any failure.
"""


def _start_probe():
    import os
    import sys

    try:
        here = os.path.dirname(os.path.abspath(__file__))
        sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
        if not os.environ.get("PIPEPROF_SPOOL"):
            return
        from importlib import machinery
        from importlib._bootstrap import module_from_spec  # importlib.util has it too, and takes 4 ms to import

        folder = os.path.dirname(here)
        path = os.path.join(folder, "__init__.py")
        loader = machinery.SourceFileLoader("_pipeprof_probe", path)
        spec = machinery.ModuleSpec("_pipeprof_probe", loader, origin=path, is_package=True)
        spec.submodule_search_locations.append(folder)
        spec.has_location = True
        probe = module_from_spec(spec)
        sys.modules["_pipeprof_probe"] = probe
        loader.exec_module(probe)
        probe.start()
    except Exception:
        if os.environ.get("PIPEPROF_DEBUG"):
            raise


def _run_next():
    import sys
    from importlib import machinery
    from importlib._bootstrap import module_from_spec

    spec = machinery.PathFinder.find_spec("sitecustomize")
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_start_probe()
_run_next()
