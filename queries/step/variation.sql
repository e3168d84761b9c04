-- How much the phases of a step vary from step to step, and whether they drift.
--
-- Steps whose time counts, as in step/phase_summary. Spread is robust: a few long steps do not change it.
--
-- Reads: train_phase, train_step
-- Gives, one row per (rep, rank, phase), in that order:
--   rep           bigint   repetition
--   rank          bigint   process rank
--   phase         varchar  step | compute | data_wait | forward_backward | tail
--   steps         bigint   steps that count
--   median_ns     double   ns    median
--   spread_ns     double   ns    (upper quartile - lower quartile) / 1.349: a standard deviation without the outliers
--   spread_ratio  double   spread_ns / median_ns; null when the median is 0
--   long_steps    bigint   steps that are longer than the median by over a tenth and over three spreads
--   long_ns       double   ns    what they take beyond the median, together
--   drift_ns      double   ns    median of the second half of the steps less that of the first; null for one step
WITH sample AS (
  SELECT
    rep, rank, step, phase, total_ns
  FROM train_phase
  WHERE phase <> 'whole'
  UNION ALL
  SELECT
    rep, rank, step,
    'step' AS phase,
    dur_ns AS total_ns
  FROM train_step
  WHERE timed
),

placed AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY rep, rank, phase ORDER BY step ASC) AS turn,
    count(*) OVER (PARTITION BY rep, rank, phase) AS turns
  FROM sample
  WHERE total_ns IS NOT NULL
),

middle AS (
  SELECT
    rep, rank, phase,
    median(total_ns) AS median_ns,
    percentile_cont(0.75e0) WITHIN GROUP (ORDER BY total_ns) / 1.349e0
    - percentile_cont(0.25e0) WITHIN GROUP (ORDER BY total_ns) / 1.349e0 AS spread_ns,
    median(CASE WHEN 2 * turn > turns + 1 THEN total_ns END)
    - median(CASE WHEN 2 * turn <= turns + 1 THEN total_ns END) AS drift_ns
  FROM placed
  GROUP BY rep, rank, phase
),

compared AS (
  SELECT
    rep, rank, phase, middle.median_ns, middle.spread_ns, middle.drift_ns,
    placed.total_ns - middle.median_ns AS beyond_ns,
    placed.total_ns > 1.1e0 * middle.median_ns AND placed.total_ns > middle.median_ns + 3 * middle.spread_ns AS is_long
  FROM placed
  INNER JOIN middle USING (rep, rank, phase)
)

SELECT
  rep, rank, phase,
  count(*) AS steps,
  max(median_ns) AS median_ns,
  max(spread_ns) AS spread_ns,
  max(spread_ns) / nullif(max(median_ns), 0) AS spread_ratio,
  count(CASE WHEN is_long THEN 1 END) AS long_steps,
  sum(CASE WHEN is_long THEN beyond_ns ELSE 0.0e0 END) AS long_ns,
  max(drift_ns) AS drift_ns
FROM compared
GROUP BY ALL
ORDER BY rep, rank, phase
