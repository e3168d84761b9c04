"""Files of MegEngine's profilers and of its `load_and_run`.

profile        static-graph profile to columns (profile_content), and those to tables (profile_rows)
timeline       chrome timelines, three generations; events: one event of them; survey: names and steps first
memory_flow, static_memory   lifetimes of tensors and of planned memory; file_rows: rows of such a file
timelines      those of several processes, at once
kinds          which file is which                    reader         a whole import
load_and_run   logs of the benchmark program, and their rows
"""
