-- Communication of the training steps by kind, and how much of it lies behind the backward pass, in the step's tail.
--
-- Counts events of training steps, of warm-up steps when no others have events, and events without a step when no
-- event has one. Overlapping events of a kind count once in the tail.
--
-- Reads: collective, step?
-- Ranks: apart
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
    CASE WHEN coalesce(step.bp_source, 'op') = 'op' THEN step.bp_ns END AS bp_ns,
    greatest(collective.start_ns, step.bp_ns) AS from_ns,
    least(collective.start_ns + collective.dur_ns, step.end_ns) AS until_ns
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
  SELECT *
  FROM known
  INNER JOIN best USING (rep, rank, preference)
),

-- Of the events behind BP, and of nothing else of them, what each adds to the earlier ones of its kind.
behind AS (
  SELECT
    rep, rank, kind, from_ns, until_ns,
    max(until_ns) OVER (
      PARTITION BY rep, rank, kind, step ORDER BY from_ns, until_ns
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS covered_ns
  FROM event
  WHERE bp_ns IS NOT NULL AND until_ns > from_ns
),

exposed AS (
  SELECT
    rep, rank, kind,
    sum(greatest(until_ns - greatest(from_ns, coalesce(covered_ns, from_ns)), 0)) AS tail_ns
  FROM behind
  GROUP BY ALL
),

seen AS (
  SELECT
    rep, rank,
    count(DISTINCT step) AS steps
  FROM event
  GROUP BY ALL
),

summed AS (
  SELECT
    rep, rank, kind,
    count(*) AS events,
    sum(dur_ns) AS total_ns,
    avg(dur_ns) AS mean_ns,
    median(dur_ns) AS median_ns,
    max(dur_ns) AS max_ns,
    sum(bytes) AS bytes,
    sum(CASE WHEN bp_ns IS NOT NULL THEN 0 END) AS no_tail_ns
  FROM event
  GROUP BY ALL
)

SELECT
  rep, rank, kind, summed.events, seen.steps,
  summed.events / nullif(seen.steps, 0) AS events_per_step,
  CAST(summed.total_ns AS BIGINT) AS total_ns,
  summed.mean_ns, summed.median_ns, summed.max_ns,
  CAST(summed.bytes AS BIGINT) AS bytes,
  CAST(summed.no_tail_ns + coalesce(exposed.tail_ns, 0) AS BIGINT) AS tail_ns
FROM summed
INNER JOIN seen USING (rep, rank)
LEFT JOIN exposed USING (rep, rank, kind)
ORDER BY rep, rank, kind
