"""Two traces whose difference is the wait for the data loader: it is named, whatever the trace files it as."""

import pytest
from kineto_files import training, write_trace

import pipeprof
from pipeprof.read.foreign import import_path


@pytest.mark.parametrize("before", ["cpu_op", "user_annotation"])
@pytest.mark.parametrize("after", ["cpu_op", "user_annotation"])
def test_a_stall_of_the_data_loader_explains_the_growth(tmp_path, before, after):
    for name, wait_us, cat in (("base", 100, before), ("new", 900, after)):
        trace = write_trace(tmp_path / f"{name}.pt.trace.json", training(wait_us=wait_us, cat=cat))
        import_path(trace, tmp_path / name)
    found = pipeprof.compare(tmp_path / "base", tmp_path / "new")["explanation"]
    waits = [item for item in found if item["what"] == "time before the forward pass"]
    assert [0.9 <= item["share"] <= 1.1 for item in waits] == [True]
    named = [item["kind"] for item in found if "DataLoader" in str(item)]
    assert named == ["pipeline_op"]  # and no operator that appeared or vanished
