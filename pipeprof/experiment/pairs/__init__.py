"""Two sides of one workload in turn: how many pairs, what they gave, and the words for it."""

LEAST_RUN = 10  # training steps that a run is not ended before: a quarter of them is not timed
