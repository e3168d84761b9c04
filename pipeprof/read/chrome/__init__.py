"""Chrome traces of torch.profiler (Kineto) and of its relatives: torch_dipu, torch_npu, MindSpore's trace_view.

dialect    what differs between the programs         reader      who they are; a whole import
container  where the events lie in a file            rocprof_records, xplane_wire              files of other forms
events     one event, typed; intervals               numbering   texts and tracks as numbers
gather     first pass: events to columns on disk     spill       these columns, by start
rows       events of a batch to rows
links      which operator launched which work        ops         rows of op_info, frames, operations
tree       calls, own time, folding                  memory      allocated less freed, and each block
steps      ProfilerStep and DataLoader
tables     second pass: columns to tables            passes      both passes, rank by rank, in any process
"""
