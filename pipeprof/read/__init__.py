"""Floor 1: one file per source. Reads it into the record's tables."""
