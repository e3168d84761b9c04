-- Exposed communication of a training step in each repetition: the mean over its ranks of each rank's mean step.
--
-- Of steps with recorded operators and communication, which op windows make longer on both sides of a comparison alike;
-- else the profiler's own division of its steps. The mean over ranks, for the rank that waits for the others differs
-- from run to run.
--
-- Reads: collective?, rank_split?, step_part?, train_step?
-- Gives, one row per (rep), in that order:
--   rep         bigint   repetition
--   ranks       bigint   ranks that count
--   steps       bigint   steps that count, of all ranks
--   exposed_ns  double   ns    exposed communication per step
--   tail_ns     double   ns    of it, behind the backward pass; null when that is not known
WITH communicating AS (
  SELECT
    rep, rank
  FROM collective
  GROUP BY ALL
),

known AS (
  SELECT
    rep, rank,
    'parts' AS source,
    step_part.exposed_ns + step_part.tail_ns AS exposed_ns,
    CASE WHEN train_step.bp_ns IS NOT NULL THEN step_part.tail_ns END AS tail_ns
  FROM step_part
  INNER JOIN communicating USING (rep, rank)
  INNER JOIN train_step USING (rep, rank, step)
  UNION ALL
  SELECT
    rep, rank,
    'split' AS source,
    exposed_ns,
    NULL AS tail_ns
  FROM rank_split
  WHERE exposed_ns IS NOT NULL
),

-- One source for all ranks of a repetition: their means are put together.
picked AS (
  SELECT
    *,
    min(source) OVER (PARTITION BY rep) AS rep_source
  FROM known
),

rank_mean AS (
  SELECT
    rep, rank,
    count(*) AS steps,
    avg(exposed_ns) AS exposed_ns,
    avg(tail_ns) AS tail_ns
  FROM picked
  WHERE source = rep_source
  GROUP BY ALL
)

SELECT
  rep,
  count(*) AS ranks,
  CAST(sum(steps) AS BIGINT) AS steps,
  avg(exposed_ns) AS exposed_ns,
  avg(tail_ns) AS tail_ns
FROM rank_mean
GROUP BY ALL
ORDER BY rep
