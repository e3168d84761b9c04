-- How many executions of operators have a source location, and a caller.
--
-- Reads: op, op_info
-- Gives, one row per (rep, rank), in that order:
--   rep         bigint  repetition
--   rank        bigint  process rank
--   executions  bigint  executions
--   located     bigint  whose source location is known
--   called      bigint  that another execution called or launched
SELECT
  op.rep,
  op.rank,
  count(*) AS executions,
  count(op_info.stack_id) AS located,
  count(op.parent_id) AS called
FROM op
LEFT JOIN op_info ON op.rep = op_info.rep AND op.rank = op_info.rank AND op.op_id = op_info.op_id
GROUP BY op.rep, op.rank
ORDER BY op.rep, op.rank
