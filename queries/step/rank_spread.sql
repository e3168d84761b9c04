-- How far apart the ranks of a repetition are, by phase and for the whole step. Empty when there is one rank.
--
-- A rank that others wait for has long phases of its own, while the step of all ranks is equally long.
--
-- Reads: rank_median
-- Gives, one row per (rep, phase), in that order:
--   rep                bigint   repetition
--   phase              varchar  compute | data_wait | forward_backward | step | tail | whole
--   ranks              bigint   ranks that have the phase
--   slowest_rank       bigint   largest median; of equals the lowest rank
--   slowest_median_ns  double   ns  its median
--   fastest_rank       bigint   smallest median; of equals the lowest rank
--   fastest_median_ns  double   ns  its median
--   spread_ratio       double   1..  slowest / fastest median; null when the fastest is 0
WITH ranked AS (
  SELECT
    rep, rank, phase, median_ns,
    row_number() OVER (PARTITION BY rep, phase ORDER BY median_ns DESC, rank ASC) AS from_slowest,
    row_number() OVER (PARTITION BY rep, phase ORDER BY median_ns ASC, rank ASC) AS from_fastest
  FROM rank_median
)

SELECT
  rep, phase,
  count(*) AS ranks,
  max(CASE WHEN from_slowest = 1 THEN rank END) AS slowest_rank,
  max(median_ns) AS slowest_median_ns,
  max(CASE WHEN from_fastest = 1 THEN rank END) AS fastest_rank,
  min(median_ns) AS fastest_median_ns,
  max(median_ns) / nullif(min(median_ns), 0) AS spread_ratio
FROM ranked
GROUP BY ALL
HAVING count(*) > 1
ORDER BY rep, phase
