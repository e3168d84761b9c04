"""Runs the commands of the pages and holds what a page shows against what they print.

python tests/docs/play.py --write     write the output of the commands in `console` blocks anew (also: `make docs`)
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import click

sys.path.insert(0, str(Path(__file__).parent))
import workspace
from blocks import PROMPT, Block, Command, blocks, commands

ROOT = workspace.ROOT
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LIMIT = "300s"
SHOWN = 30
"""Lines of an output that a page shows; longer ones end with an ellipsis."""


class Played(NamedTuple):
    """What became of a page: failures in words, and its text with the outputs of now."""

    failures: list[str]
    text: str


def play(page: Path, folder: Path) -> Played:
    """Run the blocks of a page one after the other in a prepared folder."""
    lines = page.read_text(encoding="utf-8").splitlines()
    failures, shift = [], 0
    for block in blocks(page):
        where = f"{page.relative_to(ROOT)}:{block.start + 1}"
        if block.language in {"sh", "console"}:
            shown, problems = _typed(block, folder, parse_only=block.remark == "not run" or page.name == "cli.md")
            failures += [f"{where}: {problem}" for problem in problems]
            if block.language == "console" and block.remark != "not run":
                lines[block.start + shift : block.end + shift] = shown
                shift += len(shown) - len(block.lines)
        elif block.language == "python":
            failures += [f"{where}: {problem}" for problem in _python(block, folder)]
    return Played(failures, "\n".join(lines) + "\n")


def _typed(block: Block, folder: Path, *, parse_only: bool) -> tuple[list[str], list[str]]:
    """(lines that the block shows, problems) of the commands of a block."""
    shown, problems = [], []
    for command in commands(block):
        problems += _unparsed(command)
        shown.append(PROMPT + command.text)
        if parse_only or command.trains or command.text.startswith("make "):
            continue
        code, output = run(command.text, folder)
        if code not in command.exit_codes:
            problems.append(f"`{command.text}` ended with {code}, not {command.exit_codes}:\n{output}")
        shown += output.splitlines() if len(output.splitlines()) <= SHOWN else [*output.splitlines()[:SHOWN], "..."]
    return shown, problems


def run(text: str, folder: Path) -> tuple[int, str]:
    """(exit code, what a terminal of 80 columns shows) of a line of shell."""
    hidden = ("PIPEPROF_", "FP_POINT", "BP_POINT", "PROFILING_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    path = os.pathsep.join([str(folder / "bin"), str(Path(sys.executable).parent), kept["PATH"]])
    environment = kept | {"PATH": path, "COLUMNS": "80", "LINES": "24", "TERM": "dumb", "NO_COLOR": "1"}
    environment["HOME"] = str(folder / "home")
    outer, inner = pty.openpty()  # what a page shows is what a reader sees, and a pipe is not a terminal
    with subprocess.Popen(
        ["timeout", LIMIT, "bash", "-o", "pipefail", "-c", text],
        cwd=folder,
        env=environment,
        stdin=inner,
        stdout=inner,
        stderr=inner,
    ) as process:
        os.close(inner)
        output = b"".join(_read(outer))
    os.close(outer)
    printed = output.decode().replace("\r\n", "\n").replace(str(folder) + "/", "")
    return process.returncode, "\n".join(line.rstrip() for line in printed.splitlines()).strip("\n")


def _read(descriptor: int):
    while True:
        try:
            piece = os.read(descriptor, 1 << 16)
        except OSError:  # what a terminal says when nobody holds its other end
            return
        if not piece:
            return
        yield piece


def _unparsed(command: Command) -> list[str]:
    """What the verbs say against the words of a command, without running it."""
    problems = []
    for program, *words in command.calls:
        try:
            if program == "make":
                subprocess.run(["make", "--dry-run", *words], cwd=ROOT, check=True, capture_output=True)
            else:
                parse(words)
        except (click.ClickException, subprocess.CalledProcessError) as error:
            problems.append(f"`{command.text}`: {error}")
    return problems


def parse(words: list[str]) -> None:
    """Parse a command line as `pipeprof` would; raises click.ClickException."""
    from pipeprof.cli import cli

    context = cli.make_context("pipeprof", list(words))
    while isinstance(context.command, click.Group) and (rest := [*context._protected_args, *context.args]):
        name, command, rest = context.command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)


def _python(block: Block, folder: Path) -> list[str]:
    source = "\n".join(block.lines)
    try:
        compile(source, "block", "exec")
    except SyntaxError as error:
        return [str(error)]
    if block.remark == "only compiled":
        return []
    done = subprocess.run([sys.executable, "-c", source], cwd=folder, capture_output=True, text=True)
    return [done.stderr] if done.returncode else []


def main() -> int:
    """Write the outputs of all pages anew."""
    failures = []
    for page in PAGES:
        if "```console" in page.read_text(encoding="utf-8"):
            with tempfile.TemporaryDirectory() as place:
                played = play(page, workspace.make(Path(place) / "pages"))
            failures += played.failures
            if played.text != page.read_text(encoding="utf-8"):
                page.write_text(played.text, encoding="utf-8")
                print(f"wrote {page}")
    print(*failures, sep="\n", end="")
    return 1 if failures else 0


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    sys.exit(main())
