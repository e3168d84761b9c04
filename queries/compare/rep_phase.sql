-- Mean length of each phase of the training steps in each repetition, of the rank where it is longest.
--
-- Reads: train_phase
-- Gives, one row per (rep, phase), in that order:
--   rep      bigint   repetition
--   phase    varchar  data_wait | forward_backward | tail | compute | whole
--   mean_ns  double   ns    mean over steps
WITH phase_mean AS (
  SELECT
    rep, rank, phase,
    avg(total_ns) AS mean_ns
  FROM train_phase
  GROUP BY ALL
)

SELECT
  rep, phase,
  max(mean_ns) AS mean_ns
FROM phase_mean
GROUP BY ALL
ORDER BY rep, phase
