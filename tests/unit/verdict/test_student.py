"""Quantiles of Student's t against printed tables."""

import pytest

from pipeprof.verdict.student import inside, quantile


@pytest.mark.parametrize(
    ("alpha", "freedom", "expected"),
    [
        (0.05, 1, 12.7062),
        (0.05, 2, 4.3027),
        (0.05, 3, 3.1824),
        (0.05, 4, 2.7764),
        (0.01, 30, 2.7500),
        (0.001, 5, 6.8688),
        (0.05, 10_000, 1.9600),
    ],
)
def test_quantiles_are_those_of_the_tables(alpha, freedom, expected):
    assert quantile(alpha, freedom) == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("freedom", range(1, 12))
def test_the_quantile_undoes_the_probability(freedom):
    assert inside(quantile(0.02, freedom), freedom) == pytest.approx(0.98)


@pytest.mark.parametrize(("alpha", "freedom"), [(0.05, 0), (0.0, 3), (1.0, 3)])
def test_what_has_no_quantile_is_refused(alpha, freedom):
    with pytest.raises(ValueError, match="no quantile"):
        quantile(alpha, freedom)
