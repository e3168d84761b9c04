-- Runs that say less than they should: damaged, cut off, failed, running, or without a training step.
--
-- Reads: fleet_run
-- Gives, one row per (state, run), in that order:
--   state     varchar  complete | partial | failed | running | damaged
--   run       varchar  folder of the run
--   problem   varchar  why; null when the run itself does not say
--   measured  boolean  training steps were seen all the same, and count
SELECT
  state, run, problem,
  rank_hours IS NOT NULL AS measured
FROM fleet_run
WHERE state <> 'complete' OR rank_hours IS NULL
ORDER BY state, run
