-- What operators cost at each source location that called them.
--
-- Work of a device counts where it was launched: rows of the device itself are left out where operators carry it.
--
-- Reads: op, op_info
-- Takes:
--   $weight      varchar  host (own time on the host) | device (device time) | count (executions) | memory (own bytes)
--   $first_step  bigint   the first step
--   $last_step   bigint   the last step; executions outside of steps count when $first_step is below 0
-- Gives, one row per (rep, rank, stack_id, name), in that order:
--   rep       bigint   repetition
--   rank      bigint   process rank
--   stack_id  bigint   the innermost frame; -1 when it is not known
--   name      varchar  full name of the operator; its number when it has none
--   weight    bigint   ns, executions or bytes; those without any are left out
WITH weighed AS (
  SELECT
    op.rep,
    op.rank,
    coalesce(op_info.stack_id, -1) AS stack_id,
    coalesce(op_info.name, CAST(op.op_id AS VARCHAR), '') AS name,
    CASE
      WHEN $weight = 'count' THEN 1
      WHEN $weight = 'memory' THEN op.self_memory_bytes
      WHEN $weight = 'device' THEN CASE WHEN coalesce(op.side, '') <> 'device' THEN op.device_self_ns END
      WHEN coalesce(op.side, '') <> 'device' THEN coalesce(op.self_ns, op.dur_ns)
    END AS weight
  FROM op
  LEFT JOIN op_info ON op.rep = op_info.rep AND op.rank = op_info.rank AND op.op_id = op_info.op_id
  WHERE coalesce(op.step, -1) BETWEEN $first_step AND $last_step
)

SELECT
  rep,
  rank,
  stack_id,
  name,
  CAST(sum(weight) AS BIGINT) AS weight
FROM weighed
GROUP BY rep, rank, stack_id, name
HAVING sum(weight) <> 0
ORDER BY rep, rank, stack_id, name
