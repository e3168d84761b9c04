-- Most memory that a process of the training held in each repetition.
--
-- Reads: memory
-- Gives, one row per (rep), in that order:
--   rep         bigint   repetition
--   peak_bytes  bigint   bytes  largest resident set of one process; null when no process was sampled
SELECT
  rep,
  max(CASE WHEN rss_peak_bytes >= rss_bytes THEN rss_peak_bytes ELSE rss_bytes END) AS peak_bytes
FROM memory
WHERE device = 'process'
GROUP BY ALL
ORDER BY rep
