"""Two sides of one workload in turn: how many pairs, what they gave, and the words for it."""
