"""Chrome traces of torch.profiler (Kineto) and of its relatives: torch_dipu, torch_npu, MindSpore's trace_view.

dialect    what differs between the programs         dftracer, rocprof, xplane, other_traces   readers of other programs
container  where the events lie in a file            events    one event, typed
pairs      begin and end events to intervals         texts     texts as numbers
gather     first pass: events to columns on disk     spill     these columns, by start
kinds      events by category and name               rows      events of a batch to rows (columns: field by field)
launches, flow_links   which operator launched which work
flops      operations of an operator's execution
tree, callers   calls, own time, folding             memory    allocated less freed, and each block
stacks     source locations                          steps     ProfilerStep and DataLoader
tracks     names of threads and streams              ops       operators: rows of op_info
device     kernels, copies, collectives, other events
tables     second pass: columns to tables            passes    both passes, rank by rank, in any process
reader     a whole import
"""
