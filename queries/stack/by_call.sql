-- What operators cost under each chain of operators that called them, device work below what launched it.
--
-- Without a side, an operator ran where its device says.
--
-- Reads: op, op_info?
-- Takes:
--   $first_step  bigint  the first step
--   $last_step   bigint  the last step; executions outside of steps count when $first_step is below 0
-- Gives, one row per (rep, rank, path), in that order:
--   rep           bigint   repetition
--   rank          bigint   process rank
--   path          varchar  names, the outermost first, one per line
--   count         bigint   executions
--   host_ns       bigint   ns     own time on the host; null when there is none
--   device_ns     bigint   ns     time on devices; null when there is none
--   memory_bytes  bigint   bytes  allocated less freed on the host, without callees; null when not recorded
WITH RECURSIVE named AS (
  SELECT
    rep, rank, op.exec_id, op.parent_id,
    coalesce(op_info.name, CAST(op_id AS VARCHAR), '') AS name,
    coalesce(op.side = 'device', op_info.device <> 'CPU', FALSE) AS on_device,
    CASE WHEN NOT on_device THEN coalesce(op.self_ns, op.dur_ns) END AS host_ns,
    CASE WHEN on_device THEN op.dur_ns END AS device_ns,
    op.self_memory_bytes AS memory_bytes
  FROM op
  LEFT JOIN op_info USING (rep, rank, op_id)
  WHERE coalesce(op.step, -1) BETWEEN $first_step AND $last_step
),

outermost AS (
  SELECT
    named.rep, named.rank, named.exec_id, named.name, named.host_ns, named.device_ns, named.memory_bytes
  FROM named
  LEFT JOIN named AS caller
    ON named.rep = caller.rep AND named.rank = caller.rank AND named.parent_id = caller.exec_id
  WHERE caller.exec_id IS NULL
),

-- Deeper than any real chain ends a cycle in damaged data.
chain AS (
  SELECT
    rep, rank, exec_id,
    name AS path,
    host_ns, device_ns, memory_bytes,
    1 AS depth
  FROM outermost
  UNION ALL
  SELECT
    named.rep, named.rank, named.exec_id,
    chain.path || '
' || named.name AS path,
    named.host_ns, named.device_ns, named.memory_bytes,
    chain.depth + 1 AS depth
  FROM chain
  INNER JOIN named
    ON chain.rep = named.rep AND chain.rank = named.rank AND chain.exec_id = named.parent_id
  WHERE chain.depth < 1000
)

SELECT
  rep, rank, path,
  count(*) AS count,
  CAST(sum(host_ns) AS BIGINT) AS host_ns,
  CAST(sum(device_ns) AS BIGINT) AS device_ns,
  CAST(sum(memory_bytes) AS BIGINT) AS memory_bytes
FROM chain
GROUP BY ALL
ORDER BY rep, rank, path
