-- Time in each phase of the training steps.
--
-- data_wait, compute and whole come from steps outside op windows, forward_backward and tail from steps inside them,
-- where operators were seen: shares of different phases need not add up to 1.
--
-- Reads: train_phase
-- Ranks: apart
-- Gives, one row per (rep, rank, phase), in that order:
--   rep          bigint   repetition
--   rank         bigint   process rank
--   phase        varchar  compute | data_wait | forward_backward | tail | whole
--   kind         varchar  train, or warmup when the rank has no step of kind train
--   steps        bigint   steps that count
--   from_window  boolean  these steps are in op windows, so the times are inflated
--   mean_ns      double   ns    mean
--   median_ns    double   ns    median
--   p90_ns       double   ns    90th percentile, interpolated
--   max_ns       bigint   ns    longest
--   share        double   0..1  of the summed time of these steps; null when that is 0
SELECT
  rep, rank, phase,
  min(kind) AS kind,
  count(*) AS steps,
  bool_and(in_window) AS from_window,
  avg(total_ns) AS mean_ns,
  median(total_ns) AS median_ns,
  percentile_cont(0.9e0) WITHIN GROUP (ORDER BY total_ns) AS p90_ns,
  max(total_ns) AS max_ns,
  sum(total_ns) / nullif(sum(step_ns), 0) AS share
FROM train_phase
GROUP BY rep, rank, phase
ORDER BY rep, rank, phase
