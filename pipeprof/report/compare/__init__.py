"""A comparison in each format."""
