-- Own time and executions per step of each operator in each repetition, mean over ranks.
--
-- Steps are those in which operators were recorded.
--
-- Reads: train_op
-- Gives, one row per (rep, name, type, in_shapes, out_shapes), in that order:
--   rep         bigint   repetition
--   name        varchar  full name, scope included; its type when it has no name
--   type        varchar  operator type; empty when not known
--   in_shapes   varchar  input shapes and types as text; empty when not known
--   out_shapes  varchar  output shapes and types as text; empty when not known
--   self_ns     double   ns    per step, without the operators it called
--   executions  double   per step
WITH seen AS (
  SELECT
    rep,
    rank,
    count(DISTINCT step) AS steps
  FROM train_op
  GROUP BY rep, rank
),

rank_count AS (
  SELECT
    rep,
    count(*) AS ranks
  FROM seen
  GROUP BY rep
),

total AS (
  SELECT
    train_op.rep,
    coalesce(train_op.name, train_op.type, '') AS name,
    coalesce(train_op.type, '') AS type,
    coalesce(train_op.in_shapes, '') AS in_shapes,
    coalesce(train_op.out_shapes, '') AS out_shapes,
    sum(train_op.self_ns * 1.0e0 / nullif(seen.steps, 0)) AS self_ns,
    sum(1.0e0 / nullif(seen.steps, 0)) AS executions
  FROM train_op
  INNER JOIN seen ON train_op.rep = seen.rep AND train_op.rank = seen.rank
  GROUP BY
    train_op.rep,
    coalesce(train_op.name, train_op.type, ''),
    coalesce(train_op.type, ''),
    coalesce(train_op.in_shapes, ''),
    coalesce(train_op.out_shapes, '')
)

SELECT
  total.rep,
  total.name,
  total.type,
  total.in_shapes,
  total.out_shapes,
  total.self_ns / nullif(rank_count.ranks, 0) AS self_ns,
  total.executions / nullif(rank_count.ranks, 0) AS executions
FROM total
INNER JOIN rank_count ON total.rep = rank_count.rep
ORDER BY total.rep, total.name, total.type, total.in_shapes, total.out_shapes
