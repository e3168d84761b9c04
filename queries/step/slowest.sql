-- The slowest training steps of each rank.
--
-- Reads: train_step
-- Ranks: apart
-- Takes:
--   $top  bigint  how many of each rank
-- Gives, one row per (rep, rank, position), in that order:
--   rep               bigint   repetition
--   rank              bigint   process rank
--   position          bigint   1 is the slowest; of equals the earlier comes first
--   step              bigint   position among all steps of the rank
--   kind_step         bigint   position among the rank's training steps
--   kind              varchar  train, or warmup when the rank has no step of kind train
--   epoch             bigint   from 0; null when the source cannot tell
--   in_window         boolean  operators were being recorded, so the step time is inflated
--   dur_ns            bigint   ns    the whole step
--   fetch_wait_ns     bigint   ns    time inside the dataset iterator; null when the step fetched nothing
--   fetch_wait_share  double   0..1  fetch_wait_ns / dur_ns
WITH ranked AS (
  SELECT
    rep, rank,
    row_number() OVER (PARTITION BY rep, rank ORDER BY dur_ns DESC NULLS LAST, step ASC) AS position,
    step, kind_step, kind, epoch, in_window, dur_ns, fetch_wait_ns
  FROM train_step
)

SELECT
  rep, rank, position, step, kind_step, kind, epoch, in_window, dur_ns, fetch_wait_ns,
  fetch_wait_ns / nullif(dur_ns, 0) AS fetch_wait_share
FROM ranked
WHERE position <= $top
ORDER BY rep, rank, position
