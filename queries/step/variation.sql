-- How much the phases of a step vary from step to step, and whether they drift.
--
-- Steps whose time counts, as in step/phase_summary. Spread is robust: a few long steps do not change it.
--
-- Reads: train_phase?, train_step?
-- Ranks: apart
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

listed AS (
  SELECT
    rep, rank, phase,
    count(*) AS steps,
    median(total_ns) AS median_ns,
    percentile_cont(0.75e0) WITHIN GROUP (ORDER BY total_ns) / 1.349e0
    - percentile_cont(0.25e0) WITHIN GROUP (ORDER BY total_ns) / 1.349e0 AS spread_ns,
    list(total_ns ORDER BY step ASC) AS times
  FROM sample
  WHERE total_ns IS NOT NULL
  GROUP BY ALL
),

compared AS (
  SELECT
    *,
    list_filter(times, LAMBDA time: time > 1.1e0 * median_ns AND time > median_ns + 3 * spread_ns) AS long_times
  FROM listed
)

SELECT
  rep, rank, phase, steps, median_ns, spread_ns,
  spread_ns / nullif(median_ns, 0) AS spread_ratio,
  len(long_times) AS long_steps,
  coalesce(list_sum([time - median_ns FOR time IN long_times]), 0.0e0) AS long_ns,
  list_median(times[(steps + 1) // 2 + 1:]) - list_median(times[:(steps + 1) // 2]) AS drift_ns
FROM compared
ORDER BY rep, rank, phase
