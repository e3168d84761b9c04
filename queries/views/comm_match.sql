-- The same collective on all its ranks: the rank that comes last has the shortest event, the others wait for it there.
--
-- Needs no common clock. Matched by step, group, name, and position among equal ones of the step; where the source
-- names no group, the ranks that do the same work count as one. Sending and receiving between two ranks is left out,
-- and so is what only one rank has.
--
-- Reads: collective, rank_peer, train_step
-- Kept: yes
-- Gives, one row per (rep, rank, position, name, group_name, place):
--   rep         bigint   repetition
--   rank        bigint   process rank
--   peers       bigint   group of ranks that do the same work; -1 where the source names the communication group
--   position    bigint   the step's number in the source, else among the rank's training steps
--   name        varchar  full name
--   group_name  varchar  communication group; empty where the source names none
--   kind        varchar  all_reduce | all_gather | ...
--   place       bigint   position among equal ones of the step, from 1
--   ranks       bigint   ranks that have it
--   dur_ns      bigint   ns    its length on this rank
--   least_ns    bigint   ns    its length on the rank that has the shortest: the transfer
--   waiting_ns  bigint   ns    dur_ns - least_ns
--   is_last     boolean  this rank has the shortest, and no other
--   caused_ns   bigint   ns    waiting of all others together, on the rank that is last; else 0
WITH event AS (
  SELECT
    rep, rank,
    CASE WHEN collective.group_name IS NULL THEN rank_peer.peers ELSE -1 END AS peers,
    train_step.position, collective.name,
    coalesce(collective.group_name, '') AS group_name,
    collective.kind, collective.dur_ns,
    row_number() OVER (
      PARTITION BY rep, rank, collective.step, collective.name, collective.group_name
      ORDER BY collective.start_ns ASC, collective.dur_ns ASC
    ) AS place
  FROM collective
  INNER JOIN train_step USING (rep, rank, step)
  INNER JOIN rank_peer USING (rep, rank)
  WHERE
    collective.name IS NOT NULL
    AND collective.dur_ns IS NOT NULL
    AND coalesce(collective.kind, '') NOT IN ('send', 'receive')
),

met AS (
  SELECT
    rep, peers, position, name, group_name, place,
    count(*) AS ranks,
    min(dur_ns, 2) AS shortest_ns,
    CAST(sum(dur_ns) AS BIGINT) AS all_ns
  FROM event
  GROUP BY ALL
  HAVING count(*) > 1
),

compared AS (
  SELECT
    rep, event.rank, peers, position, name, group_name, event.kind, place, met.ranks, event.dur_ns, met.all_ns,
    met.shortest_ns[1] AS least_ns,
    event.dur_ns = met.shortest_ns[1] AND met.shortest_ns[1] < met.shortest_ns[2] AS is_last
  FROM event
  INNER JOIN met USING (rep, peers, position, name, group_name, place)
)

SELECT
  rep, rank, peers, position, name, group_name, kind, place, ranks, dur_ns, least_ns,
  dur_ns - least_ns AS waiting_ns,
  is_last,
  CASE WHEN is_last THEN all_ns - ranks * least_ns ELSE 0 END AS caused_ns
FROM compared
