-- What leads the verdicts on the runs, and the rank-hours that it costs; the costliest first.
--
-- Reads: fleet_run
-- Takes:
--   $top  bigint  how many
-- Gives, one row per (place), in that order:
--   place       bigint   1 costs the most
--   cause       varchar  code of the cause
--   detail      varchar  which, such as the part of the run; null when the code says all
--   runs        bigint   runs that it leads
--   workloads   bigint   their workloads
--   rank_hours  double   h  training steps of all their ranks
--   lost_hours  double   h  of that, what the cause costs; null when that is not known of any
WITH by_cause AS (
  SELECT
    cause,
    CASE WHEN cause IN ('part', 'rank_cause') THEN cause_detail END AS detail,
    count(*) AS runs,
    count(DISTINCT workload) AS workloads,
    sum(rank_hours) AS rank_hours,
    sum(rank_hours * cause_share) AS lost_hours
  FROM fleet_run
  WHERE cause IS NOT NULL
  GROUP BY ALL
),

placed AS (
  SELECT
    *,
    row_number() OVER (ORDER BY lost_hours DESC NULLS LAST, runs DESC, cause ASC, detail ASC) AS place
  FROM by_cause
)

SELECT
  place, cause, detail, runs, workloads, rank_hours, lost_hours
FROM placed
WHERE place <= $top
ORDER BY place
