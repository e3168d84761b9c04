"""Where a report may be written."""

from pathlib import Path

import pytest

from pipeprof.errors import UsageError
from pipeprof.report.output import check_free


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/null", "/proc/self/fd/1"])
def test_a_device_is_no_place_for_a_file_that_is_renamed(name):
    """`/dev/stdout` is a link to what the shell made stdout, such as a file: it would be replaced for everybody."""
    with pytest.raises(UsageError, match="not a file"):
        check_free(Path(name), force=True)


def test_a_new_name_is_free_and_one_that_is_there_needs_force(tmp_path):
    check_free(tmp_path / "new", force=False)
    (tmp_path / "there").touch()
    check_free(tmp_path / "there", force=True)
    with pytest.raises(UsageError, match="exists"):
        check_free(tmp_path / "there", force=False)
