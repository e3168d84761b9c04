-- What operators cost under each chain of operators that called them, device work below what launched it.
--
-- Reads: op, op_info
-- Takes:
--   $weight      varchar  host (own time on the host) | device (device time) | count (executions) | memory (own bytes)
--   $first_step  bigint   the first step
--   $last_step   bigint   the last step; executions outside of steps count when $first_step is below 0
-- Gives, one row per (rep, rank, path), in that order:
--   rep     bigint   repetition
--   rank    bigint   process rank
--   path    varchar  names, the outermost first, one per line
--   weight  bigint   ns, executions or bytes; those without any are left out
WITH RECURSIVE named AS (
  SELECT
    op.rep,
    op.rank,
    op.exec_id,
    op.parent_id,
    coalesce(op_info.name, CAST(op.op_id AS VARCHAR), '') AS name,
    CASE
      WHEN $weight = 'count' THEN 1
      WHEN $weight = 'memory' THEN op.self_memory_bytes
      WHEN $weight = 'device' THEN CASE WHEN op.side = 'device' THEN op.dur_ns END
      WHEN coalesce(op.side, '') <> 'device' THEN coalesce(op.self_ns, op.dur_ns)
    END AS weight
  FROM op
  LEFT JOIN op_info ON op.rep = op_info.rep AND op.rank = op_info.rank AND op.op_id = op_info.op_id
  WHERE coalesce(op.step, -1) BETWEEN $first_step AND $last_step
),

outermost AS (
  SELECT
    named.rep,
    named.rank,
    named.exec_id,
    named.name,
    named.weight
  FROM named
  LEFT JOIN named AS caller
    ON named.rep = caller.rep AND named.rank = caller.rank AND named.parent_id = caller.exec_id
  WHERE caller.exec_id IS NULL
),

chain AS (
  SELECT
    rep,
    rank,
    exec_id,
    name AS path,
    weight
  FROM outermost
  UNION ALL
  SELECT
    named.rep,
    named.rank,
    named.exec_id,
    chain.path || '
' || named.name AS path,
    named.weight
  FROM chain
  INNER JOIN named
    ON chain.rep = named.rep AND chain.rank = named.rank AND chain.exec_id = named.parent_id
)

SELECT
  rep,
  rank,
  path,
  CAST(sum(weight) AS BIGINT) AS weight
FROM chain
GROUP BY rep, rank, path
HAVING sum(weight) <> 0
ORDER BY rep, rank, path
