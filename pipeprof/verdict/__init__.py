"""Floor 3: rules over rows of numbers. Pure: no files, no clock, no SQL."""
