-- Training steps in which operators were recorded, by their number among the training steps.
--
-- Reads: op, step
-- Gives, one row per (rep, rank, kind_step), in that order:
--   rep        bigint  repetition
--   rank       bigint  process rank
--   kind_step  bigint  position among the rank's training steps, warm-up included, from 0
--   count      bigint  executions
SELECT
  rep, rank, step.kind_step,
  count(*) AS count
FROM op
INNER JOIN step USING (rep, rank, step)
WHERE step.kind IN ('train', 'warmup')
GROUP BY ALL
ORDER BY rep, rank, step.kind_step
