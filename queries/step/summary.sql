-- Step times of each kind of step.
--
-- Times count outside op windows, where nothing inflates them; when every step of the kind is in a window, all count.
--
-- Reads: step
-- Ranks: apart
-- Gives, one row per (rep, rank, kind), in that order:
--   rep           bigint   repetition
--   rank          bigint   process rank
--   kind          varchar  eval | train | warmup
--   steps         bigint   all steps of the kind
--   window_steps  bigint   those in op windows
--   timed_steps   bigint   those whose time counts below
--   from_window   boolean  every step is in a window, so the times are inflated
--   mean_ns       double   ns    mean
--   median_ns     double   ns    median
--   p90_ns        double   ns    90th percentile, interpolated
--   min_ns        bigint   ns    shortest
--   max_ns        bigint   ns    longest
--   stddev_ns     double   ns    sample standard deviation; null for fewer than two
WITH timed AS (
  SELECT
    rep, rank, kind, step,
    end_ns - start_ns AS dur_ns,
    CASE WHEN in_window THEN 1 ELSE 0 END AS windowed,
    min(CASE WHEN in_window THEN 1 ELSE 0 END) OVER (PARTITION BY rep, rank, kind) AS all_in_window
  FROM step
)

-- The standard deviation is summed in the order of the steps: its last digits depend on it.
SELECT
  rep, rank, kind,
  count(*) AS steps,
  count(*) FILTER (WHERE windowed = 1) AS window_steps,
  count(*) FILTER (WHERE windowed = all_in_window) AS timed_steps,
  max(all_in_window) = 1 AS from_window,
  avg(dur_ns) FILTER (WHERE windowed = all_in_window) AS mean_ns,
  median(dur_ns) FILTER (WHERE windowed = all_in_window) AS median_ns,
  percentile_cont(0.9e0) WITHIN GROUP (ORDER BY dur_ns) FILTER (WHERE windowed = all_in_window) AS p90_ns,
  min(dur_ns) FILTER (WHERE windowed = all_in_window) AS min_ns,
  max(dur_ns) FILTER (WHERE windowed = all_in_window) AS max_ns,
  list_stddev_samp(list(dur_ns ORDER BY step ASC) FILTER (WHERE windowed = all_in_window)) AS stddev_ns
FROM timed
GROUP BY ALL
ORDER BY rep, rank, kind
