-- Operator time by the device that ran them and their type, most time first: AI Core, AI CPU and host run side by side.
--
-- Counts operators of training steps; of a device without any, those of warm-up steps or of no known step.
--
-- Reads: device_op
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
SELECT
  rep, rank, device,
  row_number() OVER (
    PARTITION BY rep, rank, device
    ORDER BY sum(self_ns) DESC NULLS LAST, type ASC NULLS LAST
  ) AS position,
  type,
  count(*) AS count,
  CAST(sum(dur_ns) AS BIGINT) AS total_ns,
  CAST(sum(self_ns) AS BIGINT) AS self_ns,
  avg(dur_ns) AS mean_ns,
  max(dur_ns) AS max_ns,
  avg(wait_ns) AS wait_ns,
  sum(self_ns) / nullif(sum(sum(self_ns)) OVER (PARTITION BY rep, rank, device), 0) AS share
FROM device_op
GROUP BY rep, rank, device, type
ORDER BY rep, rank, device, position
