"""The codes of the verdicts as sentences: one file for each kind of code."""
