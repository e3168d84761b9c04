-- The step time of every workload over its runs, oldest first, each set of conditions a series of its own.
--
-- Reads: fleet_run
-- Gives, one row per (workload, conditions, started_at, run), in that order:
--   workload    varchar  name of what was run
--   conditions  varchar  hash of machine, versions and settings
--   started_at  varchar  when the run began, in UTC
--   run         varchar  its folder
--   week        varchar  the Monday of that week
--   machine     varchar  class of the machine
--   mindspore   varchar  version of MindSpore; null when not known
--   revision    varchar  commit of the training's code; null when not known
--   ranks       bigint   ranks
--   step_ns     double   ns  median step of the slowest rank, median of the repetitions
--   rank_hours  double   h   training steps of all its ranks
SELECT
  workload, conditions, started_at, run, week, machine, mindspore, revision, ranks,
  median_step_ns AS step_ns,
  rank_hours
FROM fleet_run
WHERE median_step_ns > 0 AND state = 'complete'
ORDER BY workload, conditions, started_at, run
