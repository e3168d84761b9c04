-- The training steps that stand for a rank: those of kind train; its warm-up steps when it has no other.
--
-- Reads: step
-- Gives, one row per (rep, rank, step):
--   rep            bigint   repetition
--   rank           bigint   process rank
--   step           bigint   position among all steps of the rank
--   kind_step      bigint   position among the rank's training steps
--   kind           varchar  train, or warmup when the rank has no step of kind train
--   epoch          bigint   from 0; null when the source cannot tell
--   pipeline_id    bigint   the dataset iterator that fed it; null when none did
--   bp_ns          bigint   ns    backward end; null outside op windows
--   end_ns         bigint   ns    end of the step
--   dur_ns         bigint   ns    the whole step
--   fetch_wait_ns  bigint   ns    time inside the dataset iterator; null when the step fetched nothing
--   in_window      boolean  operators were being recorded, so the step time is inflated
--   timed          boolean  its time counts: it is outside a window, or every one of these steps is in one
WITH ranked AS (
  SELECT
    rep, rank, step, kind_step, kind, epoch, pipeline_id, bp_ns, end_ns,
    end_ns - start_ns AS dur_ns,
    fetch_wait_ns,
    coalesce(in_window, FALSE) AS in_window,
    max(CASE WHEN kind = 'train' THEN 1 ELSE 0 END) OVER (PARTITION BY rep, rank) AS has_train
  FROM step
  WHERE kind IN ('train', 'warmup')
),

picked AS (
  SELECT
    *,
    min(CASE WHEN in_window THEN 1 ELSE 0 END) OVER (PARTITION BY rep, rank) AS all_in_window
  FROM ranked
  WHERE kind = CASE WHEN has_train = 1 THEN 'train' ELSE 'warmup' END
)

SELECT
  rep, rank, step, kind_step, kind, epoch, pipeline_id, bp_ns, end_ns, dur_ns, fetch_wait_ns, in_window,
  all_in_window = 1 OR NOT in_window AS timed
FROM picked
