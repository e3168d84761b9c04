-- How many executions of operators have a source location, and a caller.
--
-- Reads: op, op_info?
-- Gives, one row per (rep, rank), in that order:
--   rep         bigint  repetition
--   rank        bigint  process rank
--   executions  bigint  executions
--   located     bigint  whose source location is known
--   called      bigint  that another execution called or launched
SELECT
  rep, rank,
  count(*) AS executions,
  count(op_info.stack_id) AS located,
  count(op.parent_id) AS called
FROM op
LEFT JOIN op_info USING (rep, rank, op_id)
GROUP BY ALL
ORDER BY rep, rank
