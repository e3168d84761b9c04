-- The operator types with the most own time of the steps in which operators were recorded, as shares of those steps.
--
-- Operators that run side by side have shares that may exceed 1 together. See the view step_op
-- for what counts as own time.
--
-- Reads: op_info, step_op, step_part
-- Ranks: apart
-- Takes:
--   $top  bigint  how many of each rank
-- Gives, one row per (rep, rank, position), in that order:
--   rep          bigint   repetition
--   rank         bigint   process rank
--   position     bigint   1 has the most own time; of equals the first name
--   type         varchar  operator type
--   phase        varchar  forward | backward | gradients | optimizer | after | communication | data | other
--   operators    bigint   different operators of this type and phase
--   count        bigint   executions
--   all_count    bigint   executions of all operators of the rank, of whatever type
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

executed AS (
  SELECT
    rep, rank,
    count(*) AS all_count
  FROM step_op
  GROUP BY ALL
),

total AS (
  SELECT
    rep, rank, op_info.type, op_info.phase,
    count(DISTINCT step_op.op_id) AS operators,
    count(*) AS executions,
    CAST(sum(step_op.own_ns) AS BIGINT) AS self_ns
  FROM step_op
  INNER JOIN op_info USING (rep, rank, op_id)
  WHERE op_info.type IS NOT NULL
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
  executed.all_count, whole.steps, ranked.self_ns,
  ranked.self_ns / nullif(whole.step_ns, 0) AS share
FROM ranked
INNER JOIN whole USING (rep, rank)
INNER JOIN executed USING (rep, rank)
WHERE ranked.position <= $top
ORDER BY rep, rank, ranked.position
