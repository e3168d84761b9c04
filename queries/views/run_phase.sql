-- Phases of each rank's life: until its first training step, its warm-up, its steady steps, and what comes after them.
--
-- Reads: stage
-- Gives, one row per (rep, rank, phase):
--   rep      bigint   repetition
--   rank     bigint   process rank
--   phase    varchar  set_up | warm_up | steady | ending; a rank without training steps has set_up alone
--   from_ns  bigint   ns  it begins
--   to_ns    bigint   ns  it ends; null: with the process
WITH bound AS (
  SELECT
    rep, rank,
    min(CASE WHEN stage IN ('warmup', 'steady') THEN start_ns END) AS first_ns,
    min(CASE WHEN stage = 'steady' THEN start_ns END) AS steady_ns,
    max(CASE WHEN stage IN ('warmup', 'steady') THEN start_ns + dur_ns END) AS last_ns
  FROM stage
  GROUP BY ALL
),

phase AS (
  SELECT
    rep, rank,
    'set_up' AS phase,
    0 AS from_ns,
    first_ns AS to_ns
  FROM bound
  UNION ALL
  SELECT
    rep, rank,
    'warm_up' AS phase,
    first_ns AS from_ns,
    coalesce(steady_ns, last_ns) AS to_ns
  FROM bound
  WHERE first_ns IS NOT NULL
  UNION ALL
  SELECT
    rep, rank,
    'steady' AS phase,
    steady_ns AS from_ns,
    last_ns AS to_ns
  FROM bound
  WHERE steady_ns IS NOT NULL
  UNION ALL
  SELECT
    rep, rank,
    'ending' AS phase,
    last_ns AS from_ns,
    NULL AS to_ns
  FROM bound
  WHERE last_ns IS NOT NULL
)

SELECT
  rep, rank, phase,
  CAST(from_ns AS BIGINT) AS from_ns,
  CAST(to_ns AS BIGINT) AS to_ns
FROM phase
WHERE to_ns IS NULL OR to_ns > from_ns
