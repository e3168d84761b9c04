"""`pipeprof tune`: finds a change of settings that pays, proves it, and writes the patch."""

RECORDED = 4  # times the steps of a short run: what a recording says of locks and stalls needs more of them
