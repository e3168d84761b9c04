-- Phases over the steps and over the ranks, to be plotted: the middle and the extremes of the ranks, at most so many
-- points.
--
-- With more steps than points, a point stands for several steps in a row, by their mean on each rank.
--
-- Reads: phase_turn, rank_phase
-- Takes:
--   $points  bigint  most points
-- Gives, one row per (rep, peers, phase, point), in that order:
--   rep             bigint   repetition
--   peers           bigint   group of ranks that do the same work, see rank_peer
--   phase           varchar  see rank_phase
--   point           bigint   from 0
--   first_position  bigint   its first step
--   last_position   bigint   its last step
--   ranks           bigint   ranks
--   median_ns       double   ns    of the ranks
--   min_ns          double   ns    of the fastest rank
--   max_ns          double   ns    of the slowest rank
--   slowest_rank    bigint   that rank; of equals the lowest
WITH pointed AS (
  SELECT
    *,
    CASE WHEN turns <= $points THEN turn ELSE CAST(floor(turn * $points / nullif(turns, 0)) AS BIGINT) END AS point
  FROM phase_turn
),

rank_mean AS (
  SELECT
    rep, peers, rank_phase.phase, pointed.point, rank_phase.rank,
    min(position) AS first_position,
    max(position) AS last_position,
    avg(rank_phase.phase_ns) AS mean_ns
  FROM rank_phase
  INNER JOIN pointed USING (rep, peers, position)
  GROUP BY ALL
),

placed AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY rep, peers, phase, point ORDER BY mean_ns DESC, rank ASC) AS place
  FROM rank_mean
)

SELECT
  rep, peers, phase, point,
  min(first_position) AS first_position,
  max(last_position) AS last_position,
  count(*) AS ranks,
  median(mean_ns) AS median_ns,
  min(mean_ns) AS min_ns,
  max(mean_ns) AS max_ns,
  max(CASE WHEN place = 1 THEN rank END) AS slowest_rank
FROM placed
GROUP BY ALL
ORDER BY rep, peers, phase, point
