"""What an import stored, as tests look at it."""

from pipeprof.record import store


def rows(run, table, *names):
    """The rows of a table as tuples of the columns named: one by one, or in one text with spaces."""
    columns = " ".join(names).split()
    return [tuple(row[column] for column in columns) for row in store.read(run, table).to_pylist()]


def warnings(run, code):
    """What the warnings of that code say."""
    return [warning.message for warning in run.manifest.warnings if warning.code == code]
