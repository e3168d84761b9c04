"""pipeprof: why is my MindSpore training slow, and did this change make it slower?"""

__version__ = "0.1.0"
