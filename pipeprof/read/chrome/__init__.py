"""Chrome traces of torch.profiler (Kineto) and of its relatives: torch_dipu, torch_npu, MindSpore's trace_view.

container  where the events lie in a file            events    one event, typed
times      decimal microseconds to int64 ns          texts     texts as numbers
gather     first pass: events to columns on disk     spill     these columns
kinds      events by category and name               rows      events of a batch to rows (columns: field by field)
launches, flow_links   which operator launched which work
flops      operations of an operator's execution     order     rows by start, in bounded memory
tree       calls, own time, folding, memory          stacks    source locations
steps      ProfilerStep and DataLoader               tracks    names of threads and streams
ops        operators: rows of op_info                device    kernels, copies, collectives, other events
memory     allocated less freed in an interval       arrow     NumPy to Arrow
tables     second pass: columns to tables            writing   Parquet, piece by piece
parts      the ranks of a trace of our own
reader     a whole import
"""
