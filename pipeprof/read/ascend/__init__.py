"""Profiles of Ascend jobs, and MindSpore's own: what MindInsight, CANN, MindSpore 2.x and torch_npu write.

identify                   which file is which, and of which rank
step_trace, raw_trace      steps of graph mode
graph_ops                  operators of the old files
kernels, output, communication        ASCEND_PROFILER_OUTPUT, links of the old files, files about all ranks
trace_view                 Chrome events of a rank
msprof                     JSON of a PROF_* folder
rank, out                  all files of one rank in their order, raw ones of MindSpore's CPU profiler too; its tables
reader                     a whole import; where the clocks of a rank begin
"""
