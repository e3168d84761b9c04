-- The training steps that stand for a rank: those of kind train; its warm-up steps when it has no other.
--
-- Reads: step, train_kind
-- Gives, one row per (rep, rank, step):
--   rep            bigint   repetition
--   rank           bigint   process rank
--   step           bigint   position among all steps of the rank
--   kind_step      bigint   position among the rank's training steps
--   position       bigint   the step's number in the source, else kind_step
--   kind           varchar  train, or warmup when the rank has no step of kind train
--   epoch          bigint   from 0; null when the source cannot tell
--   pipeline_id    bigint   the dataset iterator that fed it; null when none did
--   start_ns       bigint   ns    begin of the step
--   fp_ns          bigint   ns    forward start; null when it is not known
--   bp_ns          bigint   ns    backward end, where operators or a wait tell it exactly; else null
--   end_ns         bigint   ns    end of the step
--   dur_ns         bigint   ns    the whole step
--   fetch_wait_ns  bigint   ns    time inside the dataset iterator; null when the step fetched nothing
--   called_ns      bigint   ns    the network was first called; null unless no loader of its was recorded
--   in_window      boolean  operators were being recorded, so the step time is inflated
--   timed          boolean  its time counts: it is outside a window, or every one of these steps is in one
SELECT
  rep, rank, step.step, step.kind_step,
  coalesce(step.source_step, step.kind_step) AS position,
  kind, step.epoch, step.pipeline_id, step.start_ns, step.fp_ns,
  CASE WHEN coalesce(step.bp_source, 'op') = 'op' OR step.bp_error_ns = 0 THEN step.bp_ns END AS bp_ns,
  step.end_ns,
  step.end_ns - step.start_ns AS dur_ns,
  step.fetch_wait_ns, step.called_ns,
  coalesce(step.in_window, FALSE) AS in_window,
  train_kind.all_in_window OR NOT coalesce(step.in_window, FALSE) AS timed
FROM step
INNER JOIN train_kind USING (rep, rank, kind)
