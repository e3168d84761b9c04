"""Profiles of Ascend jobs, and MindSpore's own: what MindInsight, CANN, MindSpore 2.x and torch_npu write.

identify, captures         which file is which, and of which rank; where its clocks begin
step_trace, raw_trace      steps of graph mode
graph_ops                  operators of the old files
kernels, output, communication        ASCEND_PROFILER_OUTPUT, links of the old files, files about all ranks
events, trace_view         Chrome events of a rank
msprof                     JSON of a PROF_* folder
cpu                        raw files of MindSpore's CPU and GPU profiler
rank, out                  all files of one rank in their order, and its tables
reader                     a whole import
"""
