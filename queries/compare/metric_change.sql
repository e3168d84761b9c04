-- Medians of every metric on both sides of a comparison, and how they differ.
--
-- Reads: side_measure
-- Gives, one row per (metric), in that order:
--   metric     varchar  such as step_time_median or op/NAME
--   base       double   median over the repetitions of the base side; null when it has none
--   new        double   median over the repetitions of the new side; null when it has none
--   delta      double   new - base
--   ratio      double   new / base; null when the base is 0 or one is missing
--   reps_base  bigint   repetitions of the base side
--   reps_new   bigint   repetitions of the new side
SELECT
  metric,
  median(value) FILTER (WHERE side = 'base') AS base,
  median(value) FILTER (WHERE side = 'new') AS new,
  median(value) FILTER (WHERE side = 'new') - median(value) FILTER (WHERE side = 'base') AS delta,
  median(value) FILTER (WHERE side = 'new') / nullif(median(value) FILTER (WHERE side = 'base'), 0) AS ratio,
  count(*) FILTER (WHERE side = 'base') AS reps_base,
  count(*) FILTER (WHERE side = 'new') AS reps_new
FROM side_measure
GROUP BY metric
ORDER BY metric
