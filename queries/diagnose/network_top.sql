-- The operators with the most own time of the steps in which operators were recorded, as shares of those steps.
--
-- Operators that run side by side have shares that may exceed 1 together. See the view step_op
-- for what counts as own time.
--
-- Reads: op_info?, stack?, step_op, step_part
-- Ranks: apart
-- Takes:
--   $top  bigint  how many of each rank
-- Gives, one row per (rep, rank, position), in that order:
--   rep          bigint   repetition
--   rank         bigint   process rank
--   position     bigint   1 has the most own time; of equals the lowest op_id
--   op_id        bigint   the operator
--   name         varchar  full name, scope included; null when it is not known
--   type         varchar  operator type; null when it is not known
--   phase        varchar  forward | backward | gradients | optimizer | after | communication | data | other; null
--                        when it is not known
--   in_shapes    varchar  input shapes and types as text; null when they are not known
--   count        bigint   executions
--   seen_steps   bigint   steps it was seen in
--   steps        bigint   steps with recorded operators
--   self_ns      bigint   ns    without the operators it called; children included where that is not known
--   per_step_ns  double   ns    self_ns / steps
--   share        double   0..1  self_ns / summed time of these steps
--   site         varchar  where it is called from, such as file:line; null when that is not known
--   site_share   double   0..1  of all operators of the forward and backward pass that are called from there; null
--                         without a site
WITH whole AS (
  SELECT
    rep, rank,
    count(*) AS steps,
    sum(dur_ns) AS step_ns
  FROM step_part
  GROUP BY ALL
),

total AS (
  SELECT
    rep, rank, step_op.op_id,
    count(*) AS executions,
    count(DISTINCT step) AS seen_steps,
    CAST(sum(step_op.own_ns) AS BIGINT) AS self_ns
  FROM step_op
  GROUP BY ALL
),

ranked AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY rep, rank ORDER BY self_ns DESC NULLS LAST, op_id ASC) AS position
  FROM total
),

called AS (
  SELECT
    ranked.*, op_info.name, op_info.type, op_info.phase, op_info.in_shapes,
    if(starts_with(stack.frame, 'mindspore/'), stack.site, stack.frame) AS site
  FROM ranked
  LEFT JOIN op_info USING (rep, rank, op_id)
  LEFT JOIN stack ON op_info.rep = stack.rep AND op_info.rank = stack.rank AND op_info.stack_id = stack.stack_id
)

SELECT
  rep, rank, called.position, called.op_id, called.name, called.type, called.phase, called.in_shapes,
  called.executions AS count,
  called.seen_steps, whole.steps, called.self_ns,
  called.self_ns / nullif(whole.steps, 0) AS per_step_ns,
  called.self_ns / nullif(whole.step_ns, 0) AS share,
  called.site,
  if(
    called.site IS NULL, NULL,
    sum(called.self_ns) FILTER (called.phase IN ('forward', 'backward', 'other')) OVER (
      PARTITION BY rep, rank, called.site
    ) / nullif(whole.step_ns, 0)
  ) AS site_share
FROM called
INNER JOIN whole USING (rep, rank)
QUALIFY called.position <= $top
ORDER BY rep, rank, called.position
