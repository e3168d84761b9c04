-- Which ranks do the same work, and so can be compared with each other: those of one pipeline stage.
--
-- Stages as the profiler names them (a stage goes from its first rank to the next stage's). Without names, ranks that
-- send and receive alike: which of the two their step begins with, and how often at most. Without sending and
-- receiving, all ranks of a repetition.
--
-- Reads: collective, step, step_split
-- Gives, one row per (rep, rank):
--   rep    bigint   repetition
--   rank   bigint   process rank
--   peers  bigint   number of the group, from 0
--   basis  varchar  stage | send_receive | all
WITH rank_row AS (
  SELECT
    rep,
    rank
  FROM step
  UNION ALL
  SELECT
    rep,
    rank
  FROM step_split
),

every AS (
  SELECT
    rep,
    rank
  FROM rank_row
  GROUP BY rep, rank
),

first_rank AS (
  SELECT
    rep,
    rank AS first_rank
  FROM step_split
  WHERE stage_index IS NOT NULL
  GROUP BY rep, rank
),

staged AS (
  SELECT
    every.rep,
    every.rank,
    count(first_rank.first_rank) AS begun
  FROM every
  LEFT JOIN first_rank ON every.rep = first_rank.rep AND every.rank >= first_rank.first_rank
  GROUP BY every.rep, every.rank
),

between_two AS (
  SELECT
    rep,
    rank,
    step,
    kind,
    row_number() OVER (PARTITION BY rep, rank, step ORDER BY start_ns ASC, dur_ns ASC, kind ASC) AS place,
    count(*) OVER (PARTITION BY rep, rank, step) AS events
  FROM collective
  WHERE kind IN ('send', 'receive')
),

pattern AS (
  SELECT
    rep,
    rank,
    max(events) AS events,
    max(CASE WHEN kind = 'send' THEN 1 ELSE 0 END) AS sends_first
  FROM between_two
  WHERE place = 1
  GROUP BY rep, rank
),

known AS (
  SELECT
    staged.rep,
    staged.rank,
    staged.begun,
    pattern.events,
    coalesce(pattern.sends_first, -1) AS sends_first,
    max(staged.begun) OVER (PARTITION BY staged.rep) AS stages
  FROM staged
  LEFT JOIN pattern ON staged.rep = pattern.rep AND staged.rank = pattern.rank
)

SELECT
  rep,
  rank,
  CASE
    WHEN stages > 0 THEN greatest(begun - 1, 0)
    ELSE dense_rank() OVER (PARTITION BY rep ORDER BY sends_first DESC, coalesce(events, 0) ASC) - 1
  END AS peers,
  CASE
    WHEN stages > 0 THEN 'stage'
    WHEN max(events) OVER (PARTITION BY rep) IS NOT NULL THEN 'send_receive'
    ELSE 'all'
  END AS basis
FROM known
