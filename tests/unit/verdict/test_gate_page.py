"""The pages of the gate are written by hand: they must name every key, default, prefix and exit code."""

from pathlib import Path

import pytest

from pipeprof.verdict.gate.policy import PREFIXES, Acknowledgement, Policy, Rule
from pipeprof.verdict.gate.result import EXIT

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("gate.md", "policy.md"))
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("|")]


@pytest.mark.parametrize("kind", [Policy, Rule, Acknowledgement])
def test_every_key_has_its_row(kind):
    named = {row[0].strip("`") for row in ROWS}
    assert set(kind.__struct_fields__) <= named


def test_every_metric_of_the_default_policy_has_its_defaults():
    written = {row[0].removesuffix(" (exact)").strip("`"): row[1:] for row in ROWS}
    for name, rule in Policy().metrics.items():
        family, unit, *numbers = written[name]
        assert (family, unit) == (rule.family, rule.unit)
        assert [float(number.replace(",", "")) for number in numbers] == [rule.min_effect, rule.floor, rule.margin]


def test_every_prefix_is_named():
    assert [prefix for prefix in PREFIXES if f"`{prefix}`" not in PAGE] == []


def test_every_word_has_its_exit_code():
    written = {row[0]: row[-1] for row in ROWS}
    assert {word: written[word] for word in EXIT} == {word: str(code) for word, code in EXIT.items()}
