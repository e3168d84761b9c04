"""What a sweep's result looks like, as text and as a page, and the recommended option set in forms that can be used."""

import json
import subprocess

import pytest
from chart_values import values
from hostile import check_html

from pipeprof.experiment.sweep.table import table_content
from pipeprof.report.charts import variants
from pipeprof.report.document import text as text_of
from pipeprof.report.sweep import ahead, document, export, plain_rows, ratio, span, words

OPTIONS = {
    "env": {"OMP_NUM_THREADS": 2}, "args": ["--lr", "0.1 "], "dataset": {"op": "Map", "workers": 2, "processes": True},
    "context": {"mode": "graph"},
}  # fmt: skip
IN_SCRIPT = (
    "# in the script: Map number 1: num_parallel_workers = 2, python_multiprocessing = True\n"
    "# in the script, in MindSpore's context: mode = graph\n"
)


def stage(value, verdict="base", unit="ns", **more):
    found = {"value": value, "low": value * 0.9, "high": value * 1.1, "reps": 5, "unit": unit, "verdict": verdict}
    return found | {"direction": "lower"} | more


def row(name, verdict, factor=1.0, **more):
    told = {} if verdict == "base" else {"ratio": factor, "ratio_low": factor - 0.1, "ratio_high": factor + 0.1}
    stages = {
        "configure": stage(3e9), "setup": stage(4e9, verdict, **told), "steady": stage(factor * 1e8, verdict, **told),
        "throughput": stage(10 / factor, verdict, "1/s"), "peak_memory": stage(2.0**30, verdict, "bytes"),
    }  # fmt: skip
    return {
        "key": f"0/{name}", "name": name, "verdict": verdict, "options": {}, "stages": stages, "pareto": True,
        "break_even": None if verdict == "base" else {"kind": "after", "steps": 40, "low": 20, "high": None},
        "failures": [],
    } | more  # fmt: skip


@pytest.fixture
def content():
    never = {"kind": "unknown", "steps": None, "low": None, "high": None}
    broken = {"stages": {}, "failures": ["run-0003: exit code 1"], "pareto": False, "break_even": never}
    rows = [row("base", "base"), row("fast", "better", 0.5, options=OPTIONS), row("idle", "within noise")]
    rows.append(row("broken | odd", "failed", **broken))
    best = {"name": "fast", "by": "steady", "steps": None, "options": OPTIONS, "not_told_apart": [], "reason": ""}
    table = {
        "name": "", "reference": "base", "alpha": 0.01, "family": 3, "looks": [5, 8], "noise": None, "rows": rows,
        "pareto": ["base", "fast"], "best": best, "notes": [],
    }  # fmt: skip
    return {
        "schema_version": 1, "kind": "measured", "title": "Loader", "judge": "steady", "steps": None, "tables": [table],
        "recommendation": best, "notes": ["a note"],
    }  # fmt: skip


def test_the_terminal_says_what_to_take_and_why_and_markdown_has_the_same_rows(content):
    text = text_of(document(content))
    for said in (
        "Recommended: `fast` (best steady step)", "x0.500 (0.4 to 0.6)", "20 to never",
        "in the script: Map number 1: num_parallel_workers = 2, python_multiprocessing = True",
        "3 variants share alpha 0.01 over looks at 5, 8 rounds", "broken | odd: run-0003: exit code 1",
    ):  # fmt: skip
        assert said in text
    assert max(map(len, text.splitlines())) <= 120
    text = text_of(document(content), "markdown")
    assert text.startswith("# Loader\n")
    assert "| fast | better | 50.0 ms | x0.500 (0.4 to 0.6) |" in text
    assert "broken \\| odd" in text


def test_flat_rows_have_a_line_per_stage_and_one_for_a_variant_without(content):
    rows = list(plain_rows(content))
    assert [row["stage"] for row in rows if row["variant"] == "broken | odd"] == [""]
    assert len(rows) == 3 * 5 + 1
    made = {"prepare": [["make", "a b"]], "command": ["run", "it"], "args": ["-x"]}
    assert words(made) == """prepare:'make '"'"'a b'"'"'' command:'run it' -x"""
    assert words(OPTIONS) == "OMP_NUM_THREADS=2 --lr '0.1 ' dataset:op=Map,workers=2,processes=True context:mode=graph"


