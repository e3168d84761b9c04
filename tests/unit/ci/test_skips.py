"""A skip that is not on the list, or that this machine gives no reason for, makes a session fail."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import skips

TESTS = Path(skips.__file__).parent
LABEL = "takes minutes: PIPEPROF_LABEL=1 runs it"
COULD = "root may write anywhere" if os.geteuid() else "mounting a small disk needs root"


def session(folder, modules, *options):
    """How pytest ended on these modules."""
    for number, text in enumerate(modules):
        (folder / f"test_{number}.py").write_text(f"import pytest\n\n{text}\n")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "skips", "-p", "no:cacheprovider", *options]
    environment = {name: value for name, value in os.environ.items() if name != "PIPEPROF_LABEL"}
    environment["PYTHONPATH"] = str(TESTS)
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def skipped(reason, number=1):
    return f"@pytest.mark.parametrize('n', range({number}))\ndef test_it(n):\n    pytest.skip({reason!r})\n"


def test_as_many_as_there_may_be_pass_where_they_could_not_run(tmp_path):
    done = session(tmp_path, [skipped(LABEL, skips.MOST)])
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["alone", "worker"])
def test_the_session_fails_and_says_which_and_why(tmp_path, options):
    modules = [skipped("needs a cup of tea"), skipped(COULD), "pytest.skip('no reason', allow_module_level=True)",
               skipped(LABEL, skips.MOST)]  # fmt: skip
    done = session(tmp_path, modules, *options)
    assert done.returncode == 1, done.stdout
    assert done.stdout.partition("tests/skips.py does not allow")[2].splitlines()[1:5] == [
        f"{skips.MOST + 3} tests were skipped, {skips.MOST} at most may be",
        "test_0.py::test_it[0] is not on the list: needs a cup of tea",
        f"test_1.py::test_it[0] could have run here: {COULD}",
        "test_2.py is not on the list: no reason",
    ]


def test_every_entry_is_the_reason_of_a_test():
    """What no test says any more is off the list."""
    written = "\n".join(path.read_text(encoding="utf-8") for path in TESTS.rglob("*.py") if path.name != "skips.py")
    reasons = [skip.reason for skip in skips.SKIPS if not skip.reason.startswith("could not import")]
    begins = {
        re.split(r"\.\*|mindcv|mindone|mindyolo|^(?:torch|transformers|lightning) ", reason)[0]
        or "is not installed: make test-"
        for reason in reasons
    }
    assert [begin for begin in begins if begin not in written] == []
