"""Writes the pages of docs/ that say what the program says.

tables.md from the record's schema, queries.md (a list; the site has all columns) from the headers of the .sql files,
cli.md from the verbs' help, rules.md from the rules of the verdict, results.md from lab/results.json,
decisions/index.md from the headings of the decisions, and way.svg from the rooms.

python tools/make_docs.py          write them
python tools/make_docs.py --check  exit with 1 when one of them is not up to date
"""

from __future__ import annotations

import json
import re
import sys
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeprof.cli import cli
from pipeprof.query import catalog
from pipeprof.record.schema import SCHEMA_VERSION, TABLES
from pipeprof.report.words import evidence
from pipeprof.verdict import rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pipeprof.query.header import Query
    from pipeprof.record.schema import Table
    from pipeprof.verdict.clause import Clause, Code

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
RESULTS = ROOT / "lab" / "results.json"
HERE = "https://github.com/pipeprof/pipeprof/blob/main"

_TABLES_HEAD = f"""# Tables

The tables of a run, `schema_version` {SCHEMA_VERSION}. Made by `tools/make_docs.py` from `pipeprof/record/tables.txt`.
Views on these tables: [queries](queries.md#views).

A table is a folder of Parquet files, `RUN/<table>/rep=<n>/rank=<n>/part-*.parquet`, or a single file
`RUN/<table>/rows.parquet` after `pipeprof compact`. In SQL every table begins with the columns `rep` (repetition) and
`rank` (process), both bigint. Times are whole nanoseconds since the repetition began: since the launch of the command,
or in an import since the earliest time in the files. Unknown is null, never 0; what a run did not measure is an empty
table. Write names that are reserved in SQL in double quotes (`"fetch"`).
"""

_QUERIES_HEAD = """# Queries

The SQL behind every number of a report. Made by `tools/make_docs.py` from the headers of the files in `queries/`.

The views can be used in `pipeprof sql RUN "SELECT ..."` like tables. The queries can be asked by name from Python:
`pipeprof.open("RUN").ask("step/slowest", top=5)`.
"""

_LIST_HEAD = f"""{_QUERIES_HEAD}
The parameters and the columns of each, with their units, stand at the head of its file, `queries/NAME.sql`, and on this
page of the site that `make site` builds.
"""

_CLI_HEAD = """# Command line

Every verb with its options. Made by `tools/make_docs.py` from what `pipeprof VERB --help` prints.

Results go to stdout, messages to stderr. An error is one line `error:`, usually followed by a line `hint:`.
`pipeprof --version` prints the version, and `pipeprof --no-color VERB ...` prints without colours.

| environment variable | meaning |
| --- | --- |
| `PIPEPROF_BASELINES` | where baselines are kept, unless `--root` says |
| `PIPEPROF_TOKEN` | token of `serve` and `top --listen`, 16 or more letters and digits (default: a new one each time) |
| `PIPEPROF_REDACT` | patterns of what is masked, one in a line, as with `--redact` |
| `FP_POINT`, `BP_POINT` | as `--fp-point` and `--bp-point` of `collect` |
| `PIPEPROF_IMPORT_JOBS` | how many processes an import uses |
| `PIPEPROF_MAX_BYTES` and others | [limits](limits.md) of what is read |
| `NO_COLOR` | no colours, as `--no-color` |
| `XDG_CACHE_HOME` | the cache is its folder `pipeprof` (default: `~/.cache/pipeprof`) |
"""

_RULES_HEAD = """# Rules

The tables by which the data pipeline is judged. Made by `tools/make_docs.py` from `pipeprof/verdict/rules.py`; what the
facts are and where they come from: [diagnosis.md](diagnosis.md).

Rules are tried from the first to the last. The first one whose conditions all hold decides; a fact that was not
measured meets no condition but "not measured". `report --full`, and `diagnosis.rule_name` and `diagnosis.rule_facts` in
JSON, say which rule it was, with the values that it met.
"""

_RESULTS_HEAD = """# Results

Every figure that pipeprof claims, the latest of each alone, with the command that measures it again. Times differ on
other machines. The last column leads to more: what else was measured, what came out before, what was tried and left.
Made by `tools/make_docs.py` from `lab/results.json`.
"""

_DECISIONS_HEAD = """# Decisions

Choices that closed other ways, each with its context and its price. Made by `tools/make_docs.py`.
"""