def test_exports_hold_what_the_form_can_and_tell_the_rest(content):
    assert export(content, "env") == f"# fast\n# --lr '0.1 '\n{IN_SCRIPT}export OMP_NUM_THREADS=2\n"
    assert export(content, "args") == f"# fast\n# export OMP_NUM_THREADS=2\n{IN_SCRIPT}--lr '0.1 '\n"
    assert export(content | {"recommendation": None}, "env") == "# base: there is no recommendation\n"


def test_numbers_for_people():
    assert ratio({"ratio": 0.5, "ratio_low": 0.4, "ratio_high": 0.6}, with_interval=False) == "x0.500"
    assert ratio({"ratio": None}) == ratio(None) == "-"
    assert ahead({"kind": "at once", "steps": 0}) == "at once"
    assert ahead({"kind": "unknown", "steps": None}) == ahead(None) == "-"
    assert span({"low": 20, "high": 120}) == "20 to 120"


def test_exports_of_several_lines_are_read_by_a_shell_as_they_were_meant_and_comments_stay_comments():
    options = {"args": ["a\nb", "--x=\x7f"], "env": {"A": "1\n2"}}
    found = {"recommendation": {"name": "x\nexit 3", "reason": "", "options": options}}
    words = [line for line in export(found, "args").split("\n") if not line.startswith("#")]
    for script, printed in (
        (export(found, "env") + 'printf %s "$A"', b"1\n2"), ("printf '%s|' " + "\n".join(words), b"a\nb|--x=\x7f|"),
    ):  # fmt: skip
        assert subprocess.run(["bash", "-ec", script], capture_output=True, check=True).stdout == printed


TABLE = """table_id,row_in_table,variant,options,is_baseline,configure_ms,warmup_first_ms,warmup_second_ms,inference_ms
a,1,base,,1,1.0,2.0,2.0,10.0
a,2,fast,--fast,0,1.0,30.0,2.0,5.0
a,3,slow,--slow,0,1.0,30.0,2.0,15.0
b,1,base,,1,1.0,2.0,2.0,8.0
b,2,<script>alert(1)</script>,--x,0,1.0,2.0,2.0,7.0
"""


@pytest.fixture
def swept(tmp_path):
    (tmp_path / "table.csv").write_text(TABLE, encoding="utf-8")
    return table_content(tmp_path / "table.csv", None)


def test_a_chart_for_each_table_has_a_mark_for_each_variant(swept):
    first, second = variants.charts_of(swept)
    marks = [(row["variant"], row["value"]) for row in values(first.spec)]
    assert marks == [("base", 10.0), ("fast", 5.0), ("slow", 15.0)]
    assert first.said == "2 variants and the base, the lowest is fast: 5.00 ms"
    assert second.title == "Steady step of each variant: b"
    colours = first.spec["layer"][0]["encoding"]["color"]["scale"]
    assert colours["domain"] == ["base", "better", "worse"]
    assert len(set(colours["range"])) == 3


def test_where_more_is_better_the_best_is_the_highest_and_a_variant_that_failed_is_none(swept):
    swept["tables"][0]["rows"][1]["verdict"] = "failed"
    assert "the lowest is base: 10.0 ms" in variants.charts_of(swept)[0].said
    for table in swept["tables"]:
        for row in table["rows"]:
            row["stages"] = {"throughput": {**row["stages"][swept["judge"]], "unit": "", "direction": "higher"}}
    assert "the highest is slow" in variants.charts_of(swept | {"judge": "throughput"})[0].said


def test_intervals_are_drawn_where_they_are_known(swept):
    swept["tables"][0]["rows"][1]["stages"][swept["judge"]] |= {"low": 4.5e6, "high": 5.5e6}
    chart = variants.charts_of(swept)[0]
    spans = values(chart.spec["layer"][1])
    assert [(row["variant"], row["low"], row["high"]) for row in spans] == [("fast", 4.5, 5.5)]
    assert chart.caption.endswith("A line is the 95 % interval.")


def test_the_page_says_what_the_terminal_says_and_names_are_inert(swept):
    page = text_of(document(swept), "html")
    check_html(page)
    cells = [cell for part in document(swept).sections for block in part.blocks for row in block.rows for cell in row]
    assert [cell for cell in cells if cell.isalnum() and f">{cell}</td>" not in page] == []


def test_a_browser_draws_it_without_a_complaint(swept, opened):
    page = opened(text_of(document(json.loads(json.dumps(swept))), "html"), 400)
    assert page.locator("#chart-variants-0 g.mark-symbol.role-mark path").count() == 3
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
