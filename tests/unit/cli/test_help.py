"""What `--help` says: every option explained, with its unit and its default, in lines of 80 columns; examples that are taken."""

import re
import shlex
from operator import itemgetter

import click
from click.testing import CliRunner
from every import every

from pipeprof.cli import cli

UNITS = {
    "N": r"\b(N|[Nn]umber|many|[Ff]rames|[Rr]ows|Rank|repetition|seed|jobs|days|Nth|all)\b",
    "K": "num_parallel_workers", "P": "rows", "M": "many pairs", "MS": r"\b[Mm]illiseconds\b", "S": r"\b[Ss]econds\b",
    "PORT": "[Pp]ort", "SHARE": "share", "TIME": "in seconds, or with a unit",
}  # fmt: skip
"""What the help of an option that takes a number has to say, by the name of its value."""
CLICKS_OWN = {"INTEGER", "INTEGER RANGE", "FLOAT", "FLOAT RANGE", "TEXT", "PATH", "FILENAME", "DIRECTORY"}


def commands(group=cli, path=()):
    """Every verb and every verb in it, by its words."""
    for name in group.list_commands(click.Context(group)):
        found = group.get_command(click.Context(group), name)
        yield (*path, name), found
        if isinstance(found, click.Group):
            yield from commands(found, (*path, name))


COMMANDS = dict(commands())
FIRST = itemgetter(0)
OPTIONS = [
    (" ".join((*path, option.opts[-1])), option, click.Context(command))
    for path, command in COMMANDS.items()
    for option in command.params
    if isinstance(option, click.Option)
]
EXAMPLES = [
    line.strip()
    for command in (cli, *COMMANDS.values())
    for line in (command.help or "").partition("\b\n")[2].split("\n\n")[0].splitlines()
    if re.search(r"\bpipeprof\b", line)
]


@every(OPTIONS, FIRST)
def test_every_option_is_explained_in_a_sentence_and_a_number_has_a_unit_and_a_default(case):
    _, option, context = case
    name, text = option.get_help_record(context)
    assert re.match(r"(-- |[A-Z]).*[.]( +\[.*\])*$", text), text
    assert not CLICKS_OWN & {name.rpartition("--")[2].partition(" ")[2]}
    if option.metavar in UNITS or isinstance(option.type, click.types.IntParamType | click.types.FloatParamType):
        assert re.search(UNITS[option.metavar], text), text
        without = r"Only |Keep only |New |With --|Test of |Same as |Serve |Parts "
        assert "default: " in text or re.match(without, text), text


@every([(), *COMMANDS], " ".join)
def test_help_fits_80_columns_and_is_not_cut(path):
    lines = CliRunner(env={"COLUMNS": "80"}).invoke(cli, [*path, "--help"], prog_name="pipeprof").output.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert [line for line in lines if line.endswith("...") and not line.startswith("Usage:")] == []


@every(
    (
        (" ".join((*path, str(argument.name))), argument, click.Context(command))
        for path, command in COMMANDS.items()
        for argument in command.params
        if isinstance(argument, click.Argument) and argument.name not in {"good", "bad", "url"}
    ),
    FIRST,
)
def test_the_shell_completes_every_argument_but_revisions_and_urls(case, tmp_path, monkeypatch):
    _, argument, context = case
    monkeypatch.chdir(tmp_path)
    assert argument.shell_complete(context, "")


@every(EXAMPLES)
def test_an_example_is_taken_as_it_stands(line):
    shown = re.sub(r".*\$\((.*)\).*", r"\1", line)
    words = shlex.split(shown, comments=True)
    words = words[words.index("pipeprof") + 1 :]
    end = next((at for at, word in enumerate(words) if word in {"|", ">"}), len(words))
    command, words = cli, words[:end]
    while isinstance(command, click.Group):
        command = command.get_command(click.Context(command), words.pop(0))
    with command.make_context(command.name, words) as context:
        assert context.args == []
