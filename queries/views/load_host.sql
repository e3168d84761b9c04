-- What the machine and the interpreter were doing while the training pipelines were in their steady state, without
-- evaluations.
--
-- Reads: cpu, eval_span?, load_window
-- Kept: yes
-- Gives, one row per (rep, rank, pipeline_key):
--   rep            bigint   repetition
--   rank           bigint   process rank
--   pipeline_key   varchar  equal keys are the same pipeline again
--   idle_share     double   0..1  of the machine's cores; null when not measured
--   process_cores  double   cores  that the rank's processes used, the launcher left out; null when not measured
--   gil_share      double   0..1  of the time Python code held the interpreter's lock; null when not measured
WITH sampled AS (
  -- Processes are summed at each time, then averaged.
  SELECT
    rep, rank, t_ns, scope,
    avg(CASE WHEN scope = 'host' THEN idle_ratio WHEN scope = 'gil' THEN user_ratio END) AS ratio,
    sum(CASE WHEN scope = 'process' THEN user_ratio + sys_ratio END) AS cores
  FROM cpu
  WHERE scope IN ('host', 'gil') OR (scope = 'process' AND coalesce(name, '') <> 'launcher')
  GROUP BY ALL
),

-- A sample is of the interval that ends with it: the first one of the window may be mostly of the time before.
placed AS (
  SELECT
    sampled.rep, sampled.rank, load_window.pipeline_key, sampled.scope, sampled.ratio, sampled.cores,
    CASE
      WHEN sampled.t_ns <= eval_span.end_ns THEN 0
      WHEN sampled.t_ns BETWEEN load_window.from_ns AND load_window.to_ns THEN 1
      ELSE 0
    END AS inside
  FROM load_window
  INNER JOIN sampled USING (rep, rank)
  ASOF LEFT JOIN eval_span
    ON sampled.rep = eval_span.rep AND sampled.rank = eval_span.rank AND sampled.t_ns > eval_span.start_ns
),

weighed AS (
  SELECT
    *,
    max(inside) OVER (PARTITION BY rep, rank, pipeline_key, scope) AS any_inside
  FROM placed
)

SELECT
  rep, rank, pipeline_key,
  avg(ratio) FILTER (WHERE scope = 'host') AS idle_share,
  avg(cores) FILTER (WHERE scope = 'process') AS process_cores,
  avg(ratio) FILTER (WHERE scope = 'gil') AS gil_share
FROM weighed
WHERE inside = any_inside
GROUP BY ALL
