"""A run as a trace of events for Perfetto."""
