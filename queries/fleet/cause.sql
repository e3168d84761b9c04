-- Which operators of which code limit the trainings, over all runs that their wait for data leads; the costliest first.
--
-- Reads: fleet_run
-- Takes:
--   $top  bigint  how many
-- Gives, one row per (place), in that order:
--   place       bigint   1 stands behind the most waiting
--   op_type     varchar  type of the operator; null when the verdict names none
--   op_name     varchar  what it does; null when it has no name
--   code        varchar  file:line of its Python code, else of the call that made it; null when not known
--   op_kind     varchar  the kind that most of the runs say; null when not known
--   runs        bigint   runs that it limits
--   workloads   bigint   their workloads
--   rank_hours  double   h  training steps of all their ranks
--   wait_hours  double   h  of that, inside the dataset iterator
WITH by_cause AS (
  SELECT
    op_type, op_name,
    coalesce(code, call) AS code,
    mode(op_kind ORDER BY op_kind) AS op_kind,
    count(*) AS runs,
    count(DISTINCT workload) AS workloads,
    sum(rank_hours) AS rank_hours,
    sum(wait_hours) AS wait_hours
  FROM fleet_run
  WHERE cause = 'input_bound'
  GROUP BY op_type, op_name, coalesce(code, call)
),

placed AS (
  SELECT
    *,
    row_number() OVER (
      ORDER BY wait_hours DESC NULLS LAST, runs DESC, op_type ASC, op_name ASC, code ASC
    ) AS place
  FROM by_cause
)

SELECT
  place, op_type, op_name, code, op_kind, runs, workloads, rank_hours, wait_hours
FROM placed
WHERE place <= $top
ORDER BY place
