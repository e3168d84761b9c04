-- Time of all operators on each side, device and host, as the sum of each operator's longest over devices or threads.
--
-- It is a sum over devices, no wall time. Counts the same steps as op/profile_analyze.
--
-- Reads: op, step?
-- Gives, one row per (rep, rank, side), in that order:
--   rep       bigint   repetition
--   rank      bigint   process rank
--   side      varchar  device | host
--   ops       bigint   operators that ran there
--   count     bigint   executions
--   total_ns  double   ns  start to end, without operators they called; null when no time is known
WITH stepped AS (
  SELECT
    rep, rank,
    coalesce(op.side, 'device') AS place,
    op.op_id, op.track,
    coalesce(op.exact_dur_ns, op.self_ns) AS total_ns,
    CASE step.kind WHEN 'train' THEN 1 WHEN 'warmup' THEN 2 ELSE 3 END AS preference
  FROM op
  LEFT JOIN step USING (rep, rank, step)
  WHERE step.kind IS NULL OR step.kind IN ('train', 'warmup')
),

best AS (
  SELECT
    rep, rank, place,
    min(preference) AS preference
  FROM stepped
  GROUP BY ALL
),

located AS (
  SELECT
    rep, rank, place, stepped.op_id,
    count(*) AS executions,
    sum(stepped.total_ns) AS total_ns
  FROM stepped
  INNER JOIN best USING (rep, rank, place, preference)
  GROUP BY rep, rank, place, stepped.op_id, stepped.track
),

longest AS (
  SELECT
    rep, rank, place, op_id,
    max(executions) AS executions,
    CAST(max(total_ns) AS DOUBLE) AS total_ns
  FROM located
  GROUP BY ALL
)

SELECT
  rep, rank,
  place AS side,
  count(*) AS ops,
  CAST(sum(executions) AS BIGINT) AS count,
  sum(total_ns) AS total_ns
FROM longest
GROUP BY ALL
ORDER BY rep, rank, side
