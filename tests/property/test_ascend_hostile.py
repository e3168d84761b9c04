"""Names and links that lead elsewhere, and columns in another order."""

import csv
import io
import json
import random

import pytest
from ascend_files import write_graph, write_output
from ascend_judge import judge, place

from pipeprof.read.foreign import import_path


@pytest.mark.parametrize("name", ["rank=../../../x", "a..\\x", "a\nb", "rank999999999999", "-rf", "\x1b[31m"])
def test_no_name_leads_outside_of_the_run(name):
    with place() as folder:
        write_output(folder / "raw" / f"{name.replace('/', '')}_ascend_pt")
        info = folder / "raw" / f"{name.replace('/', '')}_ascend_pt" / "profiler_info_0.json"
        info.write_text(json.dumps({"config": {"common_config": {}}, "rank_id": f"../../{name}"}))
        assert judge(folder) is not None
        assert {path.name for path in (folder / "run").glob("*/*/*")} <= {f"rank={rank}" for rank in range(10**6)}


def test_links_are_read_or_left_out_and_never_written_to():
    with place() as folder:
        write_graph(folder / "raw")
        folder.joinpath("aside").mkdir()
        folder.joinpath("aside", "secret.csv").write_text("a,b\n1,2\n")
        for name, to in (
            ("loop", "."),
            ("out", "../aside"),
            ("none", "nowhere"),
            ("step", "step_trace_raw_0_detail_time.csv"),
        ):
            folder.joinpath("raw", name).symlink_to(to)
        try:
            judge(folder)
        finally:
            assert folder.joinpath("aside", "secret.csv").read_text() == "a,b\n1,2\n"


def test_columns_in_another_order_and_more_of_them_give_the_same():
    with place() as folder:
        path = write_graph(folder / "raw") / "step_trace_raw_0_detail_time.csv"
        rows = list(csv.reader(io.StringIO(path.read_text())))
        expected = import_path(path, folder / "one").manifest.tables
        order = list(range(len(rows[0])))
        random.Random(5).shuffle(order)  # noqa: S311
        mixed = [[*(row[index] for index in order), "x"] for row in rows]
        path.write_text("\n".join(",".join(row) for row in mixed))
        assert import_path(path, folder / "two").manifest.tables == expected
