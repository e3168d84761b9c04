"""Floor 4: rows and verdicts to text, one file per format."""
