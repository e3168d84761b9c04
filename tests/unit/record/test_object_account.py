"""The login of a storage is looked for in a process of its own, which loads nothing of the current folder."""

import pytest

from pipeprof.record import object_account


@pytest.mark.parametrize("module", ["json", "pyarrow"])
def test_nothing_of_the_current_folder_is_loaded(tmp_path, monkeypatch, module):
    tmp_path.joinpath(f"{module}.py").write_text("open('loaded', 'w')\n")
    monkeypatch.chdir(tmp_path)
    object_account._refuse_no_azure_login.__wrapped__("{}")
    assert not tmp_path.joinpath("loaded").exists()
