-- What operators cost at each source location that called them.
--
-- Work of a device counts where it was launched: rows of the device itself count as executions alone, and with their
-- time where nothing is known to have launched them. Without a side, an operator ran where its device says.
--
-- Reads: op, op_info?
-- Takes:
--   $first_step  bigint  the first step
--   $last_step   bigint  the last step; executions outside of steps count when $first_step is below 0
-- Gives, one row per (rep, rank, stack_id, name), in that order:
--   rep           bigint   repetition
--   rank          bigint   process rank
--   stack_id      bigint   the innermost frame; -1 when it is not known
--   name          varchar  full name of the operator; its number when it has none
--   count         bigint   executions
--   host_ns       bigint   ns     own time on the host; null when there is none
--   device_ns     bigint   ns     time on devices of what it launched itself, or of itself; null when not recorded
--   memory_bytes  bigint   bytes  allocated less freed on the host, without callees; null when not recorded
WITH placed AS (
  SELECT
    rep, rank,
    coalesce(op_info.stack_id, -1) AS stack_id,
    coalesce(op_info.name, CAST(op_id AS VARCHAR), '') AS name,
    coalesce(op.side = 'device', op_info.device <> 'CPU', FALSE) AS on_device,
    op.parent_id, op.dur_ns, op.self_ns, op.device_self_ns, op.self_memory_bytes
  FROM op
  LEFT JOIN op_info USING (rep, rank, op_id)
  WHERE coalesce(op.step, -1) BETWEEN $first_step AND $last_step
)

SELECT
  rep, rank, stack_id, name,
  count(*) AS count,
  CAST(sum(CASE WHEN NOT on_device THEN coalesce(self_ns, dur_ns) END) AS BIGINT) AS host_ns,
  CAST(
    sum(CASE WHEN NOT on_device THEN device_self_ns WHEN parent_id IS NULL THEN dur_ns END) AS BIGINT
  ) AS device_ns,
  CAST(sum(self_memory_bytes) AS BIGINT) AS memory_bytes
FROM placed
GROUP BY ALL
ORDER BY rep, rank, stack_id, name
