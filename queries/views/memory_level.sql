-- Memory samples as one number: in use in a pool or on the host, resident for a process.
--
-- A resident set of 0 is that of a process that has just ended, and is left out.
--
-- Reads: memory
-- Gives, one row per (rep, rank, device, name, pid, t_ns):
--   rep             bigint   repetition
--   rank            bigint   process rank
--   device          varchar  host (whole machine) | process | CPU and others (the framework's pool)
--   name            varchar  what the process or the pool is; empty when it has no name
--   pid             bigint   of a process; 0 for others
--   t_ns            bigint   ns     time of the sample
--   level_bytes     bigint   bytes  in use, or resident
--   reserved_bytes  bigint   bytes  held from the system; null for others than pools
SELECT
  rep, rank,
  coalesce(device, '') AS device,
  coalesce(name, '') AS name,
  coalesce(pid, 0) AS pid,
  t_ns,
  CASE WHEN device = 'process' THEN nullif(rss_bytes, 0) ELSE allocated_bytes END AS level_bytes,
  reserved_bytes
FROM memory
WHERE t_ns IS NOT NULL AND CASE WHEN device = 'process' THEN nullif(rss_bytes, 0) ELSE allocated_bytes END IS NOT NULL
