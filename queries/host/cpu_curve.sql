-- CPU time over time, to be drawn: cores in use by each part of the machine, in equal parts of the sampled time.
--
-- Reads: cpu_use
-- Takes:
--   $points  bigint  parts that the time is divided into
--   $rep     bigint  this repetition
--   $rank    bigint  this rank
-- Gives, one row per (slot, consumer), in that order:
--   slot        bigint   from 0; those without a sample are left out
--   consumer    varchar  trainer | pipeline (threads of the dataset) | worker (processes of it) | other
--   start_ns    bigint   ns     the slot's first interval begins
--   end_ns      bigint   ns     its last interval ends
--   cores       double   cores  mean in use over the slot's intervals
--   most_cores  double   cores  all consumers together, in the busiest of the slot's intervals
WITH extent AS (
  SELECT
    rep, rank,
    min(start_ns) AS first_ns,
    max(end_ns) AS last_ns
  FROM cpu_use
  WHERE rep = $rep AND rank = $rank
  GROUP BY ALL
),

placed AS (
  SELECT
    cpu_use.start_ns, cpu_use.end_ns, cpu_use.cpu_ns, CASE
      WHEN cpu_use.part = 'dataset_thread' THEN 'pipeline'
      WHEN cpu_use.part = 'worker' THEN 'worker'
      WHEN cpu_use.part IN ('main', 'mindspore_thread', 'python_thread', 'other_thread', 'trainer') THEN 'trainer'
      ELSE 'other'
    END AS consumer,
    CAST(floor(
      (cpu_use.start_ns - extent.first_ns) / nullif(extent.last_ns - extent.first_ns, 0) * $points
    ) AS BIGINT) AS slot
  FROM cpu_use
  INNER JOIN extent USING (rep, rank)
  WHERE cpu_use.end_ns > cpu_use.start_ns
),

stretch AS (
  SELECT
    slot, start_ns, end_ns,
    sum(cpu_ns) / nullif(end_ns - start_ns, 0) AS busy_cores
  FROM placed
  GROUP BY slot, start_ns, end_ns
),

interval_length AS (
  SELECT
    slot,
    min(start_ns) AS start_ns,
    max(end_ns) AS end_ns,
    sum(end_ns - start_ns) AS length_ns,
    max(busy_cores) AS most_cores
  FROM stretch
  GROUP BY ALL
)

SELECT
  slot, placed.consumer,
  min(interval_length.start_ns) AS start_ns,
  max(interval_length.end_ns) AS end_ns,
  sum(placed.cpu_ns) / nullif(max(interval_length.length_ns), 0) AS cores,
  max(interval_length.most_cores) AS most_cores
FROM placed
INNER JOIN interval_length USING (slot)
GROUP BY ALL
ORDER BY slot, placed.consumer
