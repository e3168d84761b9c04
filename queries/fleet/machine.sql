-- Each host beside the others that run the same: in how many jobs it is slower than usual there.
--
-- A job is a workload under the same conditions (class of machine, versions, settings). What is usual is the middle
-- of the hosts' median steps; a job counts when at least three hosts ran it. Ranks of several hosts in one run wait for
-- each other, so that a slow host makes its neighbours slow, too: it is the one that is slow in most jobs.
--
-- Reads: fleet_rank
-- Takes:
--   $slow  double  from which ratio on a host is slow
-- Gives, one row per (host), in that order:
--   host          varchar  name of the host, or a hash of it
--   jobs          bigint   jobs in which it can be compared
--   slow_jobs     bigint   of these, in which its median step is so many times the usual one
--   median_ratio  double   its median step / the usual one, in the middle of the jobs
--   most_ratio    double   the largest of these ratios
--   runs          bigint   its runs of these jobs
--   lost_hours    double   h  of its training steps, what they took longer than usual in the jobs in which it is slow
WITH by_host AS (
  SELECT
    workload, conditions, host,
    median(median_ns) AS host_ns,
    count(DISTINCT run) AS runs,
    sum(training_ns) / 3.6e12 AS rank_hours
  FROM fleet_rank
  WHERE host IS NOT NULL AND median_ns > 0 AND kind = 'train'
  GROUP BY ALL
),

beside AS (
  SELECT
    *,
    count(*) OVER (PARTITION BY workload, conditions) AS hosts,
    median(host_ns) OVER (PARTITION BY workload, conditions) AS usual_ns
  FROM by_host
),

compared AS (
  SELECT
    host, runs, rank_hours,
    host_ns / nullif(usual_ns, 0) AS ratio
  FROM beside
  WHERE hosts >= 3
)

SELECT
  host,
  count(*) AS jobs,
  count(*) FILTER (WHERE ratio >= $slow) AS slow_jobs,
  median(ratio) AS median_ratio,
  max(ratio) AS most_ratio,
  CAST(sum(runs) AS BIGINT) AS runs,
  coalesce(sum(rank_hours * (1 - 1 / nullif(ratio, 0))) FILTER (WHERE ratio >= $slow), 0.0e0) AS lost_hours
FROM compared
GROUP BY ALL
ORDER BY host
