"""Profiles of Ascend jobs, and MindSpore's own: what MindInsight, CANN, MindSpore 2.x and torch_npu write.

identify   which file is which                     files, values, columns, events   reading: CSV, JSON, numbers
step_trace, raw_trace   steps of graph mode        graph_ops, graph_comm   operators and links of the old files
msprof     JSON of a PROF_* folder                 kernels, statistics, communication, memory, trace_view   newer ones
cpu        raw files of MindSpore's CPU profiler   captures   which files are of one rank
out, steps, checks   tables being written          reader   a whole import
"""
