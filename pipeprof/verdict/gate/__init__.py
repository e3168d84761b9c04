"""The gate's statistics: repetitions of two sides in, a verdict per metric out. Pure: docs/gate-statistics.md."""

MOST_ROUNDS = 1000  # of a session, in which each side, or each variant of a sweep, has one repetition
