-- What a training step took in each repetition, of the rank that is slowest on median.
--
-- Steps count outside op windows, where nothing inflates them; when every step is in a window, all count.
--
-- Reads: step?, train_step
-- Gives, one row per (rep), in that order:
--   rep             bigint   repetition
--   rank            bigint   process rank that is shown
--   steps           bigint   training steps that count
--   median_ns       double   ns    median step time
--   p90_ns          double   ns    90th percentile of the step time, interpolated
--   data_wait_ns    double   ns    mean time inside the dataset iterator, of the steps that fetched; null when none did
--   first_step_ns   bigint   ns    from the launch of the command to the end of the last rank's first training step
WITH timed AS (
  SELECT
    rep, rank,
    count(*) AS steps,
    median(dur_ns) AS median_ns,
    percentile_cont(0.9e0) WITHIN GROUP (ORDER BY dur_ns) AS p90_ns,
    avg(fetch_wait_ns) AS data_wait_ns
  FROM train_step
  WHERE timed
  GROUP BY rep, rank
),

slowest AS (
  SELECT *
  FROM timed
  QUALIFY row_number() OVER (PARTITION BY rep ORDER BY median_ns DESC, rank ASC) = 1
),

first_step AS (
  SELECT
    rep,
    max(end_ns) AS first_step_ns
  FROM step
  WHERE kind IN ('warmup', 'train') AND kind_step = 0
  GROUP BY ALL
)

SELECT
  rep, slowest.rank, slowest.steps, slowest.median_ns, slowest.p90_ns, slowest.data_wait_ns, first_step.first_step_ns
FROM slowest
LEFT JOIN first_step USING (rep)
ORDER BY rep
