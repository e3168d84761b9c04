"""A history in each format."""
