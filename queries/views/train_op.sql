-- The operator executions that stand for a rank: those of its training steps (kind train).
--
-- When there are none, those of its warm-up steps; when there are none either, those whose step is not known.
-- Evaluation never counts, nor does what a trace has beside its operators (op_mark). Of sources that tell where an
-- operator was launched from where it ran, only the latter counts.
--
-- Reads: op_exec, op_mark?
-- Gives, one row per (rep, rank, op_id, start_ns, track):
--   rep              bigint   repetition
--   rank             bigint   process rank
--   op_id            bigint   the operator
--   step             bigint   the step it ran in; null when it is not known
--   kind             varchar  train | warmup | null: the same for all rows of a rank
--   start_ns         bigint   ns     start
--   dur_ns           bigint   ns     duration, children included
--   self_ns          bigint   ns     duration without the operators it called
--   wait_ns          bigint   ns     time between launch and start, where the source has it
--   track            varchar  stream, thread or device
--   side             varchar  device (it ran there) | host (it was launched there); null when the source has one
--   exact_dur_ns     double   ns     dur_ns before it was rounded; null when the source has whole ns
--   exact_wait_ns    double   ns     wait_ns before it was rounded; null when the source has whole ns
--   name             varchar  full name, scope included
--   type             varchar  operator type, such as Conv2D
--   scope            varchar  the path in front of the last part of the name
--   phase            varchar  forward | backward | gradients | optimizer | after | communication | data | other
--   device           varchar  where it ran, such as CPU
--   in_shapes        varchar  input shapes and types as text
--   out_shapes       varchar  output shapes and types as text
--   flops            bigint   floating-point operations of one execution
--   bytes            bigint   bytes  moved by one execution
--   occupancy_ratio  double   0..1   of a kernel, by the source's estimate; null when not known
WITH choice AS (
  SELECT
    *,
    CASE kind WHEN 'train' THEN 1 WHEN 'warmup' THEN 2 ELSE 3 END AS preference
  FROM op_exec
  ANTI JOIN op_mark USING (rep, rank, op_id)
  WHERE kind IS NULL OR kind IN ('train', 'warmup')
)

SELECT
  rep, rank, op_id, step, kind, start_ns, dur_ns, self_ns, wait_ns, track, side, exact_dur_ns, exact_wait_ns, name,
  type, scope, phase, device, in_shapes, out_shapes, flops, bytes, occupancy_ratio
FROM choice
QUALIFY
  preference = min(preference) OVER (PARTITION BY rep, rank)
  AND (coalesce(side, 'device') = 'device' OR NOT bool_or(side = 'device') OVER (PARTITION BY rep, rank))
