"""Memory of a run: what stood in it, as text and as SVG."""
