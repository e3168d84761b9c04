-- Which ranks do the same work, and so can be compared with each other: those of one pipeline stage.
--
-- Stages as the profiler names them (a stage goes from its first rank to the next stage's). Without names, the stages
-- that follow from sending and receiving: a rank whose step begins with sending is of the first one, any other of the
-- one behind the rank that it receives from first, the nearest other member of that event's group. Where these groups
-- are not named, ranks that send and receive alike: which of the two their step begins with, and how often at most.
-- Without sending and receiving, all ranks of a repetition.
--
-- Reads: collective?, step?, step_split?
-- Gives, one row per (rep, rank):
--   rep    bigint   repetition
--   rank   bigint   process rank
--   peers  bigint   number of the group, from 0
--   basis  varchar  stage | send_receive | all
WITH RECURSIVE
rank_row AS (
  SELECT
    rep, rank
  FROM step
  UNION ALL
  SELECT
    rep, rank
  FROM step_split
),

every AS (
  SELECT
    rep, rank
  FROM rank_row
  GROUP BY ALL
),

first_rank AS (
  SELECT
    rep,
    rank AS first_rank
  FROM step_split
  WHERE stage_index IS NOT NULL
  GROUP BY ALL
),

staged AS (
  SELECT
    every.rep, every.rank,
    count(first_rank.first_rank) AS begun
  FROM every
  LEFT JOIN first_rank ON every.rep = first_rank.rep AND every.rank >= first_rank.first_rank
  GROUP BY ALL
),

between_two AS (
  SELECT
    rep, rank, step, kind, group_name,
    row_number() OVER (PARTITION BY rep, rank, step ORDER BY start_ns ASC, dur_ns ASC, kind ASC) AS place,
    count(*) OVER (PARTITION BY rep, rank, step) AS events
  FROM collective
  WHERE kind IN ('send', 'receive')
),

pattern AS (
  SELECT
    rep, rank,
    max(events) AS events,
    max(CASE WHEN kind = 'send' THEN 1 ELSE 0 END) AS sends_first
  FROM between_two
  WHERE place = 1
  GROUP BY ALL
),

-- The group of a rank's first event; of several steps the one that most begin with.
opening AS (
  SELECT
    rep, rank, kind, group_name,
    row_number() OVER (PARTITION BY rep, rank ORDER BY count(*) DESC, kind ASC, group_name ASC) AS place
  FROM between_two
  WHERE place = 1
  GROUP BY rep, rank, kind, group_name
),

two_way AS (
  SELECT
    rep, rank, group_name
  FROM between_two
  WHERE group_name IS NOT NULL
  GROUP BY ALL
),

-- Of the other members the next lower one, else the next higher one.
sender AS (
  SELECT
    opening.rep, opening.rank,
    coalesce(
      max(CASE WHEN two_way.rank < opening.rank THEN two_way.rank END),
      min(CASE WHEN two_way.rank > opening.rank THEN two_way.rank END)
    ) AS sender
  FROM opening
  INNER JOIN two_way
    ON opening.rep = two_way.rep AND opening.group_name = two_way.group_name AND opening.rank <> two_way.rank
  WHERE opening.place = 1 AND opening.kind = 'receive'
  GROUP BY ALL
),

chain AS (
  SELECT
    rep, rank,
    0 AS depth
  FROM opening
  WHERE place = 1 AND kind = 'send'
  UNION ALL
  SELECT
    sender.rep, sender.rank,
    chain.depth + 1 AS depth
  FROM chain
  INNER JOIN sender ON chain.rep = sender.rep AND chain.rank = sender.sender
),

-- Only when every rank that sends or receives has its place.
chained AS (
  SELECT rep
  FROM opening
  LEFT JOIN chain USING (rep, rank)
  WHERE opening.place = 1
  GROUP BY ALL
  HAVING count(chain.rank) = count(*)
),

known AS (
  SELECT
    rep, staged.rank, staged.begun, pattern.events,
    CASE WHEN chained.rep IS NOT NULL THEN coalesce(chain.depth, -1) END AS depth,
    coalesce(pattern.sends_first, -1) AS sends_first,
    max(staged.begun) OVER (PARTITION BY rep) AS stages
  FROM staged
  LEFT JOIN pattern USING (rep, rank)
  LEFT JOIN chain USING (rep, rank)
  LEFT JOIN chained USING (rep)
)

SELECT
  rep, rank, CASE
    WHEN stages > 0 THEN greatest(begun - 1, 0)
    WHEN depth IS NOT NULL THEN dense_rank() OVER (PARTITION BY rep ORDER BY depth ASC) - 1
    ELSE dense_rank() OVER (PARTITION BY rep ORDER BY sends_first DESC, coalesce(events, 0) ASC) - 1
  END AS peers,
  CASE
    WHEN stages > 0 THEN 'stage'
    WHEN max(events) OVER (PARTITION BY rep) IS NOT NULL THEN 'send_receive'
    ELSE 'all'
  END AS basis
FROM known
