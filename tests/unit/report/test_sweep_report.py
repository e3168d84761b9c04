"""What a sweep's result looks like, and the recommended option set in forms that can be used."""

import subprocess

import pytest

from pipeprof.report.document import text as text_of
from pipeprof.report.sweep import ahead, document, export, plain_rows, ratio, span, words

OPTIONS = {
    "env": {"OMP_NUM_THREADS": 2},
    "args": ["--lr", "0.1 "],
    "dataset": {"op": "Map", "workers": 2, "processes": True},
    "context": {"mode": "graph"},
}


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
    broken = row("broken | odd", "failed", stages={}, failures=["run-0003: exit code 1"], pareto=False)
    broken["break_even"] = {"kind": "unknown", "steps": None, "low": None, "high": None}
    rows = [row("base", "base"), row("fast", "better", 0.5, options=OPTIONS), row("idle", "within noise"), broken]
    best = {"name": "fast", "by": "steady", "steps": None, "options": OPTIONS, "not_told_apart": [], "reason": ""}
    table = {
        "name": "", "reference": "base", "alpha": 0.01, "family": 3, "looks": [5, 8], "noise": None, "rows": rows,
        "pareto": ["base", "fast"], "best": best, "notes": [],
    }  # fmt: skip
    return {
        "schema_version": 1, "kind": "measured", "title": "Loader", "judge": "steady", "steps": None, "tables": [table],
        "recommendation": best, "notes": ["a note"],
    }  # fmt: skip


def test_the_terminal_says_what_to_take_and_why(content):
    text = text_of(document(content))
    assert "Recommended: `fast` (best steady step)" in text
    assert "in the script: Map number 1: num_parallel_workers = 2, python_multiprocessing = True" in text
    assert "3 variants share alpha 0.01 over looks at 5, 8 rounds" in text
    assert "x0.500 (0.4 to 0.6)" in text
    assert "20 to never" in text
    assert "broken | odd: run-0003: exit code 1" in text
    assert max(map(len, text.splitlines())) <= 120


def test_markdown_has_the_same_rows_and_escapes_names(content):
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
    in_script = (
        "# in the script: Map number 1: num_parallel_workers = 2, python_multiprocessing = True\n"
        "# in the script, in MindSpore's context: mode = graph\n"
    )
    assert export(content, "env") == f"# fast\n# --lr '0.1 '\n{in_script}export OMP_NUM_THREADS=2\n"
    assert export(content, "args") == f"# fast\n# export OMP_NUM_THREADS=2\n{in_script}--lr '0.1 '\n"
    assert export(content | {"recommendation": None}, "env") == "# base: there is no recommendation\n"


def test_numbers_for_people():
    assert ratio({"ratio": 0.5, "ratio_low": 0.4, "ratio_high": 0.6}, with_interval=False) == "x0.500"
    assert ratio({"ratio": None}) == ratio(None) == "-"
    assert ahead({"kind": "at once", "steps": 0}) == "at once"
    assert ahead({"kind": "unknown", "steps": None}) == ahead(None) == "-"
    assert span({"low": 20, "high": 120}) == "20 to 120"


@pytest.fixture
def several_lines():
    options = {"args": ["a\nb", "--x=\x7f"], "env": {"A": "1\n2"}}
    return {"recommendation": {"name": "x\nexit 3", "reason": "", "options": options}}


def test_exported_variables_of_several_lines_are_read_by_a_shell_as_they_were_meant(several_lines):
    script = export(several_lines, "env") + 'printf %s "$A"'
    done = subprocess.run(["bash", "-ec", script], capture_output=True, check=True)
    assert done.stdout == b"1\n2"


def test_exported_words_of_several_lines_are_one_command_line_below_comments(several_lines):
    words = [line for line in export(several_lines, "args").split("\n") if not line.startswith("#")]
    said = subprocess.run(
        ["bash", "-c", "printf '%s|' " + "\n".join(words)], capture_output=True, text=True, check=True
    )
    assert said.stdout == "a\nb|--x=\x7f|"
