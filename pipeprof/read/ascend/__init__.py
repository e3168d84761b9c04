"""Profiles of Ascend jobs, and MindSpore's own: what MindInsight, CANN, MindSpore 2.x and torch_npu write.

identify, captures                        which file is which, and of which rank
files, values, columns, nested, events    reading: CSV, numbers, whole columns, JSON, chrome events
step_trace, raw_trace, gpu_steps          steps of graph mode
graph_ops, graph_comm, graph_text, graph_facts    operators and links of the old files
kernels, statistics, communication, memory        ASCEND_PROFILER_OUTPUT
trace_view, lanes                         chrome events of a rank
msprof                                    JSON of a PROF_* folder
cpu                                       raw files of MindSpore's CPU and GPU profiler
cluster                                   files about all ranks
rank, out, steps, checks                  all files of one rank in their order, and its tables
share, workers, worker                    ranks in several processes
reader                                    a whole import
"""
