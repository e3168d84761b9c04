"""Floor 1: starts the command and watches it from outside; `probe` is what enters it. Writes only the spool."""
