"""Files of MegEngine's profilers and of its `load_and_run`.

files          which file is which, and what one gave
profile        static-graph profile to columns, and those to tables (profile_rows)
timeline       chrome timelines, three generations: names and steps first
load_and_run   logs of the benchmark program, and their rows
reader         a whole import; lifetimes of tensors and of planned memory
"""
