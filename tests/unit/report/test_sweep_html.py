"""The page of a sweep."""

import json

import pytest
from hostile import check_html

from pipeprof.experiment.sweep.table import table_content
from pipeprof.report import sweep
from pipeprof.report.charts import variants
from pipeprof.report.document import text

TABLE = """table_id,row_in_table,variant,options,is_baseline,configure_ms,warmup_first_ms,warmup_second_ms,inference_ms
a,1,base,,1,1.0,2.0,2.0,10.0
a,2,fast,--fast,0,1.0,30.0,2.0,5.0
a,3,slow,--slow,0,1.0,30.0,2.0,15.0
b,1,base,,1,1.0,2.0,2.0,8.0
b,2,<script>alert(1)</script>,--x,0,1.0,2.0,2.0,7.0
"""


@pytest.fixture
def content(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(TABLE, encoding="utf-8")
    return table_content(path, None)


def values(spec):
    return spec.get("data", {}).get("values", []) + [row for part in spec.get("layer", []) for row in values(part)]


def test_a_chart_for_each_table_has_a_mark_for_each_variant(content):
    first, second = variants.charts_of(content)
    assert [(row["variant"], row["value"]) for row in values(first.spec)] == [
        ("base", 10.0),
        ("fast", 5.0),
        ("slow", 15.0),
    ]
    assert first.said == "2 variants and the base, the lowest is fast: 5.00 ms"
    assert second.title == "Steady step of each variant: b"
    colours = first.spec["layer"][0]["encoding"]["color"]["scale"]
    assert colours["domain"] == ["base", "better", "worse"]
    assert len(set(colours["range"])) == 3


def test_where_more_is_better_the_best_is_the_highest(content):
    for table in content["tables"]:
        for row in table["rows"]:
            row["stages"] = {"throughput": {**row["stages"][content["judge"]], "unit": "", "direction": "higher"}}
    assert "the highest is slow" in variants.charts_of(content | {"judge": "throughput"})[0].said


def test_a_variant_that_failed_is_not_named_as_the_best(content):
    content["tables"][0]["rows"][1]["verdict"] = "failed"
    assert "the lowest is base: 10.0 ms" in variants.charts_of(content)[0].said


def test_intervals_are_drawn_where_they_are_known(content):
    stage = content["tables"][0]["rows"][1]["stages"][content["judge"]]
    stage |= {"low": 4.5e6, "high": 5.5e6}
    chart = variants.charts_of(content)[0]
    spans = values(chart.spec["layer"][1])
    assert [(row["variant"], row["low"], row["high"]) for row in spans] == [("fast", 4.5, 5.5)]
    assert chart.caption.endswith("A line is the 95 % interval.")


def test_the_page_says_what_the_terminal_says_and_names_are_inert(content):
    page = text(sweep.document(content), "html")
    check_html(page)
    for section in sweep.document(content).sections:
        for block in section.blocks:
            assert all(f">{cell}</td>" in page for row in block.rows for cell in row if cell.isalnum())


def test_a_browser_draws_it_without_a_complaint(content, opened):
    page = opened(text(sweep.document(json.loads(json.dumps(content))), "html"), 400)
    assert page.locator("#chart-variants-0 g.mark-symbol.role-mark path").count() == 3
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
