"""Floor 4: runs workloads in a planned order."""
