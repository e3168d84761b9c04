-- Memory over time, from samples: the least and the most in equal parts of the time that each rank was sampled.
--
-- Reads: memory_level
-- Takes:
--   $points  bigint  parts that the time is divided into
-- Gives, one row per (rep, rank, device, name, pid, part), in that order:
--   rep             bigint   repetition
--   rank            bigint   process rank
--   device          varchar  host (whole machine) | process | CPU and others (the framework's pool)
--   name            varchar  what the process or the pool is; empty when it has no name
--   pid             bigint   of a process; 0 for others
--   part            bigint   from 0; parts without a sample are left out
--   t_ns            bigint   ns     the first sample in the part
--   samples         bigint   samples in it
--   first_bytes     bigint   bytes  in the first sample; of several at that time the least
--   low_bytes       bigint   bytes  least
--   high_bytes      bigint   bytes  most
--   high_ns         bigint   ns     the first sample with the most
--   last_bytes      bigint   bytes  in the last sample; of several at that time the most
--   reserved_bytes  bigint   bytes  most held from the system; null for others than pools
WITH extent AS (
  SELECT
    rep, rank,
    min(t_ns) AS first_ns,
    max(t_ns) + 1 AS end_ns
  FROM memory_level
  GROUP BY ALL
),

placed AS (
  SELECT
    memory_level.*,
    CAST(floor(
      (memory_level.t_ns - extent.first_ns) / nullif(extent.end_ns - extent.first_ns, 0) * $points
    ) AS BIGINT) AS part
  FROM memory_level
  INNER JOIN extent USING (rep, rank)
),

ranked AS (
  SELECT
    *,
    row_number() OVER (
      PARTITION BY rep, rank, device, name, pid, part
      ORDER BY level_bytes DESC, t_ns ASC
    ) AS place
  FROM placed
)

SELECT
  rep, rank, device, name, pid, part,
  min(t_ns) AS t_ns,
  count(*) AS samples,
  arg_min(level_bytes, [t_ns, level_bytes]) AS first_bytes,
  min(level_bytes) AS low_bytes,
  max(level_bytes) AS high_bytes,
  max(CASE WHEN place = 1 THEN t_ns END) AS high_ns,
  arg_max(level_bytes, [t_ns, level_bytes]) AS last_bytes,
  max(reserved_bytes) AS reserved_bytes
FROM ranked
GROUP BY ALL
ORDER BY rep, rank, device, name, pid, part
