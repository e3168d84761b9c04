-- How long each phase of a step took. The phases of a step add up to end_ns - start_ns exactly.
--
-- With fp_ns and bp_ns a step has data_wait (fp - start), forward_backward (bp - fp) and tail (end - bp); with fp_ns
-- alone data_wait and compute (end - fp); without fp_ns the one phase whole (end - start). A bp_ns that is not
-- exact does not count.
--
-- Reads: step
-- Gives, one row per (rep, rank, step, phase):
--   rep          bigint   repetition
--   rank         bigint   process rank
--   step         bigint   position among all steps of the rank
--   kind_step    bigint   position among the rank's training steps, or among its eval steps
--   kind         varchar  warmup | train | eval
--   epoch        bigint   from 0; null when the source cannot tell
--   pipeline_id  bigint   the dataset iterator that fed it; null when none did
--   in_window    boolean  operators were being recorded, so the step time is inflated
--   phase        varchar  data_wait | forward_backward | tail | compute | whole
--   total_ns     bigint   ns    length of the phase
--   step_ns      bigint   ns    length of the step
WITH known AS (
  SELECT
    * REPLACE (CASE WHEN coalesce(bp_source, 'op') = 'op' OR bp_error_ns = 0 THEN bp_ns END AS bp_ns)
  FROM step
),

part AS (
  SELECT
    *,
    CASE WHEN fp_ns IS NULL THEN 'whole' ELSE 'data_wait' END AS phase,
    coalesce(fp_ns, end_ns) - start_ns AS total_ns
  FROM known
  UNION ALL
  SELECT
    *,
    CASE WHEN bp_ns IS NULL THEN 'compute' ELSE 'forward_backward' END AS phase,
    coalesce(bp_ns, end_ns) - fp_ns AS total_ns
  FROM known
  WHERE fp_ns IS NOT NULL
  UNION ALL
  SELECT
    *,
    'tail' AS phase,
    end_ns - bp_ns AS total_ns
  FROM known
  WHERE fp_ns IS NOT NULL AND bp_ns IS NOT NULL
)

SELECT
  rep, rank, step, kind_step, kind, epoch, pipeline_id,
  coalesce(in_window, FALSE) AS in_window,
  phase, total_ns,
  end_ns - start_ns AS step_ns
FROM part
