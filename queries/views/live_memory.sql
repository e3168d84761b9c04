-- Memory in tensors or blocks whose lifetimes are known, after each moment at which it changed.
--
-- A block that was released when it was made, or has no size, does not count.
--
-- Reads: allocation
-- Gives, one row per (rep, rank, t_ns):
--   rep          bigint  repetition
--   rank         bigint  process rank
--   t_ns         bigint  ns     time
--   live_bytes   bigint  bytes  in blocks that are alive from here on
--   live_blocks  bigint  blocks that are alive from here on
WITH change AS (
  SELECT
    rep, rank,
    produced_ns AS t_ns,
    bytes,
    1 AS blocks
  FROM allocation
  WHERE bytes > 0 AND produced_ns IS NOT NULL AND (released_ns IS NULL OR released_ns > produced_ns)
  UNION ALL
  SELECT
    rep, rank,
    released_ns AS t_ns,
    -bytes AS bytes,
    -1 AS blocks
  FROM allocation
  WHERE bytes > 0 AND released_ns > produced_ns
),

moment AS (
  SELECT
    rep, rank, t_ns,
    sum(bytes) AS bytes,
    sum(blocks) AS blocks
  FROM change
  GROUP BY ALL
)

SELECT
  rep, rank, t_ns,
  CAST(sum(bytes) OVER (PARTITION BY rep, rank ORDER BY t_ns ROWS UNBOUNDED PRECEDING) AS BIGINT) AS live_bytes,
  CAST(sum(blocks) OVER (PARTITION BY rep, rank ORDER BY t_ns ROWS UNBOUNDED PRECEDING) AS BIGINT) AS live_blocks
FROM moment
