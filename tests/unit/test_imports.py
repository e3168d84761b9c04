"""Each module can be the first of the package that is imported: verbs import what they need when it is needed."""

import subprocess
import sys

ONE_BY_ONE = """
import importlib, pathlib, sys
import pipeprof
root = pathlib.Path(pipeprof.__file__).parent
ROOMS = ("cli", "experiment", "inprocess", "report", "serve", "verdict")
names = [".".join(("pipeprof", *path.relative_to(root).with_suffix("").parts)) for room in ROOMS for path in sorted((root / room).rglob("*.py"))]
for name in names:
    if ".probe." in name or name.endswith("__main__"):
        continue  # entered by other ways
    for known in [known for known in sys.modules if known.partition(".")[0] == "pipeprof"]:
        del sys.modules[known]
    try:
        importlib.import_module(name.removesuffix(".__init__"))
    except ImportError as error:
        print(name, error)
"""


SLOW = {"asyncio", "numpy", "pandas", "pyarrow", "scipy"}


def test_a_report_imports_nothing_slow_that_it_does_without(make_run):
    run = make_run({"step": [{"step": 0, "kind": "train", "start_ns": 0, "end_ns": 10}]}, state="complete")
    told = f"print(sorted({SLOW} & sys.modules.keys()))"
    loads = f"import sys; from pipeprof.cli import main\ntry: main()\nfinally: {told}"
    alone = (
        f"import sys, duckdb; duckdb.sql('SELECT $a', params={{'a': 1}}); {told}"  # for that DuckDB 1.5 imports pandas
    )
    done, duckdb = (
        subprocess.run([sys.executable, "-c", *words], capture_output=True, text=True, check=False)
        for words in ([loads, "report", str(run.path)], [alone])
    )
    assert done.stdout.splitlines()[-1] == duckdb.stdout.strip(), done.stderr[-2000:]


def test_no_module_needs_another_one_first():
    done = subprocess.run([sys.executable, "-c", ONE_BY_ONE], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr[-2000:]
