-- Bytes that each rank moved by kind of link, and how fast.
--
-- From the rows that sum up a kind of link where the source has them, else from those of single links. A rank's copies
-- to itself count in the latter as kind `own memory`. SDMA is the sum of HCCS, PCIE and SIO where a source names these,
-- and is left out then.
--
-- Reads: rank_link
-- Ranks: apart
-- Gives, one row per (rep, rank, transport), in that order:
--   rep          bigint   repetition
--   rank         bigint   process rank that recorded it
--   transport    varchar  kind of link: SDMA, HCCS, RDMA, PCIE, SIO, ...
--   moves        bigint   rows: operators x steps (x links)
--   moved_bytes  bigint   bytes  in all
--   moving_ns    bigint   ns     in all
--   rate         double   bytes per second: moved_bytes / moving_ns
--   median_rate  double   bytes per second, median of the moves
WITH sorted AS (
  SELECT
    rep, rank,
    CASE WHEN src_rank = dst_rank THEN 'own memory' ELSE coalesce(transport, 'unknown') END AS transport,
    bytes AS moved_bytes,
    dur_ns AS moving_ns,
    CASE WHEN src_rank IS NULL THEN 1 ELSE 0 END AS is_sum,
    max(CASE WHEN src_rank IS NULL THEN 1 ELSE 0 END) OVER (PARTITION BY rep, rank) AS has_sums,
    max(CASE WHEN transport IN ('HCCS', 'PCIE', 'SIO') THEN 1 ELSE 0 END) OVER (PARTITION BY rep, rank) AS has_kinds
  FROM rank_link
  WHERE bytes > 0 AND dur_ns > 0
)

SELECT
  rep, rank, transport,
  count(*) AS moves,
  CAST(sum(moved_bytes) AS BIGINT) AS moved_bytes,
  CAST(sum(moving_ns) AS BIGINT) AS moving_ns,
  1e9 * sum(moved_bytes) / nullif(sum(moving_ns), 0) AS rate,
  1e9 * median(moved_bytes / nullif(moving_ns, 0)) AS median_rate
FROM sorted
WHERE is_sum = has_sums AND (transport <> 'SDMA' OR has_kinds = 0)
GROUP BY ALL
ORDER BY rep, rank, transport
