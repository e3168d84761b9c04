"""The one error root. Raised anywhere, caught once, in `cli.py`."""


class PipeprofError(Exception):
    """An error for the user: one line that says what, where, found and expected, and a hint that can be done.

    `exit_code` is the process's: 2 for usage and configuration, 3 for data that cannot be judged.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if hint and hasattr(self, "add_note"):  # what a traceback of the user's program shows, from Python 3.11 on
            self.add_note(f"hint: {hint}")


class UsageError(PipeprofError):
    """The command line or the configuration asks for something that cannot be."""


class RunError(PipeprofError):
    """A run folder is missing, damaged, or of a version this pipeprof cannot read."""

    exit_code = 3


class SourceError(PipeprofError):
    """A profile file cannot be read: names the file, what was found and what was expected."""

    exit_code = 3


class QueryError(PipeprofError):
    """A SQL text is refused or fails."""


class WorkloadError(PipeprofError):
    """The user's command failed while it was being measured."""

    exit_code = 5


class MeasureError(PipeprofError):
    """The command ran, but what was asked for could not be measured."""

    exit_code = 3
