-- Memory in tensors or blocks whose lifetimes are known, after each moment at which it changed.
--
-- Of several devices this is the one whose blocks held the most at once: addresses and peaks of devices do not add up.
-- A block that was released when it was made, or has no size, does not count.
--
-- Reads: allocation
-- Gives, one row per (rep, rank, t_ns):
--   rep          bigint   repetition
--   rank         bigint   process rank
--   device       varchar  the device; null where the source does not say
--   t_ns         bigint   ns     time
--   live_bytes   bigint   bytes  in blocks that are alive from here on
--   live_blocks  bigint   blocks that are alive from here on
WITH change AS (
  SELECT
    rep, rank, device,
    produced_ns AS t_ns,
    bytes,
    1 AS blocks
  FROM allocation
  WHERE bytes > 0 AND produced_ns IS NOT NULL AND (released_ns IS NULL OR released_ns > produced_ns)
  UNION ALL
  SELECT
    rep, rank, device,
    released_ns AS t_ns,
    -bytes AS bytes,
    -1 AS blocks
  FROM allocation
  WHERE bytes > 0 AND released_ns > produced_ns
),

moment AS (
  SELECT
    rep, rank, device, t_ns,
    sum(bytes) AS bytes,
    sum(blocks) AS blocks
  FROM change
  GROUP BY ALL
),

level AS (
  SELECT
    rep, rank, device, t_ns,
    CAST(sum(bytes) OVER (PARTITION BY rep, rank, device ORDER BY t_ns ROWS UNBOUNDED PRECEDING) AS BIGINT)
      AS live_bytes,
    CAST(sum(blocks) OVER (PARTITION BY rep, rank, device ORDER BY t_ns ROWS UNBOUNDED PRECEDING) AS BIGINT)
      AS live_blocks
  FROM moment
)

SELECT rep, rank, device, t_ns, live_bytes, live_blocks
FROM level
QUALIFY
  device IS NOT DISTINCT FROM first_value(device) OVER (
    PARTITION BY rep, rank
    ORDER BY live_bytes DESC, device ASC NULLS LAST
    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
  )
