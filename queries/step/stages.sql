-- Set-up stages of each rank, and the time to its first finished step.
--
-- Reads: stage?, step?
-- Ranks: apart
-- Gives, one row per (rep, rank, stage), in that order:
--   rep       bigint   repetition
--   rank      bigint   process rank
--   stage     varchar  build | compile | import | start | steady | warmup; first_step: from the launch to the end of
--                      the first training step
--   count     bigint   how often, such as graphs compiled
--   start_ns  bigint   ns  start of the first
--   dur_ns    bigint   ns  summed duration
WITH entry AS (
  SELECT
    rep, rank, stage, start_ns, dur_ns
  FROM stage
  UNION ALL
  SELECT
    rep, rank,
    'first_step' AS stage,
    0 AS start_ns,
    end_ns AS dur_ns
  FROM step
  WHERE kind IN ('warmup', 'train') AND kind_step = 0
)

SELECT
  rep, rank, stage,
  count(*) AS count,
  min(start_ns) AS start_ns,
  CAST(sum(dur_ns) AS BIGINT) AS dur_ns
FROM entry
GROUP BY ALL
ORDER BY rep, rank, stage
