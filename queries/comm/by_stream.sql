-- Communication of the training steps by stream.
--
-- Reads: collective, train_step
-- Ranks: apart
-- Gives, one row per (rep, rank, track), in that order:
--   rep              bigint   repetition
--   rank             bigint   process rank
--   track            varchar  stream or device; empty where the source names none
--   events           bigint   communication events
--   steps            bigint   steps with events on it
--   events_per_step  double   events / steps
--   total_ns         bigint   ns    summed durations
--   mean_ns          double   ns    mean duration
--   max_ns           bigint   ns    longest
--   step_share       double   0..1  total_ns / length of these steps; above 1 only where events overlap
WITH event AS (
  SELECT
    rep, rank, step,
    coalesce(collective.track, '') AS track,
    collective.dur_ns,
    train_step.dur_ns AS step_ns,
    row_number() OVER (
      PARTITION BY rep, rank, step, coalesce(collective.track, '')
      ORDER BY collective.start_ns ASC, collective.dur_ns ASC
    ) AS place
  FROM collective
  INNER JOIN train_step USING (rep, rank, step)
)

SELECT
  rep, rank, track,
  count(*) AS events,
  count(DISTINCT step) AS steps,
  count(*) / nullif(count(DISTINCT step), 0) AS events_per_step,
  CAST(sum(dur_ns) AS BIGINT) AS total_ns,
  avg(dur_ns) AS mean_ns,
  max(dur_ns) AS max_ns,
  sum(dur_ns) / nullif(sum(CASE WHEN place = 1 THEN step_ns END), 0) AS step_share
FROM event
GROUP BY ALL
ORDER BY rep, rank, track
