"""The verbs by the question they answer, one file each, loaded when a verb is used; and the help that lists them."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

import click


class Verb(NamedTuple):
    """The file of a verb, and its line in the help, which fits 80 columns; no line: not shown."""

    file: str
    line: str = ""


SECTIONS: dict[str, dict[str, Verb]] = {
    "Why is it slow?": {
        "collect": Verb("collect", "Profile a training script without changing it"),
        "report": Verb("report", "What limits the training, and what to do about it"),
        "ops": Verb("ops", "Operators of the network by the time they take"),
        "memory": Verb("memory", "Memory over time, its peak, and whether it keeps growing"),
        "timeline": Verb("timeline", "Every event of every rank, as a trace for ui.perfetto.dev"),
        "stacks": Verb("timeline", "Call stacks of operators, for flame graphs"),
        "sql": Verb("report", "Query the recorded tables in SQL"),
    },
    "What would make it faster?": {
        "whatif": Verb("whatif", "Predict the gain of other dataset settings, then measure it"),
        "headspace": Verb("whatif", "Measure the speed with a perfect data pipeline"),
        "sweep": Verb("sweep", "Measure which options make a command faster"),
        "tune": Verb("tune", "Find faster dataset settings, prove them, write the patch"),
    },
    "Did a change make it slower?": {
        "compare": Verb("compare", "Compare two runs: a verdict per metric, and why"),
        "ab": Verb("ab", "Run old and new code in turn until the verdict is clear"),
        "baseline": Verb("baseline", "Save runs as baselines for later comparisons"),
        "history": Verb("history", "Since when is it slower: changes, their commits, their causes"),
        "bisect": Verb("bisect", "Find the commit that made it slower, although runs vary"),
        "qualify": Verb("ab", "Measure how often the verdict is wrong on this machine"),
    },
    "Other": {
        "demo": Verb("demo", "Find and fix a planted bottleneck in a small real training"),
        "top": Verb("top", "Watch a running training: speed, queues, CPU, verdict so far"),
        "status": Verb("status", "What each rank of a running training waits for: does it hang?"),
        "serve": Verb("serve", "Browse the runs of a folder: reports, comparisons, history"),
        "runs": Verb("runs", "List runs: when, command, state, verdict, step time"),
        "verify": Verb("verify", "Check that the files of a run are unchanged"),
        "compact": Verb("compact", "Merge each table of a run into one file: reports cost less"),
        "push": Verb("push", "Upload a run to object storage, where every verb can read it"),
        "fleet": Verb("fleet", "Many runs: where hours go, what would save most, slow machines"),
        "import": Verb("foreign", "Read profiles of MindInsight, Ascend, MegEngine or PyTorch"),
        "completion": Verb("completion", "Print the completion script of a shell"),
        "render": Verb("render"),
    },
}
VERBS = {name: verb for section in SECTIONS.values() for name, verb in section.items()}


class Verbs(click.Group):
    """Loads a verb's file when it is used: each start, and the help, would otherwise wait for all of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, also those that are not loaded."""
        del ctx
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb, from its file."""
        if cmd_name in VERBS and cmd_name not in self.commands:
            file = import_module(f"pipeprof.cli.{VERBS[cmd_name].file}")
            commands = (one for one in vars(file).values() if isinstance(one, click.Command) and one.name == cmd_name)
            self.add_command(next(commands))
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verbs by question, without loading any."""
        del ctx
        for question, verbs in SECTIONS.items():
            formatter.write_paragraph()
            formatter.write_text(question)
            with formatter.indentation():
                formatter.write_dl([(f"{name:<10}", verb.line) for name, verb in verbs.items() if verb.line])
