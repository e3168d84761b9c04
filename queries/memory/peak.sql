-- When the most memory was alive in tensors or blocks, how much, and how much was never released.
--
-- Of several devices this is the one that held the most at once.
--
-- Reads: allocation, live_memory
-- Gives, one row per (rep, rank), in that order:
--   rep              bigint  repetition
--   rank             bigint  process rank
--   device           varchar  that device; null where the source does not say
--   devices          bigint  devices with blocks, among them blocks whose device is not known
--   t_ns             bigint  ns     the first moment with the most
--   peak_bytes       bigint  bytes  alive then
--   peak_blocks      bigint  blocks alive then
--   blocks           bigint  blocks in all
--   allocated_bytes  bigint  bytes  in all of them
--   kept_blocks      bigint  blocks that were never released
--   kept_bytes       bigint  bytes  in those
WITH highest AS (
  SELECT *
  FROM live_memory
  QUALIFY row_number() OVER (PARTITION BY rep, rank ORDER BY live_bytes DESC, t_ns ASC) = 1
),

whole AS (
  SELECT
    rep, rank, device,
    count(*) AS blocks,
    sum(bytes) AS allocated_bytes,
    count(CASE WHEN released_ns IS NULL THEN 1 END) AS kept_blocks,
    sum(CASE WHEN released_ns IS NULL THEN bytes ELSE 0 END) AS kept_bytes
  FROM allocation
  WHERE bytes > 0 AND produced_ns IS NOT NULL
  GROUP BY ALL
),

counted AS (
  SELECT
    *,
    count(*) OVER (PARTITION BY rep, rank) AS devices
  FROM whole
)

SELECT
  highest.rep, highest.rank, highest.device, counted.devices, highest.t_ns,
  highest.live_bytes AS peak_bytes,
  highest.live_blocks AS peak_blocks,
  counted.blocks,
  CAST(counted.allocated_bytes AS BIGINT) AS allocated_bytes,
  counted.kept_blocks,
  CAST(counted.kept_bytes AS BIGINT) AS kept_bytes
FROM highest
INNER JOIN counted
  ON
    highest.rep = counted.rep
    AND highest.rank = counted.rank
    AND highest.device IS NOT DISTINCT FROM counted.device
ORDER BY rep, rank
