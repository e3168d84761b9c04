"""The verbs `ab` and `qualify`."""

from __future__ import annotations

import contextlib
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeprof.cli.compare import answer, comparison_format
from pipeprof.cli.messages import say_named
from pipeprof.cli.options import (
    COMMAND,
    FORMS,
    POLICY,
    FiniteRange,
    LocalPath,
    budget_option,
    folder_option,
    format_option,
    redact_option,
)
from pipeprof.cli.streams import StdoutClosed
from pipeprof.errors import UsageError
from pipeprof.verdict.gate import MOST_ROUNDS

if TYPE_CHECKING:
    from pipeprof.experiment.arms import ArmWish


def shares(_ctx: click.Context, _param: click.Parameter, text: str) -> tuple[float, ...]:
    """Shares above 0 and up to 1 from `0.05,0.10`, each once, growing. Raises BadParameter."""
    try:
        fractions = sorted({float(part) for part in text.split(",") if part.strip()})
    except ValueError:
        fractions = []
    if not fractions or not 0 < fractions[0] <= fractions[-1] <= 1:
        raise click.BadParameter(f"`{text}`: expected shares above 0 and up to 1, for example 0.05,0.10")
    return tuple(fractions)


@click.command(context_settings={"ignore_unknown_options": False})
@click.option("--base-ref", metavar="REV", help="Git revision of the old side.  [default: the working tree as it is]")
@click.option("--new-ref", metavar="REV", help="Git revision of the new side.  [default: the working tree as it is]")
@click.option("--base", "base_command", metavar="CMD", help="Command of the old side, as one quoted argument.")
@click.option("--new", "new_command", metavar="CMD", help="Command of the new side, as one quoted argument.")
@click.option(
    "--base-env", metavar="NAME=VALUE", multiple=True, help="Environment variable of the old side; may be repeated."
)
@click.option(
    "--new-env", metavar="NAME=VALUE", multiple=True, help="Environment variable of the new side; may be repeated."
)
@click.option(
    "--policy",
    "policy_file",
    metavar="FILE",
    type=LocalPath(),
    help="Settings of the gate; a file of the repository as --base-ref has it.  [default: pipeprof.toml or "
    "pyproject.toml here or above, as --base-ref has them]",
)
@budget_option(
    "Time limit for all runs of the session; the checks are planned to fit", "that of the policy, or no limit"
)
@folder_option("folder", "Folder of the session.  [default: pipeprof-ab-PAIR]")
@click.option("--new-session", is_flag=True, help="Start over; the earlier session is kept and named in the result.")
@click.option(
    "--workload", metavar="NAME", default="", help="Name of the workload in the result.  [default: the script's name]"
)
@click.option(
    "--plant-slow-down",
    "planted",
    metavar="SHARE",
    type=FiniteRange(0, 10, min_open=True),
    help="Test of the gate: really slow each step of the new side down by this share, such as 0.3; both sides may be "
    "the same code.",
)
@click.option("--to-the-end", is_flag=True, help="Go on to the last check, even if it will most likely not decide.")
@click.option(
    "--confirms",
    metavar="FILE",
    type=LocalPath(),
    help="Result (compare.json) of another runner that called the same change slower: regressed only if both say so.",
)
@redact_option
@comparison_format
@COMMAND
def ab(
    policy_file: Path | None, budget: float | None, folder: Path | None, form: str, command: tuple[str, ...], *,
    new_session: bool, to_the_end: bool, planted: float | None, workload: str, confirms: Path | None, **words: Any,
) -> None:  # fmt: skip
    """Is the new code slower than the old? Runs both alternately until the answer is clear.

    \b
      pipeprof ab --base-ref main -- python train.py   # against the working tree
      pipeprof ab --base-ref v1.2 --new-ref HEAD --budget 20m -- python train.py
      pipeprof ab --base "python a.py" --new "python b.py"
      pipeprof ab --new-env OMP_NUM_THREADS=2 -- python train.py

    With --base-ref the settings are those of that revision: a change cannot loosen its own gate. Every run is a fresh
    process. Repeat the command to continue an interrupted session, or to see the result of a finished one. Exit codes:
    0 nothing worse, 1 regressed, 3 could not be judged, 4 inconclusive, 5 one of the commands failed.
    """  # noqa: D301
    from pipeprof.experiment.ab import AbWish, run_ab
    from pipeprof.experiment.base_revision_policy import judged_arms
    from pipeprof.report.compare.limits import of_session

    wish = AbWish(
        _arm("base", words), _arm("new", words), command, folder, budget, new_session=new_session,
        to_the_end=to_the_end, planted=planted, workload=workload, confirms=confirms,
    )  # fmt: skip
    judged = judged_arms(wish, policy_file)
    answer(of_session(run_ab(wish, judged.policy, say_named, trust=judged.trust)), form)


