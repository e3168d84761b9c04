-- How many ranks of those that do the same work are compared.
--
-- Reads: rank_phase
-- Kept: yes
-- Gives, one row per (rep, peers):
--   rep    bigint  repetition
--   peers  bigint  group of ranks that do the same work, see rank_peer
--   ranks  bigint  ranks that have phases
SELECT
  rep, peers,
  count(DISTINCT rank) AS ranks
FROM rank_phase
GROUP BY ALL
