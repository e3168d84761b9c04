-- What op_info has beside operators: functions of Python, ranges of the user and of the profiler, what makes batches,
-- and events of which is not known whether they are work of the network.
--
-- Older versions of torch file a trace's DataLoader as an operator; runs imported before have no phase for it.
--
-- Reads: op_info
-- Gives, one row per (rep, rank, op_id):
--   rep    bigint  repetition
--   rank   bigint  process rank
--   op_id  bigint  as in op_info
SELECT
  rep, rank, op_id
FROM op_info
WHERE
  category IN ('python_function', 'user_annotation')
  OR name = 'ProfilerStep*'
  OR starts_with(name, 'enumerate(DataLoader)#')
  OR phase = 'data'
  OR (phase IS NULL AND category IS NOT NULL)
