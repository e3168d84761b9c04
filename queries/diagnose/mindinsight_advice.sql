-- What MindInsight 2.3.1 advises by the steps and by the host's CPU; not our verdict. The rest is diagnose/mindinsight.
--
-- Rule step_trace: the mean time from a step's start to its first forward operator, over all training steps but the
-- first, is above 0.5 ms, however long a step is. Rule cpu: the host was busy for more than 80 %, from the first batch
-- on. Without samples a rule has no row. In folders of MindSpore 2.10 MindInsight reads every second value as a false 0
-- and finds each host busy; here the true values count.
--
-- Reads: cpu?, step?, train_batch?
-- Ranks: apart
-- Gives, one row per (rep, rank, rule), in that order:
--   rep      bigint   repetition
--   rank     bigint   process rank
--   rule     varchar  cpu | step_trace
--   samples  bigint   CPU samples, or steps
--   value    double   mean busy share of the host in whole %, or mean interval in ms
--   advised  boolean  MindInsight gives this advice
WITH opening AS (
  SELECT
    rep, rank,
    min(t_ns) AS t_ns
  FROM train_batch
  WHERE side = 'host'
  GROUP BY ALL
),

idle AS (
  SELECT
    rep, rank,
    count(cpu.idle_ratio) AS samples,
    avg(cpu.idle_ratio) * 100.0e0 AS idle_percent
  FROM cpu
  LEFT JOIN opening USING (rep, rank)
  WHERE cpu.scope = 'host' AND cpu.idle_ratio IS NOT NULL AND cpu.t_ns >= coalesce(opening.t_ns, cpu.t_ns)
  GROUP BY ALL
),

training AS (
  SELECT
    rep, rank,
    fp_ns - start_ns AS interval_ns,
    row_number() OVER (PARTITION BY rep, rank ORDER BY step) AS place
  FROM step
  WHERE kind IN ('warmup', 'train')
),

waited AS (
  SELECT
    rep, rank,
    count(interval_ns) AS samples,
    avg(interval_ns) / 1.0e6 AS interval_ms
  FROM training
  WHERE place > 1 AND interval_ns IS NOT NULL
  GROUP BY ALL
),

judged AS (
  SELECT
    rep, rank,
    'cpu' AS rule,
    samples,
    100.0e0 - floor(idle_percent + 0.5e0) AS value,
    idle_percent < 19.5e0 AS advised
  FROM idle
  UNION ALL
  SELECT
    rep, rank,
    'step_trace' AS rule,
    samples,
    interval_ms AS value,
    interval_ms > 0.5e0 AS advised
  FROM waited
)

SELECT
  rep, rank, rule, samples, value, advised
FROM judged
ORDER BY rep, rank, rule
