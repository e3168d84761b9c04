-- Which workloads wait for their data, and for how many rank-hours; those that lose most first.
--
-- Reads: fleet_run
-- Takes:
--   $top  bigint  how many
-- Gives, one row per (place), in that order:
--   place            bigint   1 loses the most rank-hours
--   workload         varchar  name of what was run
--   runs             bigint   runs of it with training steps
--   input_bound      bigint   of these, led by their wait for data
--   rank_hours       double   h     training steps of all their ranks
--   wait_hours       double   h     of that, inside the dataset iterator; null when no batch was seen
--   data_wait_share  double   0..1  wait_hours / rank_hours
--   last_at          varchar  when the newest of them began
WITH by_workload AS (
  SELECT
    workload,
    count(*) AS runs,
    count(*) FILTER (WHERE cause = 'input_bound') AS input_bound,
    sum(rank_hours) AS rank_hours,
    sum(wait_hours) AS wait_hours,
    max(started_at) AS last_at
  FROM fleet_run
  WHERE rank_hours IS NOT NULL
  GROUP BY ALL
),

placed AS (
  SELECT
    *,
    row_number() OVER (ORDER BY wait_hours DESC NULLS LAST, rank_hours DESC, workload ASC) AS place
  FROM by_workload
)

SELECT
  place, workload, runs, input_bound, rank_hours, wait_hours,
  wait_hours / nullif(rank_hours, 0) AS data_wait_share,
  last_at
FROM placed
WHERE place <= $top
ORDER BY place
