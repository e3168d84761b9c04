-- Communication operators with the most time, and what their profiler says they waited.
--
-- Counts events of training steps. Transfer and waiting are the profiler's own division where it has one. Events are in
-- the group that it names for their operator, when that is one only: events may carry its last digits.
--
-- Reads: collective?, collective_cost?, train_step?
-- Ranks: apart
-- Takes:
--   $top  bigint  how many of each rank
-- Gives, one row per (rep, rank, place), in that order:
--   rep              bigint   repetition
--   rank             bigint   process rank
--   place            bigint   1 has the most time
--   name             varchar  full name
--   group_name       varchar  communication group; empty where the source names none
--   kind             varchar  all_reduce | send | receive | ...; null when the name does not say it
--   events           bigint   communication events; null when the source has only costs
--   steps            bigint   steps with it
--   total_ns         bigint   ns    summed durations; of sources that have only costs, transfer and waiting
--   mean_ns          double   ns    mean duration
--   median_ns        double   ns    median duration
--   max_ns           bigint   ns    longest
--   moved_bytes      bigint   bytes  summed payload; null when the source does not have it
--   tail_share       double   0..1  of the summed durations lies behind BP; null when BP is not known
--   transit_ns       bigint   ns    moving data, as the profiler says
--   wait_ns          bigint   ns    waiting for other ranks, as the profiler says
--   profiler_share   double   0..1  wait_ns / (transit_ns + wait_ns)
WITH name_group AS (
  SELECT
    rep, rank, name,
    max(group_name) AS group_name
  FROM collective_cost
  WHERE name IS NOT NULL
  GROUP BY ALL
  HAVING count(DISTINCT group_name) = 1
),

event AS (
  SELECT
    rep, rank,
    coalesce(collective.name, collective.kind, 'unknown') AS name,
    coalesce(name_group.group_name, collective.group_name, '') AS group_name,
    collective.kind, collective.step, collective.dur_ns, collective.bytes, train_step.bp_ns, CASE
      WHEN train_step.bp_ns IS NOT NULL
        THEN
          greatest(
            least(collective.start_ns + collective.dur_ns, train_step.end_ns)
            - greatest(collective.start_ns, train_step.bp_ns), 0
          )
    END AS behind_ns
  FROM collective
  INNER JOIN train_step USING (rep, rank, step)
  LEFT JOIN name_group USING (rep, rank, name)
),

timed AS (
  SELECT
    rep, rank, name, group_name,
    min(kind) AS kind,
    count(*) AS events,
    count(DISTINCT step) AS steps,
    CAST(sum(dur_ns) AS BIGINT) AS total_ns,
    avg(dur_ns) AS mean_ns,
    median(dur_ns) AS median_ns,
    max(dur_ns) AS max_ns,
    CAST(sum(bytes) AS BIGINT) AS moved_bytes,
    sum(behind_ns) / nullif(sum(CASE WHEN bp_ns IS NOT NULL THEN dur_ns END), 0) AS tail_share
  FROM event
  GROUP BY ALL
),

-- Costs of training steps; of all steps when the steps are not known.
rated AS (
  SELECT
    rep, rank, collective_cost.name,
    coalesce(collective_cost.group_name, '') AS group_name,
    collective_cost.kind, step,
    coalesce(collective_cost.dur_ns, collective_cost.transit_ns + collective_cost.wait_ns) AS dur_ns,
    collective_cost.transit_ns, collective_cost.wait_ns,
    CASE WHEN train_step.step IS NOT NULL THEN 1 ELSE 0 END AS is_train,
    max(CASE WHEN train_step.step IS NOT NULL THEN 1 ELSE 0 END)
      OVER (PARTITION BY rep, rank) AS has_train
  FROM collective_cost
  LEFT JOIN train_step USING (rep, rank, step)
  WHERE collective_cost.name IS NOT NULL
),

cost AS (
  SELECT
    rep, rank, name, group_name,
    min(kind) AS kind,
    count(DISTINCT step) AS steps,
    CAST(sum(dur_ns) AS BIGINT) AS total_ns,
    avg(dur_ns) AS mean_ns,
    median(dur_ns) AS median_ns,
    max(dur_ns) AS max_ns,
    CAST(sum(transit_ns) AS BIGINT) AS transit_ns,
    CAST(sum(wait_ns) AS BIGINT) AS wait_ns
  FROM rated
  WHERE is_train = has_train
  GROUP BY ALL
),

name_row AS (
  SELECT
    rep, rank, name, group_name
  FROM timed
  UNION ALL
  SELECT
    rep, rank, name, group_name
  FROM cost
),

every AS (
  SELECT
    rep, rank, name, group_name
  FROM name_row
  GROUP BY ALL
),

joined AS (
  SELECT
    rep, rank, name, group_name,
    coalesce(timed.kind, cost.kind) AS kind,
    timed.events,
    coalesce(timed.steps, cost.steps) AS steps,
    coalesce(timed.total_ns, cost.total_ns) AS total_ns,
    coalesce(timed.mean_ns, cost.mean_ns) AS mean_ns,
    coalesce(timed.median_ns, cost.median_ns) AS median_ns,
    coalesce(timed.max_ns, cost.max_ns) AS max_ns,
    timed.moved_bytes, timed.tail_share, cost.transit_ns, cost.wait_ns
  FROM every
  LEFT JOIN timed USING (rep, rank, name, group_name)
  LEFT JOIN cost USING (rep, rank, name, group_name)
),

placed AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY rep, rank ORDER BY total_ns DESC NULLS LAST, name ASC, group_name ASC) AS place
  FROM joined
)

SELECT
  rep, rank, place, name, group_name, kind, events, steps, total_ns, mean_ns, median_ns, max_ns, moved_bytes,
  tail_share, transit_ns, wait_ns,
  wait_ns / nullif(transit_ns + wait_ns, 0) AS profiler_share
FROM placed
WHERE place <= $top
ORDER BY rep, rank, place
