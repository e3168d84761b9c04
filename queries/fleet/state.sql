-- How many runs there are in each state, and how long their ranks trained.
--
-- Reads: fleet_run
-- Gives, one row per (state), in that order:
--   state       varchar  complete | partial | failed | running | damaged
--   runs        bigint   runs
--   workloads   bigint   workloads that are known
--   measured    bigint   runs in which training steps were seen
--   rank_hours  double   h     training steps of all ranks; null when none was seen
--   wait_hours  double   h     of that, inside the dataset iterator; null when no batch was seen
SELECT
  state,
  count(*) AS runs,
  count(DISTINCT workload) AS workloads,
  count(rank_hours) AS measured,
  sum(rank_hours) AS rank_hours,
  sum(wait_hours) AS wait_hours
FROM fleet_run
GROUP BY ALL
ORDER BY state
