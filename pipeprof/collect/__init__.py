"""Floor 1: starts the command and watches it from outside; `probe` is what enters it. Writes only the spool."""

LONGEST_MS = 60_000  # between two samples of the queues: with more there is none in most trainings