def tables_page() -> str:
    """The text of docs/tables.md."""
    return "\n".join([_TABLES_HEAD, *map(_table_section, TABLES)])


def queries_list() -> str:
    """The text of docs/queries.md: what each view and query says."""
    parts = [_LIST_HEAD]
    for family, queries in _families():
        rows = [(f"`{name}`", query.title.partition(". ")[0].rstrip(".")) for name, query in queries]
        parts.append(f"## {family}\n\n{_grid(('name', 'says'), rows)}")
    return "\n".join(parts)


def queries_page() -> str:
    """The same page as the site has it: with the parameters and the columns of each."""
    parts = [_QUERIES_HEAD]
    for family, queries in _families():
        parts += [f"## {family}\n", *(_query_section(query, name) for name, query in queries)]
    return "\n".join(parts)


def cli_page() -> str:
    """The text of docs/cli.md."""
    context = click.Context(cli, info_name="pipeprof")
    return "\n".join([_CLI_HEAD, *_verb_sections(cli, context)])


def rules_page() -> str:
    """The text of docs/rules.md."""
    head = ("#", "rule", "`diagnosis.rule`", "if", "then this limits", "because")
    named = [
        (str(number), f"`{rule.name}`", f"`{rule.code}`", _conditions(rule.when), evidence.CHOICES[rule.chooses],
         evidence.RULES[rule.name])
        for number, rule in enumerate(rules.RULES, 1)
    ]  # fmt: skip
    return "\n".join([
        _RULES_HEAD, f"## The stage that limits\n\n{_grid(head, named)}",
        _outcomes("The verdict", "The first one that applies.", "verdict", rules.VERDICTS),
        _outcomes(
            "The kind of a stage", "The first one that applies. The stage that a rule `gil` names is `gil`. What is "
            f"`cpu` is `host_saturated` where {_conditions(rules.SATURATED)}.", "kind", rules.KINDS,
        ),
        _outcomes("The kind of a stage without times", "Where the queues name it.", "kind", rules.UNTIMED_KINDS),
        _outcomes(
            "Doubts", "All that apply. What each means: [troubleshooting.md](troubleshooting.md).", "doubt",
            rules.DOUBTS,
        ),
        _outcomes("The late side in sink mode", "The first one that applies.", "`diagnosis.stage`", rules.SINK_STAGES),
    ])  # fmt: skip


def results_page() -> str:
    """The text of docs/results.md."""
    sections = json.loads(RESULTS.read_text(encoding="utf-8"))["sections"]
    return "\n".join([_RESULTS_HEAD, *map(_results_section, sections)])


def decisions_page() -> str:
    """The text of docs/decisions/index.md."""
    records = sorted((DOCS / "decisions").glob("[0-9]*.md"))
    headings = ((path, path.read_text(encoding="utf-8").partition("\n")[0]) for path in records)
    return "\n".join([_DECISIONS_HEAD, *(f"- [{head.removeprefix('# ')}]({path.name})" for path, head in headings), ""])


def picture() -> str:
    """The text of docs/way.svg: the rooms and what each imports."""
    from draw_way import picture as drawn  # noqa: PLC0415 - it asks a package of the extra `dev`

    return drawn()


PAGES = {
    "tables.md": tables_page,
    "queries.md": queries_list,
    "cli.md": cli_page,
    "rules.md": rules_page,
    "results.md": results_page,
    "decisions/index.md": decisions_page,
    "way.svg": picture,
}


