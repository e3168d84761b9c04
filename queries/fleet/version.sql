-- The step time of each workload under each version of MindSpore, beside the version before it on the same machines.
--
-- Versions stand in the order in which they were first used. Medians of few runs say little.
--
-- Reads: fleet_run
-- Gives, one row per (workload, machine, ranks, turn), in that order:
--   workload     varchar  name of what was run
--   machine      varchar  class of the machine
--   ranks        bigint   ranks of each run
--   turn         bigint   1 is the version that was used first
--   mindspore    varchar  version of MindSpore
--   first_at     varchar  when its first run began
--   runs         bigint   its runs
--   step_ns      double   ns  median of their steps
--   before       varchar  the version of the turn before; null for the first
--   before_runs  bigint   its runs
--   ratio        double   step_ns / that of the version before; null for the first
WITH by_version AS (
  SELECT
    workload, machine, ranks, mindspore,
    min(started_at) AS first_at,
    count(*) AS runs,
    median(median_step_ns) AS step_ns
  FROM fleet_run
  WHERE median_step_ns > 0 AND mindspore IS NOT NULL AND state = 'complete'
  GROUP BY ALL
)

SELECT
  workload, machine, ranks,
  row_number() OVER turns AS turn,
  mindspore, first_at, runs, step_ns,
  lag(mindspore) OVER turns AS before,
  lag(runs) OVER turns AS before_runs,
  step_ns / nullif(lag(step_ns) OVER turns, 0) AS ratio
FROM by_version
WINDOW turns AS (PARTITION BY workload, machine, ranks ORDER BY first_at ASC, mindspore ASC)
ORDER BY workload, machine, ranks, turn
