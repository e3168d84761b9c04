-- Operator time by the device that ran them and their type, most time first: AI Core, AI CPU and host run side by side.
--
-- Counts operators of training steps; of a device without any, those of warm-up steps or of no known step. Of the AI
-- CPU, which runs between steps, too, all executions count where the source sums them up, with the time of its sums.
--
-- Reads: device_op?, op_total?
-- Ranks: apart
-- Gives, one row per (rep, rank, device, position), in that order:
--   rep       bigint   repetition
--   rank      bigint   process rank
--   device    varchar  such as AI_CORE, AI_CPU, host; empty where the source does not say
--   position  bigint   1 has the most own time; of equals the first name
--   type      varchar  operator type; null when the operator is not known
--   count     bigint   executions
--   total_ns  bigint   ns    children included
--   self_ns   bigint   ns    without the operators it called
--   mean_ns   double   ns    of an execution, children included
--   max_ns    bigint   ns    longest execution, children included
--   wait_ns   double   ns    mean time between dispatch and start; null where the source does not say
--   share     double   0..1  self_ns / self_ns of this device
WITH total AS (
  SELECT
    rep, rank, device, type,
    CAST(sum(count) AS BIGINT) AS count,
    CAST(sum(total_ns) AS BIGINT) AS total_ns,
    CAST(sum(total_ns) AS BIGINT) AS self_ns,
    sum(total_ns) / nullif(sum(count), 0) AS mean_ns,
    max(max_ns) AS max_ns,
    sum(dispatch_ns) / nullif(sum(count), 0) AS wait_ns
  FROM op_total
  WHERE source = 'aicpu'
  GROUP BY ALL
),

executed AS (
  SELECT
    rep, rank, device, type,
    count(*) AS count,
    CAST(sum(dur_ns) AS BIGINT) AS total_ns,
    CAST(sum(self_ns) AS BIGINT) AS self_ns,
    avg(dur_ns) AS mean_ns,
    max(dur_ns) AS max_ns,
    avg(wait_ns) AS wait_ns
  FROM device_op
  ANTI JOIN total USING (rep, rank, device)
  GROUP BY ALL
),

item AS (
  FROM executed
  UNION ALL BY NAME
  FROM total
)

SELECT
  rep, rank, device,
  row_number() OVER (
    PARTITION BY rep, rank, device
    ORDER BY self_ns DESC NULLS LAST, type ASC NULLS LAST
  ) AS position,
  type, count, total_ns, self_ns, mean_ns, max_ns, wait_ns,
  self_ns / nullif(sum(self_ns) OVER (PARTITION BY rep, rank, device), 0) AS share
FROM item
ORDER BY rep, rank, device, position
