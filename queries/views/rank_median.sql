-- The median of each phase of a rank's training steps, and of the whole step.
--
-- Reads: train_phase?, train_step?
-- Gives, one row per (rep, rank, phase):
--   rep        bigint   repetition
--   rank       bigint   process rank
--   phase      varchar  compute | data_wait | forward_backward | step | tail | whole
--   median_ns  double   ns  median length
WITH sample AS (
  SELECT
    rep, rank, phase, total_ns
  FROM train_phase
  UNION ALL
  SELECT
    rep, rank,
    'step' AS phase,
    dur_ns AS total_ns
  FROM train_step
  WHERE timed
)

SELECT
  rep, rank, phase,
  median(total_ns) AS median_ns
FROM sample
WHERE total_ns IS NOT NULL
GROUP BY ALL
