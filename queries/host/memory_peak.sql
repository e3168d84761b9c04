-- Largest memory of the host, of each kind of process, and of the framework's pools.
--
-- Reads: memory
-- Ranks: apart
-- Gives, one row per (rep, rank, device, name), in that order:
--   rep                   bigint   repetition
--   rank                  bigint   process rank
--   device                varchar  host (whole machine) | process | CPU and others (the framework's pool)
--   name                  varchar  what the process is; empty for others
--   samples               bigint   samples
--   processes             bigint   processes of that name; 0 for others
--   peak_rss_bytes        bigint   bytes  largest resident set of one process
--   peak_allocated_bytes  bigint   bytes  most in use
--   peak_reserved_bytes   bigint   bytes  most held from the system
--   peak_active_bytes     bigint   bytes  most reachable
SELECT
  rep, rank,
  coalesce(device, '') AS device,
  coalesce(name, '') AS name,
  count(*) AS samples,
  count(DISTINCT pid) AS processes,
  max(coalesce(greatest(rss_bytes, rss_peak_bytes), rss_bytes, rss_peak_bytes)) AS peak_rss_bytes,
  max(allocated_bytes) AS peak_allocated_bytes,
  max(reserved_bytes) AS peak_reserved_bytes,
  max(active_bytes) AS peak_active_bytes
FROM memory
GROUP BY ALL
ORDER BY rep, rank, device, name
