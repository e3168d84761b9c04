-- The operator executions that stand for a device of a rank: those of its training steps, as in train_op.
--
-- When a device ran none in a training step, those of warm-up steps; when there are none either, those whose step is
-- not known: the AI CPU fetches batches while no step runs.
--
-- Reads: op_exec, op_mark?
-- Gives, one row per (rep, rank, op_id, start_ns, track):
--   rep       bigint   repetition
--   rank      bigint   process rank
--   op_id     bigint   the operator
--   step      bigint   the step it ran in; null when it is not known
--   start_ns  bigint   ns     start
--   dur_ns    bigint   ns     duration, children included
--   self_ns   bigint   ns     duration without the operators it called
--   wait_ns   bigint   ns     time between launch and start, where the source has it
--   track     varchar  stream, thread or device; empty where the source names none
--   name      varchar  full name, scope included
--   type      varchar  operator type, such as Conv2D
--   device    varchar  where it ran, such as AI_CORE, AI_CPU, CPU; empty where the source does not say
WITH choice AS (
  SELECT
    rep, rank, op_id, step, start_ns, dur_ns, self_ns, wait_ns,
    coalesce(track, '') AS track,
    name, type,
    coalesce(device, '') AS device,
    side,
    CASE kind WHEN 'train' THEN 1 WHEN 'warmup' THEN 2 ELSE 3 END AS preference
  FROM op_exec
  ANTI JOIN op_mark USING (rep, rank, op_id)
  WHERE kind IS NULL OR kind IN ('train', 'warmup')
)

SELECT
  rep, rank, op_id, step, start_ns, dur_ns, self_ns, wait_ns, track, name, type, device
FROM choice
QUALIFY
  preference = min(preference) OVER (PARTITION BY rep, rank, device)
  AND (coalesce(side, 'device') = 'device' OR NOT bool_or(side = 'device') OVER (PARTITION BY rep, rank))
