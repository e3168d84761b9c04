"""What takes long to make and is the same for many tests, made once."""

from contextlib import contextmanager

import pytest

from pipeprof.query import side
from pipeprof.record.cache import file_of, remember
from pipeprof.report import build
from pipeprof.report.charts.script import bundle, made_of


def keep_bundle(cache):
    """Put the script of the charts into a cache, a new $XDG_CACHE_HOME, for processes that would make it for seconds."""
    remember(cache / "pipeprof" / "charts" / file_of("charts", made_of()).name, bundle())


@contextmanager
def reports_made_once():
    """Reports and measures of one folder are made once, whatever asks for them."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((build, "build"), (side, "measure")):
            patch.setattr(module, name, _once(getattr(module, name)))
        yield


def _once(function):
    known = {}

    def asked(run, *words, **options):
        key = (str(run.path.absolute()), words, tuple(sorted(options.items())))
        try:
            return known[key]
        except TypeError:  # such as a callback
            return function(run, *words, **options)
        except KeyError:
            known[key] = function(run, *words, **options)
            return known[key]

    return asked
