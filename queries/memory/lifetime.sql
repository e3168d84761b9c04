-- The largest tensors or blocks: where they lay, from when to when, and what made them.
--
-- Of several devices this is the one that held the most at once: addresses of two devices cannot be compared.
--
-- Reads: allocation, live_memory, op_info?
-- Takes:
--   $top  bigint  how many of each rank
-- Gives, one row per (rep, rank, position), in that order:
--   rep          bigint   repetition
--   rank         bigint   process rank
--   position     bigint   1 is the largest; of equals the first
--   address      bigint   address; null when not known
--   bytes        bigint   bytes  size
--   produced_ns  bigint   ns     allocated
--   released_ns  bigint   ns     freed; null when it was still held
--   op_id        bigint   the operator that made it; null when not known
--   name         varchar  its full name; null when not known
--   evidence     varchar  matched | inferred | earlier | unseen: how its release is known; null: it was recorded
WITH fullest AS (
  SELECT DISTINCT rep, rank, device
  FROM live_memory
),

ranked AS (
  SELECT
    allocation.*,
    row_number() OVER (
      PARTITION BY allocation.rep, allocation.rank
      ORDER BY
        bytes DESC, produced_ns ASC, address ASC NULLS LAST, released_ns ASC NULLS LAST, op_id ASC NULLS LAST,
        evidence ASC NULLS LAST
    ) AS position
  FROM allocation
  INNER JOIN fullest
    ON
      allocation.rep = fullest.rep
      AND allocation.rank = fullest.rank
      AND allocation.device IS NOT DISTINCT FROM fullest.device
  WHERE bytes > 0 AND produced_ns IS NOT NULL
)

SELECT
  rep, rank, ranked.position, ranked.address, ranked.bytes, ranked.produced_ns, ranked.released_ns, op_id, op_info.name,
  ranked.evidence
FROM ranked
LEFT JOIN op_info USING (rep, rank, op_id)
WHERE ranked.position <= $top
ORDER BY rep, rank, ranked.position
