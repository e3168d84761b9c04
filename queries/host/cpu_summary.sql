-- How busy the host was, and how many cores each kind of process used.
--
-- Reads: cpu
-- Ranks: apart
-- Gives, one row per (rep, rank, scope, name), in that order:
--   rep              bigint   repetition
--   rank             bigint   process rank
--   scope            varchar  host | process
--   name             varchar  what the process is: trainer, worker, ...; empty for the host and unnamed processes
--   samples          bigint   samples
--   processes        bigint   processes of that name; 0 for the host
--   mean_busy_share  double   0..1   host: share of all cores that was not idle; null for processes
--   max_busy_share   double   0..1   host: the busiest sample; null for processes
--   mean_cores       double   cores  process: one of them while it ran; null for the host
--   total_cores      double   cores  process: all of that name together, over all times the rank was sampled at
WITH sample AS (
  SELECT
    rep, rank, scope,
    coalesce(name, '') AS name,
    pid,
    CASE WHEN scope = 'host' THEN 1 - idle_ratio END AS busy_share,
    CASE WHEN scope = 'process' THEN user_ratio + sys_ratio END AS cores
  FROM cpu
  WHERE scope IN ('host', 'process')
),

clock AS (
  SELECT
    rep, rank,
    count(DISTINCT t_ns) AS times
  FROM cpu
  WHERE scope = 'process'
  GROUP BY ALL
)

SELECT
  rep, rank, sample.scope, sample.name,
  count(*) AS samples,
  count(DISTINCT sample.pid) AS processes,
  avg(sample.busy_share) AS mean_busy_share,
  max(sample.busy_share) AS max_busy_share,
  avg(sample.cores) AS mean_cores,
  sum(sample.cores) / nullif(max(clock.times), 0) AS total_cores
FROM sample
LEFT JOIN clock USING (rep, rank)
GROUP BY ALL
ORDER BY rep, rank, sample.scope, sample.name
