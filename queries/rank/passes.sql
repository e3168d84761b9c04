-- Ranks that recorded whole passes: microbatches forward or backward through the part of the model that a rank holds.
--
-- Reads: op_info
-- Ranks: apart
-- Gives, one row per (rep, rank), in that order:
--   rep    bigint   repetition
--   rank   bigint   process rank
--   kinds  bigint   kinds of passes
SELECT
  rep, rank,
  count(*) AS kinds
FROM op_info
WHERE category = 'pass'
GROUP BY ALL
ORDER BY rep, rank
