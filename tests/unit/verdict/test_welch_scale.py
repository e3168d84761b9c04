"""Welch's degrees of freedom do not depend on the unit of what is compared."""

import numpy as np
import pytest

from pipeprof.verdict.gate.statistics import welch


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e133])
def test_the_degrees_of_freedom_are_the_same_in_every_unit(scale):
    base, new = np.array([0.0, 0.0, 3.0]), np.array([2.9, 2.9, 4.8])
    found, plain = welch(base * scale, new * scale), welch(base, new)
    assert (found.df, found.t()) == (pytest.approx(plain.df), pytest.approx(plain.t()))
    assert 2 < found.df < 4
