"""A sweep in each format."""
