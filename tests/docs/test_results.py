"""The page of results and the README: no figure without its source, no claim without its figure, no link to nowhere."""

import json
import re
import sys

import pytest
from play import ROOT

RESULTS = ROOT / "lab" / "results.json"
HERE = "https://github.com/pipeprof/pipeprof/blob/main/"
RAW = "https://raw.githubusercontent.com/pipeprof/pipeprof/main/"
FIGURE = re.compile(r"\d[\d.,]* (?:%|GB|s\b)(?: of \d+)?|\b\d+ of \d+\b")


def figures():
    sections = json.loads(RESULTS.read_text(encoding="utf-8"))["sections"]
    return [entry for section in sections for entry in section["figures"]]


def flat(path):
    return " ".join(path.read_text(encoding="utf-8").split())


def prose(page):
    """A page without its blocks of code."""
    return re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def claims():
    return FIGURE.findall(" ".join(prose(ROOT / "README.md").split()))


def test_each_figure_stands_where_it_is_from():
    texts = {source: flat(ROOT / source) for source in {entry["source"] for entry in figures()}}
    missing = [
        (entry["figure"], part)
        for entry in figures()
        for part in entry.get("stands", [entry["figure"]])
        if part not in texts[entry["source"]]
    ]
    assert missing == []


def test_each_figure_has_a_command_that_is_there():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    unknown = []
    for entry in figures():
        program, *words = entry["command"].split("do ")[-1].split()
        if program == "python":
            module = words[1].replace(".", "/") + ".py" if words[0] == "-m" else words[0]
            known = module == "pytest.py" or (ROOT / module).is_file()
        else:
            known = program == "bash" or (program == "pipeprof" and words) or words[0] in targets
        unknown += [] if known else [entry["command"]]
    assert unknown == []


def test_each_figure_of_the_readme_stands_among_the_results():
    found = claims()
    assert len(found) >= 12
    page = flat(ROOT / "docs" / "results.md")
    assert [claim for claim in found if claim not in page] == []


def test_links_of_the_readme_are_absolute_and_lead_somewhere():
    """It is shown by package indexes, too, where a relative link is dead."""
    targets = re.findall(r"\]\(([^)\s]+)\)", prose(ROOT / "README.md"))
    assert [target for target in targets if not target.startswith("https://")] == []
    own = [target.removeprefix(start) for target in targets for start in (HERE, RAW) if target.startswith(start)]
    assert len(own) > 10
    assert [path for path in own if not (ROOT / path.partition("#")[0]).exists()] == []


def test_the_picture_of_the_terminal_is_todays(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import pictures

    monkeypatch.delitem(sys.modules, "pictures")
    assert pictures.main(["--check"]) == 0, "run `make pictures` and look at them"


@pytest.mark.parametrize("text", ["97.8 % of 232", "45 of 58", "557 s", "1.0 GB"])
def test_a_figure_is_noticed(text):
    assert FIGURE.findall(f"It is {text}, and so on.") == [text]
