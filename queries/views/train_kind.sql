-- Which kind of step stands for a rank: train; warmup when it has no other.
--
-- Reads: step
-- Gives, one row per (rep, rank):
--   rep            bigint   repetition
--   rank           bigint   process rank
--   kind           varchar  train | warmup
--   all_in_window  boolean  operators were being recorded in all of these steps
WITH seen AS (
  SELECT
    rep, rank, kind,
    bool_and(coalesce(in_window, FALSE)) AS all_in_window
  FROM step
  WHERE kind IN ('train', 'warmup')
  GROUP BY ALL
)

SELECT
  rep, rank,
  min(kind) AS kind,
  min_by(all_in_window, kind) AS all_in_window
FROM seen
GROUP BY ALL
