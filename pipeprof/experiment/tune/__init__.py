"""`pipeprof tune`: finds a change of settings that pays, proves it, and writes the patch."""

RECORDED = 4  # times the steps of a short run: what a recording says of locks and stalls needs more of them
LEAST_RUN = 10  # training steps that a run is not ended before: a quarter of them is not timed
