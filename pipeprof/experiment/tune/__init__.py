"""`pipeprof tune`: finds a change of settings that pays, proves it, and writes the patch."""
