"""The tests that docs/security.md names are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMED = re.compile(r"`((?:\w+/)+test_\w+\.py)::(test_\w+)`")


def test_each_test_that_the_page_names_is_there():
    named = NAMED.findall((ROOT / "docs/security.md").read_text(encoding="utf-8"))
    assert len(named) > 30
    texts = {file: (ROOT / "tests/unit" / file).read_text(encoding="utf-8") for file, _ in named}
    assert [(file, name) for file, name in named if f"def {name}(" not in texts[file]] == []
