"""`pipeprof sweep`: option sets in turn, until each is decided against the base."""
