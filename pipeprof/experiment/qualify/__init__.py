"""`pipeprof qualify`: what the gate can do on this machine."""
