"""Profiles of Ascend jobs, and MindSpore's own: what MindInsight, CANN, MindSpore 2.x and torch_npu write.

identify, captures                      which file is which, and of which rank
values, events                          ticks and phases of operators; events of a trace
step_trace, raw_trace                   steps of graph mode
graph_ops, graph_comm, graph_facts      operators and links of the old files
kernels, statistics, communication, memory        ASCEND_PROFILER_OUTPUT
trace_view, lanes                       Chrome events of a rank
msprof                                  JSON of a PROF_* folder
cpu                                     raw files of MindSpore's CPU and GPU profiler
cluster                                 files about all ranks
rank, out, first, checks                all files of one rank in their order, and its tables
reader                                  a whole import
"""
