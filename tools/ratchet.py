"""Counts what must not become more, room by room, beside the limits in `tools/ratchet.json`; `--write` lowers them.

Today these are subscripts by a text, `row["share"]`: mypy checks no such name. Rows of queries have types, in
`pipeprof/query/rows.py`. Exit code 1 when a room has more than its limit.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMITS = Path(__file__).with_suffix(".json")
HINT = "read the rows of a query as its type in pipeprof/query/rows.py, or other facts as a class of yours"


def subscripts(text: str) -> int:
    """How many subscripts by a text some Python has; `Literal["a"]` is a type, and none."""
    return sum(
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
        and not (isinstance(node.value, ast.Name) and node.value.id == "Literal")
        for node in ast.walk(ast.parse(text))
    )


def counted(package: Path) -> dict[str, int]:
    """The number of each room of the package that has any; files beside the rooms are one."""
    rooms: Counter[str] = Counter()
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).parts
        rooms[parts[0] if len(parts) > 1 else "."] += subscripts(path.read_text(encoding="utf-8"))
    return {room: number for room, number in sorted(rooms.items()) if number}


def main(arguments: list[str], package: Path = ROOT / "pipeprof", limits: Path = LIMITS) -> int:
    """Compare, or write lower limits; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="lower the limits to what there is; raises none")
    write = parser.parse_args(arguments).write
    most: dict[str, int] = json.loads(limits.read_text(encoding="utf-8"))
    found = counted(package)
    more = {room: number for room, number in found.items() if number > most.get(room, 0)}
    for room, number in more.items():
        print(f"error: {room}/ has {number} subscripts by a text, at most {most.get(room, 0)}", file=sys.stderr)
    if more:
        print(f"hint: {HINT}", file=sys.stderr)
    lower = {room: number for room in most if (number := min(most[room], found.get(room, 0)))}
    if write:
        limits.write_text(json.dumps(lower, indent=2) + "\n", encoding="utf-8")
    elif lower != most:
        print(f"{sum(most.values()) - sum(lower.values())} fewer than allowed: `python tools/ratchet.py --write`")
    return 1 if more else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
