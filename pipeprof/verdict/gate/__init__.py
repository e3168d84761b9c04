"""The gate's statistics: repetitions of two sides in, a verdict per metric out. Pure; formulas: docs/gate.md."""
