-- Groups of ranks that do the same work (pipeline stages): how they divide a step, their bubbles, how even they are.
--
-- From the profiler's own division of the steps, see step_split. A bubble is waiting for other pipeline stages.
--
-- Reads: rank_peer, rank_split
-- Gives, one row per (rep, peers), in that order:
--   rep               bigint   repetition
--   peers             bigint   number of the group, from 0
--   basis             varchar  stage | send_receive | all, see rank_peer
--   first_rank        bigint   its lowest rank
--   last_rank         bigint   its highest rank
--   ranks             bigint   ranks
--   step_ns           double   ns    mean step of the ranks: computing, exposed communication and free time
--   computing_ns      double   ns    mean of the ranks
--   exposed_ns        double   ns    communication without computing beside it, mean of the ranks
--   receive_ns        double   ns    of it, receiving from another stage; null when not known
--   free_ns           double   ns    mean of the ranks; null when not known
--   bubble_ns         double   ns    mean of the ranks; null when not known
--   bubble_share      double   0..1  of stage and bubble together; null when not known
--   slowest_rank      bigint   the rank that computes longest
--   computing_excess  double   how much longer it computes than the group's mean: 0.05 is 5 %
WITH by_rank AS (
  SELECT
    rep, rank_peer.peers, rank_peer.basis, rank,
    avg(rank_split.step_ns) AS step_ns,
    avg(rank_split.computing_ns) AS computing_ns,
    avg(rank_split.exposed_ns) AS exposed_ns,
    avg(rank_split.receive_ns) AS receive_ns,
    avg(rank_split.free_ns) AS free_ns,
    avg(rank_split.bubble_ns) AS bubble_ns,
    avg(rank_split.stage_ns) AS stage_ns
  FROM rank_split
  INNER JOIN rank_peer USING (rep, rank)
  GROUP BY ALL
),

placed AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY rep, peers ORDER BY computing_ns DESC NULLS LAST, rank ASC) AS place
  FROM by_rank
)

SELECT
  rep, peers,
  min(basis) AS basis,
  min(rank) AS first_rank,
  max(rank) AS last_rank,
  count(*) AS ranks,
  avg(step_ns) AS step_ns,
  avg(computing_ns) AS computing_ns,
  avg(exposed_ns) AS exposed_ns,
  avg(receive_ns) AS receive_ns,
  avg(free_ns) AS free_ns,
  avg(bubble_ns) AS bubble_ns,
  sum(bubble_ns) / nullif(sum(stage_ns + bubble_ns), 0) AS bubble_share,
  max(CASE WHEN place = 1 THEN rank END) AS slowest_rank,
  max(computing_ns) / nullif(avg(computing_ns), 0) - 1 AS computing_excess
FROM placed
GROUP BY ALL
ORDER BY rep, peers
