-- The source by which the ranks of a repetition are compared, see rank_phase.
--
-- Reads: phase_offer
-- Kept: yes
-- Gives, one row per (rep):
--   rep     bigint   repetition
--   source  varchar  parts | split | trace | phase
WITH offer AS (
  SELECT
    rep, source,
    min(preference) AS preference,
    count(DISTINCT rank) AS ranks,
    least(count(DISTINCT position), 5) AS steps
  FROM phase_offer
  GROUP BY ALL
)

SELECT
  rep, source
FROM offer
QUALIFY row_number() OVER (PARTITION BY rep ORDER BY ranks DESC, steps DESC, preference ASC) = 1
