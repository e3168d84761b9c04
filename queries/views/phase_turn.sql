-- The steps in which ranks are compared, counted.
--
-- Reads: rank_phase
-- Kept: yes
-- Gives, one row per (rep, peers, position):
--   rep       bigint  repetition
--   peers     bigint  group of ranks that do the same work, see rank_peer
--   position  bigint  the step's number in the source, else among the rank's training steps
--   turn      bigint  from 0, in the order of the positions
--   turns     bigint  how many there are
WITH step_number AS (
  SELECT
    rep, peers, position
  FROM rank_phase
  GROUP BY ALL
)

SELECT
  rep, peers, position,
  row_number() OVER (PARTITION BY rep, peers ORDER BY position ASC) - 1 AS turn,
  count(*) OVER (PARTITION BY rep, peers) AS turns
FROM step_number
