"""What the site has more than docs/: MkDocs asks these functions while it builds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.structure.pages import Page


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """The page of queries with the columns of each; any other as it is."""
    if page.file.src_uri != "queries.md":
        return markdown
    sys.path.insert(0, str(Path(__file__).parent))
    from make_docs import queries_page  # noqa: PLC0415 - the folder is known from here on

    return queries_page()
