"""Files of other programs become no more rows than they may, whichever reader takes them."""

import pytest
from ascend_files import write_graph
from kineto_files import training, write_trace
from minddata_files import write_feed

from pipeprof.errors import SourceError
from pipeprof.read.foreign import import_path
from pipeprof.record import limits


def write_kineto(folder):
    write_trace(folder / "x.pt.trace.json", training(3))


@pytest.mark.parametrize("write", [write_graph, write_kineto, write_feed])
def test_too_many_rows_end_the_import_with_the_variable_that_allows_more(write, tmp_path, monkeypatch):
    source = tmp_path / "raw"
    source.mkdir()
    write(source)
    monkeypatch.setenv(limits.ROWS, "1")
    with pytest.raises(SourceError, match="the files become more than 1 rows of the table `") as caught:
        import_path(source, tmp_path / "run")
    assert limits.ROWS in caught.value.hint
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]
    monkeypatch.setenv(limits.ROWS, "1000000")
    assert import_path(source, tmp_path / "run").manifest.tables
