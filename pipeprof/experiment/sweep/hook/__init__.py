"""Stands on PYTHONPATH of a variant that changes MindSpore's context: `sitecustomize` is what Python runs at start."""
