-- Calls that wait for the network, by the line that makes them: a tensor that is read as numbers, or printed.
--
-- Those of training steps; of warm-up steps when a rank has no others. What runs ahead of such a call is waited for in
-- it, so its time is not all its own: without the call, the next one that waits takes part of it.
--
-- Reads: sync, train_step
-- Ranks: apart
-- Gives, one row per (rep, rank, position), in that order:
--   rep       bigint   repetition
--   rank      bigint   process rank
--   position  bigint   1 takes the most time; of equals the more frequent, then by name
--   call      varchar  method of Tensor, such as asnumpy, item, __str__ (print); or synchronize
--   site      varchar  file:line of the user's code; null when it is not known
--   via       varchar  file of MindSpore that makes the call, such as a callback's; null when the line itself does
--   count     bigint   calls
--   steps     bigint   steps that made it
--   total_ns  bigint   ns    time in it
--   mean_ns   double   ns    of a call
--   max_ns    bigint   ns    longest
--   per_step  double   calls of a training step, all steps counted
--   share     double   0..1  total_ns / length of all training steps
WITH whole AS (
  SELECT
    rep, rank,
    count(*) AS steps,
    sum(dur_ns) AS step_ns
  FROM train_step
  GROUP BY ALL
),

summed AS (
  SELECT
    rep, rank, sync.call, sync.site, sync.via,
    CAST(sum(sync.count) AS BIGINT) AS calls,
    count(DISTINCT step) AS steps,
    CAST(sum(sync.total_ns) AS BIGINT) AS total_ns,
    max(sync.max_ns) AS max_ns
  FROM sync
  INNER JOIN train_step USING (rep, rank, step)
  GROUP BY ALL
)

SELECT
  rep, rank,
  row_number() OVER (
    PARTITION BY rep, rank
    ORDER BY total_ns DESC, calls DESC, call ASC NULLS LAST, site ASC NULLS LAST, via ASC NULLS LAST
  ) AS position,
  call, site, via,
  calls AS count,
  summed.steps, total_ns,
  total_ns / nullif(calls, 0) AS mean_ns,
  max_ns,
  calls / nullif(whole.steps, 0) AS per_step,
  total_ns / nullif(step_ns, 0) AS share
FROM summed
INNER JOIN whole USING (rep, rank)
ORDER BY rep, rank, position
