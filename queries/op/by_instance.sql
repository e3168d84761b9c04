-- Operator time by single operator of the network, most own time first.
--
-- Counts operators of training steps; of warm-up steps when no others were recorded.
--
-- Reads: op_info?, stack?, train_op
-- Ranks: apart
-- Takes:
--   $top  bigint  how many of each rank
-- Gives, one row per (rep, rank, position), in that order:
--   rep               bigint   repetition
--   rank              bigint   process rank
--   position          bigint   1 has the most own time; of equals the lowest op_id
--   op_id             bigint   the operator
--   name              varchar  full name, scope included
--   type              varchar  operator type
--   scope             varchar  the path in front of the last part of the name
--   phase             varchar  forward | backward | gradients | optimizer | after | communication | data | other
--   device            varchar  where it ran
--   in_shapes         varchar  input shapes and types as text
--   out_shapes        varchar  output shapes and types as text
--   count             bigint   executions
--   steps             bigint   steps it was seen in
--   total_ns          bigint   ns     children included
--   self_ns           bigint   ns     without the operators it called
--   mean_ns           double   ns     of an execution, children included
--   max_ns            bigint   ns     longest execution, children included
--   share             double   0..1   self_ns / self_ns of all operators, also those left out
--   cumulative_ns     bigint   ns     self_ns of this row and those above it
--   cumulative_share  double   0..1   share of this row and those above it
--   flops             bigint   floating-point operations of one execution
--   bytes             bigint   bytes  moved by one execution
--   occupancy_ratio   double   0..1   of a kernel: mean of its executions by their time; null when not known
--   site              varchar  where it is called from, such as file:line; null when that is not known
WITH total AS (
  SELECT
    rep, rank, op_id,
    max(name) AS name,
    max(type) AS type,
    max(scope) AS scope,
    max(phase) AS phase,
    max(device) AS device,
    max(in_shapes) AS in_shapes,
    max(out_shapes) AS out_shapes,
    count(*) AS executions,
    count(DISTINCT step) AS steps,
    CAST(sum(dur_ns) AS BIGINT) AS total_ns,
    CAST(sum(self_ns) AS BIGINT) AS self_ns,
    avg(dur_ns) AS mean_ns,
    max(dur_ns) AS max_ns,
    max(flops) AS flops,
    max(bytes) AS bytes,
    sum(occupancy_ratio * dur_ns) / nullif(sum(dur_ns) FILTER (occupancy_ratio IS NOT NULL), 0) AS occupancy_ratio
  FROM train_op
  GROUP BY ALL
),

ranked AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY rep, rank ORDER BY self_ns DESC NULLS LAST, op_id ASC) AS position
  FROM total
),

summed AS (
  SELECT
    *,
    sum(self_ns) OVER (PARTITION BY rep, rank) AS all_ns,
    sum(self_ns) OVER (PARTITION BY rep, rank ORDER BY position ROWS UNBOUNDED PRECEDING) AS running_ns
  FROM ranked
)

SELECT
  summed.rep, summed.rank, summed.position, summed.op_id, summed.name, summed.type, summed.scope, summed.phase,
  summed.device, summed.in_shapes, summed.out_shapes,
  summed.executions AS count,
  summed.steps, summed.total_ns, summed.self_ns, summed.mean_ns, summed.max_ns,
  summed.self_ns / nullif(summed.all_ns, 0) AS share,
  CAST(summed.running_ns AS BIGINT) AS cumulative_ns,
  summed.running_ns / nullif(summed.all_ns, 0) AS cumulative_share,
  summed.flops, summed.bytes, summed.occupancy_ratio,
  regexp_replace(if(starts_with(stack.frame, 'mindspore/'), stack.site, stack.frame), '\((\d+)\): .*$', ':\1') AS site
FROM summed
LEFT JOIN op_info USING (rep, rank, op_id)
LEFT JOIN stack ON op_info.rep = stack.rep AND op_info.rank = stack.rank AND op_info.stack_id = stack.stack_id
WHERE summed.position <= $top
ORDER BY summed.rep, summed.rank, summed.position
