-- Communication of the training steps by kind, and how much of it lies behind the backward pass, in the step's tail.
--
-- Counts events of training steps, of warm-up steps when no others have events, and events without a step when no
-- event has one. Overlapping events of a kind count once in the tail.
--
-- Reads: collective, step
-- Gives, one row per (rep, rank, kind), in that order:
--   rep              bigint   repetition
--   rank             bigint   process rank
--   kind             varchar  all_reduce | reduce_scatter | all_gather | broadcast | send | ...
--   events           bigint   communication events
--   steps            bigint   steps of the rank with events of any kind; 0 when no event has a step
--   events_per_step  double   events / steps; null when no event has a step
--   total_ns         bigint   ns     summed durations
--   mean_ns          double   ns     mean duration
--   median_ns        double   ns     median duration
--   max_ns           bigint   ns     longest
--   bytes            bigint   bytes  summed payload; null when the source does not have it
--   tail_ns          bigint   ns     time between bp_ns and the end of the step with an event under way; null when
--                                    bp_ns is not known
WITH known AS (
  SELECT
    rep, rank,
    coalesce(collective.kind, 'unknown') AS kind,
    step.step, collective.start_ns, collective.dur_ns, collective.bytes,
    CASE step.kind WHEN 'train' THEN 1 WHEN 'warmup' THEN 2 ELSE 3 END AS preference,
    greatest(collective.start_ns, step.bp_ns) AS from_ns,
    least(collective.start_ns + collective.dur_ns, step.end_ns) AS until_ns,
    step.bp_ns
  FROM collective
  LEFT JOIN step USING (rep, rank, step)
  WHERE step.kind IS NULL OR step.kind IN ('train', 'warmup')
),

best AS (
  SELECT
    rep, rank,
    min(preference) AS preference
  FROM known
  GROUP BY ALL
),

event AS (
  SELECT
    *,
    max(until_ns) OVER (
      PARTITION BY rep, rank, kind, step ORDER BY from_ns, until_ns, start_ns, dur_ns
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS covered_ns
  FROM known
  INNER JOIN best USING (rep, rank, preference)
),

exposed AS (
  SELECT
    *,
    CASE
      WHEN bp_ns IS NOT NULL THEN greatest(until_ns - greatest(from_ns, coalesce(covered_ns, from_ns)), 0)
    END AS tail_ns
  FROM event
),

seen AS (
  SELECT
    rep, rank,
    count(DISTINCT step) AS steps
  FROM exposed
  GROUP BY ALL
)

SELECT
  rep, rank, exposed.kind,
  count(*) AS events,
  max(seen.steps) AS steps,
  count(*) / nullif(max(seen.steps), 0) AS events_per_step,
  CAST(sum(exposed.dur_ns) AS BIGINT) AS total_ns,
  avg(exposed.dur_ns) AS mean_ns,
  median(exposed.dur_ns) AS median_ns,
  max(exposed.dur_ns) AS max_ns,
  CAST(sum(exposed.bytes) AS BIGINT) AS bytes,
  CAST(sum(exposed.tail_ns) AS BIGINT) AS tail_ns
FROM exposed
INNER JOIN seen USING (rep, rank)
GROUP BY ALL
ORDER BY rep, rank, exposed.kind
