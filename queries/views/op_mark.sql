-- What op_info has beside operators: functions of Python, ranges of the user and of the profiler, and a trace's
-- DataLoader, which older versions of torch file as an operator.
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
