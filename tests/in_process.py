"""Verbs called in this process, without the place where the installed program catches its errors."""

from click.testing import CliRunner

from pipeprof.cli import cli
from pipeprof.errors import PipeprofError


def ask(*words, command=cli):
    """What the program answers; its errors are raised."""
    return CliRunner().invoke(command, [str(word) for word in words], catch_exceptions=False)


def said(*words):
    """Its stdout, where nothing goes wrong."""
    done = ask(*words)
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(*words):
    """The error that ended it, which is two lines at most."""
    done = CliRunner().invoke(cli, [str(word) for word in words])
    assert isinstance(done.exception, PipeprofError), done.output
    assert "\n" not in done.exception.message + (done.exception.hint or "")
    return done.exception


def ended(*words, command=cli, **env):
    """Exit code, stdout, and stderr or the message of the error that ended it."""
    done = CliRunner().invoke(command, [str(word) for word in words], env=env)
    if isinstance(done.exception, PipeprofError):
        return done.exception.exit_code, done.stdout, done.exception.message
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr
