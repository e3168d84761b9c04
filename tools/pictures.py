"""Draws the pictures of the README from a stored run: `make pictures`.

docs/pictures/report.svg is what `pipeprof report slow` prints on a terminal, docs/pictures/page.png the top of the page
that `--format html` writes. The run is the one of the tutorial, tests/docs/captures/slow.tar.xz. Needs Chromium.

python tools/pictures.py          draw both
python tools/pictures.py --check  exit with 1 when the terminal of today shows something else
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
COMMAND = ["pipeprof", "report", "slow"]
COLUMNS, ROWS = 80, 26
PAGE_SIZE = "1200,960"
_FONTS = re.compile(r"@font-face \{\{.*?\}\}\s*", re.DOTALL)  # from elsewhere: a picture asks for nothing


def main(arguments: list[str]) -> int:
    """Draw, or compare with the stored picture."""
    with tempfile.TemporaryDirectory(prefix="pictures-") as place:
        folder = Path(place)
        _unpack(folder / "slow")
        drawn = terminal(folder)
        stored = PICTURES / "report.svg"
        if "--check" in arguments:
            return 0 if stored.is_file() and words(stored.read_text(encoding="utf-8")) == words(drawn) else 1
        PICTURES.mkdir(exist_ok=True)
        stored.write_text(drawn, encoding="utf-8")
        _page(folder, PICTURES / "page.png")
    return 0


def terminal(folder: Path) -> str:
    """An SVG of the report on the run `slow` in a folder, as a terminal of 80 columns shows it."""
    size = {"COLUMNS": str(COLUMNS), "LINES": str(ROWS)}
    environment = {**os.environ, **size, "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    printed = _pipeprof(COMMAND[1:], folder, environment)
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text(f"$ {' '.join(COMMAND)}", style="bold green"))
    console.print(Text.from_ansi(printed.rstrip("\n")))
    style = _FONTS.sub("", CONSOLE_SVG_FORMAT).replace(
        "Fira Code, monospace", "ui-monospace, Menlo, Consolas, monospace"
    )
    picture = console.export_svg(title="pipeprof", code_format=style, unique_id="report")
    return "\n".join(line.rstrip() for line in picture.splitlines()) + "\n"


def words(picture: str) -> list[str]:
    """The texts of an SVG: what it says, however this version of Rich draws it."""
    return re.findall(r"<text[^>]*>([^<]+)</text>", picture)


def _page(folder: Path, picture: Path) -> None:
    """A screenshot of the top of the page."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        raise SystemExit("pictures: Chromium is needed for docs/pictures/page.png")
    _pipeprof(["report", "slow", "--format", "html", "-o", "page.html"], folder, dict(os.environ))
    options = [
        "--headless",
        "--no-sandbox",
        "--hide-scrollbars",
        "--force-color-profile=srgb",
        "--virtual-time-budget=20000",
    ]
    size = f"--window-size={PAGE_SIZE}"
    taken = [program, *options, size, f"--screenshot={picture}", (folder / "page.html").as_uri()]
    subprocess.run(taken, check=True, capture_output=True)


def _pipeprof(words: list[str], folder: Path, environment: dict[str, str]) -> str:
    command = [sys.executable, "-m", "pipeprof", *words]
    return subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True).stdout


def _unpack(folder: Path) -> None:
    sys.path.insert(0, str(ROOT / "lab" / "accuracy"))
    from archive import unpack  # noqa: PLC0415 - the folder is known from here on

    unpack(ROOT / "tests" / "docs" / "captures" / "slow.tar.xz", folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
