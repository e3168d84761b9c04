"""TOML that takes minutes, or ends in an error of the parser's own, is refused as no TOML."""

import msgspec
import pytest

from pipeprof.errors import UsageError
from pipeprof.experiment.policy_file import _parsed
from pipeprof.record import document


@pytest.mark.parametrize(
    "data",
    [b"a." * 100_000 + b"b = 1\n", b"a = " + b"9" * 900_000, b"a = 0x" + b"9_" * 4000, b"[" + b"a." * 100_000 + b"b]"],
)
def test_what_no_settings_have_is_refused_before_it_is_parsed(data):
    with pytest.raises(msgspec.DecodeError, match="has more than"):
        document.decode(data)
    with pytest.raises(UsageError, match=r"is not TOML: a (line|number) has more than"):
        _parsed(data, "x")


def test_ordinary_settings_are_read():
    assert document.decode(b"[a.b.c]\nd = 1.5\ne = 10_000\n") == {"a": {"b": {"c": {"d": 1.5, "e": 10_000}}}}
