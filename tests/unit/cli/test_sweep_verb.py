"""`pipeprof sweep`: formats, exports, exit codes, and what it refuses."""

import csv
import io
import json
import sys
from functools import partial

import pytest

SCRIPT = """
import os, sys
kind = os.environ.get("KIND", "")
if kind == "broken":
    sys.exit("no such layer")
number = int(open("count").read())
open("count", "w").write(str(number + 1))
level = {"fast": 50, "slow": 150}.get(kind, 100)
print("ready after", 20 * level, "ms")
print("first", level * 2, "ms")
print("step", level * (1 + number % 3 / 1000), "ms")
"""
FILE = """
measure = "regex"
looks = [3]
[stages]
configure = {pattern = "ready after (.*) ms"}
warmup_first = {pattern = "first (.*) ms"}
steady = {pattern = "^step (.*) ms"}
[[variant]]
name = "fast"
env = {KIND = "fast"}
args = ["--quick way"]
[[variant]]
name = "slow"
env = {KIND = "slow"}
[[variant]]
name = "same"
env = {KIND = "same"}
[[variant]]
name = "broken"
env = {KIND = "broken"}
"""
TABLE = """table_id,row_in_table,variant,options,is_baseline,configure_ms,warmup_first_ms,warmup_second_ms,inference_ms
t,1,fast,--fast,0,110.0,10.0,,50.0
t,2,base,,1,10.0,10.0,,100.0
"""


@pytest.fixture
def sweep(verb, tmp_path):
    for name, text in (("train.py", SCRIPT), ("count", "0"), ("s.toml", FILE), ("t.csv", TABLE)):
        (tmp_path / name).write_text(text)
    return partial(verb, "sweep")


def test_one_sweep_in_every_format(sweep):
    words = ("s.toml", "-o", "out", "--", sys.executable, "train.py")
    code, out, err = sweep("--format", "json", *words)
    assert code == 0, err
    found = json.loads(out)
    assert next(iter(found)) == "schema_version"
    verdicts = {row["name"]: row["verdict"] for row in found["tables"][0]["rows"]}
    expected = {"base": "base", "fast": "better", "slow": "worse", "same": "within noise", "broken": "failed"}
    assert verdicts == expected
    assert "check after 3 rounds" in err
    _, terminal, _ = sweep(*words)
    assert "Recommended: `fast` (best steady step)" in terminal
    assert "within noise: same" in terminal
    assert "no such layer" in terminal
    assert "\x1b[" not in terminal
    _, markdown, _ = sweep("--format", "markdown", *words)
    assert markdown.startswith("# Sweep\n")
    assert "| fast | better |" in markdown
    _, text, _ = sweep("--format", "csv", *words)
    rows = list(csv.DictReader(io.StringIO(text)))
    steady = next(row for row in rows if (row["variant"], row["stage"]) == ("fast", "steady"))
    assert float(steady["ratio"]) == pytest.approx(0.5, rel=0.01)
    assert steady["options"] == "KIND=fast '--quick way'"
    assert sweep("--export", "env", *words)[1] == "# fast\n# '--quick way'\nexport KIND=fast\n"
    assert sweep("--export", "args", *words)[1] == "# fast\n# export KIND=fast\n'--quick way'\n"


def test_published_tables_are_shown_without_a_run(sweep):
    code, out, err = sweep("--table", "t.csv", "--steps", "1000")
    assert (code, err) == (0, "")
    assert "Recommended: `fast` (lowest total time for 1,000 steps)" in out
    assert "after 2 steps" in out
    assert sweep("--table", "t.csv", "--export", "args")[1].splitlines()[-1] == "--fast"
    assert json.loads(sweep("--table", "t.csv", "--format", "json")[1])["kind"] == "table"


def test_what_it_refuses(sweep, tmp_path):
    for words, code, said in (
        ((), 2, "give a sweep file"),
        (("s.toml", "--table", "t.csv"), 2, "give a sweep file"),
        (("--table", "t.csv", "--export", "env", "--format", "json"), 2, "--export is a form of text of its own"),
        (("none.toml",), 2, "cannot read the sweep `none.toml`"),
        (("s.toml",), 2, "no command to run"),
        (("s.toml", "--budget", "soon", "--", "true"), 2, "`soon`"),
        (("--table", "none.csv"), 3, "cannot read `none.csv`: No such file"),
        (("--table", "t.csv", "--steps", "9" * 400), 2, "expected 0 to 1000000000000"),
        (("s.toml", "-o", "out2", "--", sys.executable, "-c", "raise SystemExit(7)"), 5, "`base` failed"),
    ):
        found, out, err = sweep(*words)
        assert (found, out) == (code, ""), (words, err)
        assert said in err
        assert "Traceback" not in err
    (tmp_path / "u.toml").write_text(FILE + "\n[bass]\n")
    assert "`bass`" in sweep("u.toml", "--", "true")[2]
