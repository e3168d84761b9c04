-- Which operators made the tensors or blocks that were alive at the peak, on the device that held the most.
--
-- Reads: allocation, live_memory, op_info?
-- Takes:
--   $top  bigint  how many operators of each rank
-- Gives, one row per (rep, rank, position), in that order:
--   rep         bigint   repetition
--   rank        bigint   process rank
--   position    bigint   1 holds the most
--   name        varchar  full name; null when it is not known what made them
--   type        varchar  operator type
--   blocks      bigint   its blocks alive at the peak
--   bytes       bigint   bytes  in them
--   share       double   0..1   of all that was alive then
--   t_ns        bigint   ns     the peak
--   oldest_ns   bigint   ns     age of its oldest block then
WITH highest AS (
  SELECT *
  FROM live_memory
  QUALIFY row_number() OVER (PARTITION BY rep, rank ORDER BY live_bytes DESC, t_ns ASC) = 1
),

alive AS (
  SELECT
    highest.rep, highest.rank, highest.t_ns, highest.live_bytes, op_info.name, op_info.type, allocation.bytes,
    highest.t_ns - allocation.produced_ns AS age_ns
  FROM highest
  INNER JOIN allocation
    ON
      highest.rep = allocation.rep
      AND highest.rank = allocation.rank
      AND highest.device IS NOT DISTINCT FROM allocation.device
      AND highest.t_ns >= allocation.produced_ns
      AND highest.t_ns < coalesce(allocation.released_ns, highest.t_ns + 1)
  LEFT JOIN op_info
    ON allocation.rep = op_info.rep AND allocation.rank = op_info.rank AND allocation.op_id = op_info.op_id
  WHERE allocation.bytes > 0
),

summed AS (
  SELECT
    rep, rank, name,
    min(type) AS type,
    count(*) AS blocks,
    sum(bytes) AS bytes,
    sum(bytes) / nullif(max(live_bytes), 0) AS share,
    max(t_ns) AS t_ns,
    max(age_ns) AS oldest_ns,
    row_number() OVER (PARTITION BY rep, rank ORDER BY sum(bytes) DESC, name ASC NULLS LAST) AS position
  FROM alive
  GROUP BY rep, rank, name
)

SELECT
  rep, rank, position, name, type, blocks,
  CAST(bytes AS BIGINT) AS bytes,
  share, t_ns, oldest_ns
FROM summed
WHERE position <= $top
ORDER BY rep, rank, position
