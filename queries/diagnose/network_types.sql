-- The operator types with most own time of the steps in which operators were recorded, as shares of those steps.
--
-- Operators that run side by side have shares that may exceed 1 together. On a rank that has a device, an operator of
-- the host has the time of what it launched there; what nobody is known to have launched stands for itself.
--
-- Reads: op, op_info, step_part
-- Ranks: apart
-- Takes:
--   $top  bigint  how many of each rank
-- Gives, one row per (rep, rank, position), in that order:
--   rep          bigint   repetition
--   rank         bigint   process rank
--   position     bigint   1 has the most own time; of equals the first name
--   type         varchar  operator type
--   phase        varchar  forward | backward | gradients | optimizer | after | communication | other
--   operators    bigint   different operators of this type and phase
--   count        bigint   executions
--   steps        bigint   steps with recorded operators
--   self_ns      bigint   ns    without the operators they called; children included where that is not known
--   share        double   0..1  self_ns / summed time of these steps
WITH whole AS (
  SELECT
    rep, rank,
    count(*) AS steps,
    sum(dur_ns) AS step_ns
  FROM step_part
  GROUP BY ALL
),

device_rank AS (
  SELECT
    rep, rank,
    TRUE AS has_device
  FROM op
  WHERE side = 'device' AND step IS NOT NULL
  GROUP BY ALL
),

owned AS (
  SELECT
    rep, rank, step, op.op_id,
    CASE
      WHEN device_rank.has_device IS NULL OR op.side IS NULL THEN coalesce(op.self_ns, op.dur_ns)
      WHEN op.side = 'host' THEN coalesce(op.device_self_ns, 0)
      WHEN op.parent_id IS NULL THEN op.dur_ns
      ELSE 0
    END AS own_ns,
    device_rank.has_device
  FROM op
  INNER JOIN step_part USING (rep, rank, step)
  LEFT JOIN device_rank USING (rep, rank)
),

total AS (
  SELECT
    rep, rank, op_info.type, op_info.phase,
    count(DISTINCT owned.op_id) AS operators,
    count(*) AS executions,
    CAST(sum(owned.own_ns) AS BIGINT) AS self_ns
  FROM owned
  INNER JOIN op_info USING (rep, rank, op_id)
  WHERE
    op_info.type IS NOT NULL
    AND coalesce(op_info.category, '') NOT IN ('python_function', 'user_annotation')
    AND (owned.has_device IS NULL OR owned.own_ns > 0)
  GROUP BY ALL
),

ranked AS (
  SELECT
    *,
    row_number() OVER (
      PARTITION BY rep, rank ORDER BY self_ns DESC NULLS LAST, type ASC, phase ASC NULLS LAST
    ) AS position
  FROM total
)

SELECT
  rep, rank, ranked.position, ranked.type, ranked.phase, ranked.operators,
  ranked.executions AS count,
  whole.steps, ranked.self_ns,
  ranked.self_ns / nullif(whole.step_ns, 0) AS share
FROM ranked
INNER JOIN whole USING (rep, rank)
WHERE ranked.position <= $top
ORDER BY rep, rank, ranked.position
