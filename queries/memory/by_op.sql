-- Memory of operators: allocated less freed while they ran, with and without those they called; and their blocks.
--
-- Where the profiler attributed memory to executions the first four tell it; where it knew the lifetimes of tensors or
-- blocks the last three do. Operators of one name are added up; negative is more freed than allocated.
--
-- Reads: allocation?, op?, op_info?
-- Takes:
--   $top  bigint  how many operators of each rank
-- Gives, one row per (rep, rank, position), in that order:
--   rep                       bigint   repetition
--   rank                      bigint   process rank
--   position                  bigint   1 has the most: own memory on host and devices, then allocated_bytes
--   name                      varchar  full name; null when it is not known what made a block
--   type                      varchar  operator type
--   count                     bigint   executions; null when none was recorded
--   self_memory_bytes         bigint   bytes  on the host, without callees; null when not recorded
--   memory_bytes              bigint   bytes  on the host, callees included; null when not recorded
--   self_device_memory_bytes  bigint   bytes  on devices, without callees; null when not recorded
--   device_memory_bytes       bigint   bytes  on devices, callees included; null when not recorded
--   blocks                    bigint   tensors or blocks it made; null when not recorded
--   allocated_bytes           bigint   bytes  in them; null when not recorded
--   kept_bytes                bigint   bytes  in those that were never released; null when not recorded
WITH part AS (
  SELECT
    rep, rank, op_id,
    count(*) AS count,
    sum(self_memory_bytes) AS self_memory_bytes,
    sum(memory_bytes) AS memory_bytes,
    sum(self_device_memory_bytes) AS self_device_memory_bytes,
    sum(device_memory_bytes) AS device_memory_bytes
  FROM op
  WHERE
    self_memory_bytes IS NOT NULL
    OR memory_bytes IS NOT NULL
    OR self_device_memory_bytes IS NOT NULL
    OR device_memory_bytes IS NOT NULL
  GROUP BY ALL
  UNION ALL BY NAME
  SELECT
    rep, rank, op_id,
    count(*) AS blocks,
    sum(bytes) AS allocated_bytes,
    sum(CASE WHEN released_ns IS NULL THEN bytes ELSE 0 END) AS kept_bytes
  FROM allocation
  WHERE bytes > 0
  GROUP BY ALL
),

summed AS (
  SELECT
    rep, rank,
    coalesce(op_info.name, CAST(op_id AS VARCHAR)) AS name,
    min(op_info.type) AS type,
    sum(part.count) AS count,
    sum(part.self_memory_bytes) AS self_memory_bytes,
    sum(part.memory_bytes) AS memory_bytes,
    sum(part.self_device_memory_bytes) AS self_device_memory_bytes,
    sum(part.device_memory_bytes) AS device_memory_bytes,
    sum(part.blocks) AS blocks,
    sum(part.allocated_bytes) AS allocated_bytes,
    sum(part.kept_bytes) AS kept_bytes
  FROM part
  LEFT JOIN op_info USING (rep, rank, op_id)
  GROUP BY ALL
),

ranked AS (
  SELECT
    *,
    row_number() OVER (
      PARTITION BY rep, rank
      ORDER BY
        coalesce(self_memory_bytes, 0) + coalesce(self_device_memory_bytes, 0) DESC,
        coalesce(allocated_bytes, 0) DESC,
        name ASC NULLS LAST
    ) AS position
  FROM summed
)

SELECT
  rep, rank, position, name, type,
  CAST(count AS BIGINT) AS count,
  CAST(self_memory_bytes AS BIGINT) AS self_memory_bytes,
  CAST(memory_bytes AS BIGINT) AS memory_bytes,
  CAST(self_device_memory_bytes AS BIGINT) AS self_device_memory_bytes,
  CAST(device_memory_bytes AS BIGINT) AS device_memory_bytes,
  CAST(blocks AS BIGINT) AS blocks,
  CAST(allocated_bytes AS BIGINT) AS allocated_bytes,
  CAST(kept_bytes AS BIGINT) AS kept_bytes
FROM ranked
WHERE position <= $top
ORDER BY rep, rank, position