@click.command(context_settings={"ignore_unknown_options": False})
@click.option(
    "--sessions", metavar="N", type=click.IntRange(20), default=500, show_default=True,
    help="Number of simulated comparisons for each question.",
)  # fmt: skip
@click.option(
    "--slow-down",
    "slow_downs",
    metavar="SHARES",
    callback=shares,
    default="0.05,0.10",
    show_default=True,
    help="Slow-downs to look for, as shares of the step time.",
)
@click.option(
    "--rounds",
    metavar="N",
    type=click.IntRange(3, MOST_ROUNDS),
    default=8,
    show_default=True,
    help="Number of rounds of real runs.",
)
@POLICY
@budget_option("Time limit for all runs", "that of the policy, or no limit")
@folder_option("folder", "Folder of the runs.  [default: pipeprof-qualify-TIME]")
@click.option("--seed", metavar="N", type=click.IntRange(0), help="Random seed.  [default: a new one, recorded]")
@redact_option
@format_option(*FORMS)
@COMMAND
def qualify(
    sessions: int, slow_downs: tuple[float, ...], rounds: int, policy_file: Path | None, budget: float | None,
    folder: Path | None, seed: int | None, form: str, command: tuple[str, ...],
) -> None:  # fmt: skip
    """How often is the verdict wrong on this machine, and how small a slow-down can it find at what cost?

    \b
      pipeprof qualify -- python train.py
      pipeprof qualify --slow-down 0.03 --rounds 20 --budget 1h -- python train.py

    Each round runs the command twice unchanged, and once per slow-down with every step really made longer. Random
    comparisons are composed from these runs and judged as `pipeprof ab` would. To continue after an interruption,
    repeat the command with `-o` and the same folder; a larger --rounds adds rounds. Exit codes: 0 as promised, 1 more
    false alarms than the policy allows, 3 could not be measured, 5 the command failed.
    """  # noqa: D301
    from pipeprof.collect.session import default_name
    from pipeprof.experiment.policy_file import find_policy
    from pipeprof.experiment.qualify.pool import Order
    from pipeprof.experiment.qualify.rates import exit_code, run_qualify
    from pipeprof.report import document, qualify_text

    if not command:
        raise UsageError("no command to run", "pipeprof qualify -- python train.py")
    policy = find_policy(policy_file).policy
    order = Order(
        command, Path.cwd(), slow_downs, rounds, max(3, policy.least_reps), budget or policy.budget_s,
        seed,
    )  # fmt: skip
    where = (folder or default_name("pipeprof-qualify-")).absolute()
    content = run_qualify(order, sessions, policy, where, say_named)
    with contextlib.suppress(StdoutClosed):
        document.show(content, qualify_text.document, form)
    sys.exit(exit_code(content))


def _arm(name: str, words: dict[str, Any]) -> ArmWish:
    from pipeprof.experiment.arms import ArmWish

    try:
        command = shlex.split(words[f"{name}_command"] or "")
    except ValueError as error:
        raise UsageError(f"cannot read the command of --{name}: {error}", "check its quotes") from error
    return ArmWish(words[f"{name}_ref"], tuple(command), tuple(words[f"{name}_env"]))
