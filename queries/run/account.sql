-- The whole run of each rank in parts that exclude each other and add up to its wall time.
--
-- Reads: run_part
-- Ranks: apart
-- Gives, one row per (rep, rank, part, detail, cause, site), in that order:
--   rep       bigint   repetition
--   rank      bigint   process rank
--   part      varchar  see run_part; not_recorded for what was in none
--   detail    varchar  callback: its class; compiling: the network or function; or empty
--   cause     varchar  recompile: short_batch | changed_shapes | again | new_object; ending: rest_of_epoch; or empty
--   site      varchar  file:line of an evaluation, a checkpoint or the class of a callback; or empty
--   count     bigint   how often, such as steps, evaluations, graphs
--   start_ns  bigint   ns    start of the first
--   dur_ns    bigint   ns    time of all of them
--   share     double   0..1  of the rank's run
SELECT
  rep, rank,
  coalesce(part, 'not_recorded') AS part,
  coalesce(detail, '') AS detail,
  coalesce(cause, '') AS cause,
  coalesce(site, '') AS site,
  CAST(coalesce(sum(count), 0) AS BIGINT) AS count,
  min(start_ns) AS start_ns,
  CAST(sum(dur_ns) AS BIGINT) AS dur_ns,
  sum(dur_ns) / nullif(sum(sum(dur_ns)) OVER (PARTITION BY rep, rank), 0) AS share
FROM run_part
WHERE dur_ns IS NOT NULL
GROUP BY rep, rank, coalesce(part, 'not_recorded'), coalesce(detail, ''), coalesce(cause, ''), coalesce(site, '')
ORDER BY rep, rank, part, detail, cause, site
