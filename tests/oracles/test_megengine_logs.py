"""load_and_run's logs and tables: what we compute against what they print."""

import csv
import re
import shutil

import lar_logs
import pytest
from captured import CAPTURES, outside

from pipeprof.experiment.sweep.table import read_option_table
from pipeprof.read.foreign import import_path
from pipeprof.read.megengine.load_and_run import parse_log, read_log
from pipeprof.units import ns_from_text

MADE = [(form, seed) for form in lar_logs.FORMS for seed in (1, 2)]
PUBLISHED = [path for folder in outside("megengine/lar_logs") for path in sorted(folder.glob("*/*.log"))]
TABLES = [CAPTURES / "options.csv", *outside("megengine/load_and_run_tables.csv")]
US = 1000


@pytest.fixture(params=[*MADE, *PUBLISHED], ids=str)
def path(request, tmp_path):
    """A log."""
    if request.param in PUBLISHED:
        return request.param
    path = tmp_path / "made.log"
    path.write_text(lar_logs.log(*request.param), encoding="utf-8")
    return path


def test_mean_deviation_and_ends_are_those_that_are_printed(path):
    log = read_log(path)
    assert log.complete
    (test,) = log.tests
    assert len(test.iterations) == 10
    printed = re.search(r"min(?:max)?=([0-9.]+)(?: ms max=|,)([0-9.]+)", path.read_text(encoding="utf-8"))
    assert (min(test.iterations), max(test.iterations)) == tuple(ns_from_text(text, "ms") for text in printed.groups())
    assert abs(test.mean_ns - test.printed.mean_ns) <= US
    assert abs(test.deviation_ns - test.printed.deviation_ns) <= US
    assert log.load_ns is not None
    assert test.configure_ns is not None
    assert len(test.warmup_ns) == 1


def test_nearly_every_line_is_understood(path):
    assert read_log(path).unknown_lines <= 1


def test_a_log_may_end_anywhere(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    for end in range(len(lines)):
        log = parse_log(lines[:end])
        done = sum(line.startswith("iter ") for line in lines[:end])
        assert sum(len(test.iterations) for test in log.tests) == done
        assert not log.complete or any(line.startswith("=== finished") for line in lines[:end])


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_the_speed_ups_of_the_option_tables_are_those_in_the_file(table):
    variants = read_option_table(table)
    bases = {row.table: row.times["steady"] for row in variants if row.is_baseline}
    ours = {(row.table, row.row): bases[row.table] / row.times["steady"] for row in variants if row.times.get("steady")}
    with table.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["inference_speedup_vs_baseline"]]
    assert len(rows) >= 15
    for row in rows:
        found = ours[row["table_id"], int(row["row_in_table"])]
        assert f"{found:.3f}" == row["inference_speedup_vs_baseline"]


def test_the_logs_are_imported_with_the_deviations_that_are_printed(tmp_path):
    folder = tmp_path / "logs"
    logs = lar_logs.write(folder)
    for path in PUBLISHED:
        shutil.copy(path, folder)
        logs.append(folder / path.name)
    logs.sort()
    run = import_path(folder, tmp_path / "run")
    checks = run.manifest.options["load_and_run"]
    assert len(checks) == len(run.manifest.reps) == len(logs)
    assert run.manifest.state == "complete"
    for check in checks:
        assert abs(check["deviation_ns"] - check["printed_deviation_ns"]) <= US
    assert not [warning for warning in run.manifest.warnings if "not that of the iterations" in warning.message]
    left_out = [warning.message for warning in run.manifest.warnings if warning.code == "left_out"]
    assert [int(count) for message in left_out for count in re.findall(r"left out (\d+) times?: ", message)] == [
        read_log(path).unknown_lines for path in logs if read_log(path).unknown_lines
    ]
