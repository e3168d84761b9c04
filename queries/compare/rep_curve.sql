-- The training steps of each repetition, to be plotted: mean lengths of so many runs of neighbours, of its lowest rank.
--
-- Warm-up steps are left out.
--
-- Reads: step
-- Takes:
--   $points  bigint  most points of each repetition
-- Gives, one row per (rep, point), in that order:
--   rep     bigint  repetition
--   point   bigint  from 0
--   steps   bigint  steps that it stands for
--   dur_ns  double  ns    their mean length
WITH first_rank AS (
  SELECT rep, step, end_ns - start_ns AS dur_ns
  FROM step
  WHERE kind = 'train'
  QUALIFY rank = min(rank) OVER (PARTITION BY rep)
),

numbered AS (
  SELECT
    rep, dur_ns,
    row_number() OVER (PARTITION BY rep ORDER BY step ASC) - 1 AS turn,
    count(*) OVER (PARTITION BY rep) AS turns
  FROM first_rank
)

SELECT
  rep,
  turn * least(turns, $points) // turns AS point,
  count(*) AS steps,
  CAST(avg(dur_ns) AS DOUBLE) AS dur_ns
FROM numbered
GROUP BY ALL
ORDER BY rep, point
