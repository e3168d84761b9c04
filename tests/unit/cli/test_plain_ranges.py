"""Numbers that a command line refuses: the bound is said as people say it."""

import click
import pytest

from pipeprof.cli.ab import qualify
from pipeprof.cli.collect import collect
from pipeprof.cli.messages import words_of
from pipeprof.cli.options import FiniteRange
from pipeprof.cli.tune import steps_or_all


@pytest.mark.parametrize(("kind", "given", "said"), [
    (click.IntRange(0), "-1", "-1, expected 0 or more"), (click.IntRange(1, 16), "99", "99, expected 1 to 16"),
    (click.FloatRange(0, min_open=True), "0", "0.0, expected more than 0"),
    (FiniteRange(0, 10, min_open=True), "11", "11.0, expected more than 0, up to 10"),
    (FiniteRange(0.05), "nan", "`nan` is not a number"), (FiniteRange(0.05), "inf", "`inf` is not a number"),
    (click.IntRange(1), "two", "`two` is not a whole number"), (click.INT, "1.5", "`1.5` is not a whole number"),
    (click.FLOAT, "many", "`many` is not a number"),
])  # fmt: skip
def test_a_refused_number_is_said_with_its_bounds(kind, given, said):
    with pytest.raises(click.UsageError) as refused:
        click.Command("v", params=[click.Option(["--n"], type=kind)]).make_context("v", ["--n", given])
    assert words_of(refused.value)[0] == f"invalid value for `--n`: {said}"


@pytest.mark.parametrize(("verb", "option", "given", "said"), [
    (collect, "--queue-interval", "60001", "60001, expected 0 to 60000"),
    (collect, "--host-interval", "1e9", "1000000000.0, expected 0.05 to 3600"),
    (qualify, "--rounds", "1001", "1001, expected 3 to 1000"),
])  # fmt: skip
def test_samples_that_would_never_come_and_more_rounds_than_anyone_runs_are_refused(verb, option, given, said):
    with pytest.raises(click.UsageError) as refused:
        verb.make_context("v", [option, given, "--", "true"])
    assert words_of(refused.value)[0] == f"invalid value for `{option}`: {said}"


def test_steps_of_a_tuning_are_a_number_or_all():
    command = click.Command("tune", params=[click.Option(["--steps"], callback=steps_or_all)])
    for words, steps in (([], None), (["--steps", "all"], "all"), (["--steps", "10"], 10)):
        assert command.make_context("tune", words).params["steps"] == steps
    for given, said in (("9", "9, expected 10 or more"), ("most", "`most` is neither a whole number nor `all`")):
        with pytest.raises(click.UsageError) as refused:
            command.make_context("tune", ["--steps", given])
        assert words_of(refused.value)[0] == f"invalid value for `--steps`: {said}"
