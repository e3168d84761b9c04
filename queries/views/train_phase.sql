-- The phases of the training steps, as far as their times count.
--
-- A phase of a rank counts outside the op windows; a phase that is seen only inside them (forward_backward and tail
-- need the operators) counts there.
--
-- Reads: step_phase, train_kind
-- Gives, one row per (rep, rank, step, phase):
--   rep        bigint   repetition
--   rank       bigint   process rank
--   step       bigint   position among all steps of the rank
--   kind       varchar  train, or warmup when the rank has no step of kind train
--   phase      varchar  data_wait | forward_backward | tail | compute | whole
--   in_window  boolean  operators were being recorded, so the time is inflated
--   total_ns   bigint   ns    length of the phase
--   step_ns    bigint   ns    length of the step it is part of
WITH seen AS (
  SELECT
    rep, rank, kind, step_phase.phase,
    bool_and(step_phase.in_window) AS all_in_window
  FROM step_phase
  INNER JOIN train_kind USING (rep, rank, kind)
  GROUP BY ALL
)

SELECT
  rep, rank, step_phase.step, kind, phase, step_phase.in_window, step_phase.total_ns, step_phase.step_ns
FROM step_phase
INNER JOIN seen USING (rep, rank, kind, phase)
WHERE seen.all_in_window OR NOT step_phase.in_window
