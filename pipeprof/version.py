"""The version of pipeprof, for all floors: whoever asks for it loads nothing else."""

__version__ = "0.1.0"