def main(arguments: Sequence[str]) -> int:
    """Write the pages, or with `--check` say which are not up to date."""
    texts = {DOCS / name: make() for name, make in PAGES.items()}
    stale = [path for path, text in texts.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    if "--check" in arguments:
        for path in stale:
            print(f"not up to date: {path}; run `python tools/make_docs.py`", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts[path], encoding="utf-8")
        print(f"wrote {path}")
    return 0


def _families() -> Iterator[tuple[str, list[tuple[str, Query]]]]:
    """The views, then the queries by the folder that they are in; each with the name by which it is asked."""
    yield "Views", [(catalog.view_name(view), view) for view in sorted(catalog.views(), key=catalog.view_name)]
    queries = sorted(catalog.all_queries(), key=lambda query: query.name)
    for family, members in groupby(queries, key=lambda query: query.name.split("/")[0]):
        yield family, [(query.name, query) for query in members]


def _verb_sections(group: click.Group, context: click.Context) -> Iterator[str]:
    for name in dict.fromkeys(group.list_commands(context)):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        inner = click.Context(command, info_name=name, parent=context)
        yield _verb_section(command, inner)
        if isinstance(command, click.Group):
            yield from _verb_sections(command, inner)


def _verb_section(command: click.Command, context: click.Context) -> str:
    level = "##" if context.parent and context.parent.parent is None else "###"
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    records = [parameter.get_help_record(context) for parameter in command.params]
    options = [(f"`{record[0]}`", _meaning(record[1])) for record in records if record and record[1]]
    table = [_grid(("option", "meaning"), options)] if options else []
    return "\n".join([f"{level} {context.command_path}\n\n```text\n{usage}\n```\n", _help_text(command), *table])


def _meaning(text: str) -> str:
    """The help of an option; its default stands in round brackets, since two pairs of square ones would be a link."""
    return " ".join(re.sub(r"\[([^\]]*)\]", r"(\1)", text).split())


def _help_text(command: click.Command) -> str:
    """The help as Markdown. What click must not wrap are commands."""
    parts = []
    for paragraph in (command.help or "").split("\n\n"):
        mark, unwrapped, lines = paragraph.partition("\b\n")
        if unwrapped:
            parts.append("\n".join(["```sh", *map(str.strip, lines.strip().splitlines()), "```", ""]))
        else:
            parts.append(" ".join(mark.split()) + "\n")
    return "\n".join(parts)


def _table_section(table: Table) -> str:
    columns = [(f"`{column.name}`", column.type, column.unit, column.doc) for column in table.columns]
    return f"## {table.name}\n\nOne row per {table.row}.\n\n{_grid(('column', 'type', 'unit', 'meaning'), columns)}"


def _results_section(section: dict[str, Any]) -> str:
    rows = [
        (
            entry["what"],
            f"**{entry['figure']}**",
            f"`{entry['command']}`",
            f"{entry['date']}; {entry['on']}",
            _source(entry),
        )
        for entry in section["figures"]
    ]
    words = f"{section['words']}\n\n" if section["words"] else ""
    return f"## {section['title']}\n\n{words}{_grid(('what', 'figure', 'measured by', 'when, on what', 'more'), rows)}"


def _source(entry: dict[str, Any]) -> str:
    """Where the figure is from: a page of the site, or a note outside of it."""
    path = Path(entry["source"])
    return f"[{path.stem}]({path.name if path.parent.name == 'docs' else f'{HERE}/{path}'})"


def _query_section(query: Query, name: str) -> str:
    order = ", in that order" if query.ordered else ""
    lines = [f"### {name}\n", f"{query.title}\n", f"Reads {_code(query.reads)}.\n"]
    if query.takes:
        takes = [(f"`${parameter.name}`", parameter.type, parameter.doc) for parameter in query.takes]
        lines.append(_grid(("parameter", "type", "meaning"), takes))
    lines.append(f"One row per {_code(query.key)}{order}.\n")
    gives = [(f"`{field.name}`", field.type, field.unit, field.doc) for field in query.gives]
    lines.append(_grid(("column", "type", "unit", "meaning"), gives))
    return "\n".join(lines)


def _outcomes(title: str, words: str, column: str, outcomes: Sequence[Code]) -> str:
    rows = [(f"`{outcome.code}`", _conditions(outcome.when), _under(outcome)) for outcome in outcomes]
    width = 2 if all(row[2] == "all" for row in rows) else 3
    grid = _grid((column, "if", "under the rules")[:width], [row[:width] for row in rows])
    return f"## {title}\n\n{words}\n\n{grid}"


def _conditions(clauses: Sequence[Clause]) -> str:
    asked = [item for item in clauses if item.relation != "noted"]
    return "; ".join(evidence.condition(item.fact, item.relation, item.bound) for item in asked) or "always"


def _under(outcome: Code) -> str:
    if outcome.never:
        return f"all but {_code(outcome.never)}"
    return _code(outcome.only) or "all"


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(_grid_lines(head, rows)) + "\n"


def _grid_lines(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield _row(head)
    yield _row(["---"] * len(head))
    yield from map(_row, rows)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
