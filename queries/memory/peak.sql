-- When most memory was alive in tensors or blocks, how much, and how much was never released.
--
-- Reads: allocation, live_memory
-- Gives, one row per (rep, rank), in that order:
--   rep              bigint  repetition
--   rank             bigint  process rank
--   t_ns             bigint  ns     the first moment with the most
--   peak_bytes       bigint  bytes  alive then
--   peak_blocks      bigint  blocks alive then
--   blocks           bigint  blocks in all
--   allocated_bytes  bigint  bytes  in all of them
--   kept_blocks      bigint  blocks that were never released
--   kept_bytes       bigint  bytes  in those
WITH ranked AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY rep, rank ORDER BY live_bytes DESC, t_ns ASC) AS place
  FROM live_memory
),

whole AS (
  SELECT
    rep, rank,
    count(*) AS blocks,
    sum(bytes) AS allocated_bytes,
    count(CASE WHEN released_ns IS NULL THEN 1 END) AS kept_blocks,
    sum(CASE WHEN released_ns IS NULL THEN bytes ELSE 0 END) AS kept_bytes
  FROM allocation
  WHERE bytes > 0 AND produced_ns IS NOT NULL
  GROUP BY ALL
)

SELECT
  rep, rank, ranked.t_ns,
  ranked.live_bytes AS peak_bytes,
  ranked.live_blocks AS peak_blocks,
  whole.blocks,
  CAST(whole.allocated_bytes AS BIGINT) AS allocated_bytes,
  whole.kept_blocks,
  CAST(whole.kept_bytes AS BIGINT) AS kept_bytes
FROM ranked
INNER JOIN whole USING (rep, rank)
WHERE ranked.place = 1
ORDER BY rep, rank
