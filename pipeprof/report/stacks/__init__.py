"""Call stacks of a run, folded for flame graphs."""
