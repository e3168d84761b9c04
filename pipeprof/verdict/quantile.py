"""Quantiles of Student's t. scipy is loaded with the first: most reports need none, and it takes 0.3 s."""

from __future__ import annotations


def t_quantile(level: float, freedom: float) -> float:
    """The value that a t with `freedom` degrees of freedom stays below with probability `level`."""
    from scipy import special  # noqa: PLC0415 - see above

    return float(special.stdtrit(freedom, level))
