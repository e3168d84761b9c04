"""Files of MegEngine's profilers and of its `load_and_run`.

files          which file is which, and what one gave
profile        static-graph profile to columns, and those to tables (profile_rows)
timeline       chrome timelines, three generations; events: one event of them, names and steps first
memory_files   lifetimes of tensors and of planned memory
load_and_run   logs of the benchmark program, and their rows
reader         a whole import
"""
