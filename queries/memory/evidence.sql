-- How far the lifetimes of blocks are known where they are reconstructed from the changes of a pool.
--
-- Reads: allocation
-- Gives, one row per (rep, rank), in that order:
--   rep              bigint          repetition
--   rank             bigint          process rank
--   blocks           bigint          blocks
--   released_bytes   bigint  bytes   released, as far as it was seen
--   matched_bytes    bigint  bytes   of these, in blocks as large as the change that their release made
--   inferred_bytes   bigint  bytes   of these, in blocks of a chosen size: release and allocation made one change
--   earlier_bytes    bigint  bytes   of these, in blocks that were there when the recording of operators began
--   matched_ratio    double  0..1    matched of released; null when nothing was released
SELECT
  rep, rank,
  count(*) AS blocks,
  CAST(sum(CASE WHEN evidence <> 'unseen' THEN bytes ELSE 0 END) AS BIGINT) AS released_bytes,
  CAST(sum(CASE WHEN evidence = 'matched' THEN bytes ELSE 0 END) AS BIGINT) AS matched_bytes,
  CAST(sum(CASE WHEN evidence = 'inferred' THEN bytes ELSE 0 END) AS BIGINT) AS inferred_bytes,
  CAST(sum(CASE WHEN evidence = 'earlier' THEN bytes ELSE 0 END) AS BIGINT) AS earlier_bytes,
  sum(CASE WHEN evidence = 'matched' THEN bytes ELSE 0 END)
  / nullif(sum(CASE WHEN evidence <> 'unseen' THEN bytes ELSE 0 END), 0) AS matched_ratio
FROM allocation
WHERE evidence IS NOT NULL
GROUP BY ALL
ORDER BY rep, rank
