-- The phases of the training steps, as far as their times count.
--
-- A phase of a rank counts outside the op windows; a phase that is seen only inside them (forward_backward and tail
-- need the operators) counts there.
--
-- Reads: step_phase, train_step
-- Gives, one row per (rep, rank, step, phase):
--   rep        bigint   repetition
--   rank       bigint   process rank
--   step       bigint   position among all steps of the rank
--   kind       varchar  train, or warmup when the rank has no step of kind train
--   phase      varchar  data_wait | forward_backward | tail | compute | whole
--   in_window  boolean  operators were being recorded, so the time is inflated
--   total_ns   bigint   ns    length of the phase
--   step_ns    bigint   ns    length of the step it is part of
WITH phase AS (
  SELECT
    rep, rank, step, step_phase.kind, step_phase.phase, step_phase.in_window, step_phase.total_ns,
    train_step.dur_ns AS step_ns,
    min(CASE WHEN step_phase.in_window THEN 1 ELSE 0 END) OVER (
      PARTITION BY rep, rank, step_phase.phase
    ) AS all_in_window
  FROM step_phase
  INNER JOIN train_step USING (rep, rank, step)
)

SELECT
  rep, rank, step, kind, phase, in_window, total_ns, step_ns
FROM phase
WHERE all_in_window = 1 OR NOT in_window
