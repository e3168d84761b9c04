-- Data moved between two ranks, with the ranks' numbers in the whole job.
--
-- Some profilers number the ranks of a communication group from 0, so that 0-1 of two groups are different pairs. A
-- group's members are the ranks that report it. Its numbers are its own when one of them is no member; they are then
-- replaced by the members in ascending order. Where members are missing, so that this cannot be done, the numbers stay
-- and local_group tells such links apart.
--
-- Reads: collective?, collective_cost?, rank_link
-- Gives, one row per (rep, rank, step, name, group_name, src_rank, dst_rank, transport):
--   rep          bigint   repetition
--   rank         bigint   process rank that reported it
--   step         bigint   the step; null when it is not known
--   name         varchar  communication operator; null for all of the step
--   group_name   varchar  communication group
--   src_rank     bigint   sender; null for all links of a transport
--   dst_rank     bigint   receiver; null for all links of a transport
--   local_group  varchar  the group within which src_rank and dst_rank count; empty when they are ranks of the job
--   transport    varchar  kind of link: LOCAL, SDMA, HCCS, RDMA, PCIE, SIO
--   bytes        bigint   bytes  moved
--   dur_ns       bigint   ns     time it took
WITH said AS (
  SELECT
    rep, rank, group_name
  FROM collective
  UNION
  SELECT
    rep, rank, group_name
  FROM collective_cost
  UNION
  SELECT
    rep, rank, group_name
  FROM rank_link
),

member AS (
  SELECT
    rep, group_name, rank,
    row_number() OVER (PARTITION BY rep, group_name ORDER BY rank ASC) - 1 AS place
  FROM said
  WHERE group_name IS NOT NULL
),

ends AS (
  SELECT
    rep, group_name,
    src_rank AS number
  FROM rank_link
  WHERE src_rank IS NOT NULL AND group_name IS NOT NULL
  UNION
  SELECT
    rep, group_name,
    dst_rank AS number
  FROM rank_link
  WHERE dst_rank IS NOT NULL AND group_name IS NOT NULL
),

own_number AS (
  SELECT
    ends.rep, ends.group_name,
    count(place_of.rank) = count(*) AS resolved
  FROM ends
  LEFT JOIN member ON ends.rep = member.rep AND ends.group_name = member.group_name AND ends.number = member.rank
  LEFT JOIN member AS place_of
    ON ends.rep = place_of.rep AND ends.group_name = place_of.group_name AND ends.number = place_of.place
  GROUP BY ALL
  HAVING count(member.rank) < count(*)
)

SELECT
  rank_link.rep, rank_link.rank, rank_link.step, rank_link.name, rank_link.group_name,
  CASE WHEN own_number.resolved THEN src.rank ELSE rank_link.src_rank END AS src_rank,
  CASE WHEN own_number.resolved THEN dst.rank ELSE rank_link.dst_rank END AS dst_rank,
  CASE WHEN NOT own_number.resolved THEN rank_link.group_name ELSE '' END AS local_group,
  rank_link.transport, rank_link.bytes, rank_link.dur_ns
FROM rank_link
LEFT JOIN own_number USING (rep, group_name)
LEFT JOIN member AS src
  ON rank_link.rep = src.rep AND rank_link.group_name = src.group_name AND rank_link.src_rank = src.place
LEFT JOIN member AS dst
  ON rank_link.rep = dst.rep AND rank_link.group_name = dst.group_name AND rank_link.dst_rank = dst.place
