-- Own time and executions per step of each operator in each repetition, mean over ranks.
--
-- Executions are those of the view train_op; steps are those in which operators were recorded. Executions are summed up
-- before they are told apart, for there may be millions.
--
-- Reads: op, op_info?, op_mark?, step?
-- Gives, one row per (rep, name, type, in_shapes, out_shapes), in that order:
--   rep         bigint   repetition
--   name        varchar  full name, scope included; its type when it has no name
--   type        varchar  operator type; empty when not known
--   in_shapes   varchar  input shapes and types as text; empty when not known
--   out_shapes  varchar  output shapes and types as text; empty when not known
--   self_ns     double   ns    per step, without the operators it called; null when not measured, or no step is known
--   executions  double   per step; null when no step is known
WITH executed AS (
  SELECT
    rep, rank, op.op_id, op.side,
    CASE step.kind WHEN 'train' THEN 1 WHEN 'warmup' THEN 2 ELSE 3 END AS preference,
    sum(op.self_ns) AS self_ns,
    count(*) AS executions
  FROM op
  LEFT JOIN step USING (rep, rank, step)
  WHERE step.kind IS NULL OR step.kind IN ('train', 'warmup')
  GROUP BY ALL
),

known AS (
  SELECT
    rep, rank, executed.side, executed.preference, executed.self_ns, executed.executions,
    coalesce(op_info.name, op_info.type, '') AS name,
    coalesce(op_info.type, '') AS type,
    coalesce(op_info.in_shapes, '') AS in_shapes,
    coalesce(op_info.out_shapes, '') AS out_shapes
  FROM executed
  LEFT JOIN op_info USING (rep, rank, op_id)
  ANTI JOIN op_mark USING (rep, rank, op_id)
),

best AS (
  SELECT
    rep, rank,
    min(preference) AS preference,
    max(CASE WHEN side = 'device' THEN 1 ELSE 0 END) AS has_device
  FROM known
  GROUP BY ALL
),

-- Steps of a rank by what would make their executions count.
recorded AS (
  SELECT
    rep, rank, op.side, op.step,
    CASE step.kind WHEN 'train' THEN 1 WHEN 'warmup' THEN 2 ELSE 3 END AS preference
  FROM op
  ANTI JOIN op_mark USING (rep, rank, op_id)
  LEFT JOIN step USING (rep, rank, step)
  WHERE op.step IS NOT NULL AND (step.kind IS NULL OR step.kind IN ('train', 'warmup'))
  GROUP BY ALL
),

seen AS (
  SELECT
    rep, rank,
    count(DISTINCT recorded.step) AS steps
  FROM best
  INNER JOIN recorded USING (rep, rank, preference)
  WHERE recorded.side IS NULL OR recorded.side = 'device' OR best.has_device = 0
  GROUP BY ALL
),

picked AS (
  SELECT
    rep, rank, known.name, known.type, known.in_shapes, known.out_shapes,
    known.self_ns * 1.0e0 / nullif(seen.steps, 0) AS self_ns,
    known.executions * 1.0e0 / nullif(seen.steps, 0) AS executions
  FROM known
  INNER JOIN best USING (rep, rank, preference)
  LEFT JOIN seen USING (rep, rank)
  WHERE known.side IS NULL OR known.side = 'device' OR best.has_device = 0
),

rank_count AS (
  SELECT
    rep,
    count(DISTINCT rank) AS ranks
  FROM picked
  GROUP BY ALL
),

total AS (
  SELECT
    rep, name, type, in_shapes, out_shapes,
    sum(self_ns) AS self_ns,
    sum(executions) AS executions
  FROM picked
  GROUP BY ALL
)

SELECT
  rep, total.name, total.type, total.in_shapes, total.out_shapes,
  total.self_ns / nullif(rank_count.ranks, 0) AS self_ns,
  total.executions / nullif(rank_count.ranks, 0) AS executions
FROM total
INNER JOIN rank_count USING (rep)
ORDER BY rep, total.name, total.type, total.in_shapes, total.out_shapes
