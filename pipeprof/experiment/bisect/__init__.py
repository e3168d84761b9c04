"""`pipeprof bisect`: which commit made a command slower."""
