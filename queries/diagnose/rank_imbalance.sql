-- How much longer each rank works than the others that do the same work, part by part, in the steps that every rank
-- recorded operators in.
--
-- Ranks that train in step have steps of one length: the slow rank is the one with the longest own time (everything but
-- exposed communication) and the least communication. Differences are taken within a step, so that what all ranks have
-- in common, such as a long step, cancels. Of the exposed communication of a step, the least of all ranks is taken for
-- the transfer; what a rank has beyond it is waiting. `other` holds the work on gradients and behind the optimizer.
-- Pipeline stages differ by design: ranks of different ones are not compared, see rank_peer. Empty when fewer than two
-- ranks have a step in common.
--
-- Reads: rank_peer, step_part
-- Gives, one row per (rep, rank, part), in that order:
--   rep           bigint   repetition
--   rank          bigint   process rank
--   part          varchar  backward | communication (exposed) | data_wait | forward | host_gap | optimizer | other |
--                          own (the step without exposed communication) | waiting (communication beyond the transfer)
--   ranks         bigint   ranks of the repetition
--   steps         bigint   steps that all of them have
--   step_ns       double   ns    median length of the rank's step
--   median_ns     double   ns    of the part, over the steps
--   mean_ns       double   ns    of the part, over the steps
--   diff_ns       double   ns    median of (this rank - mean of its peers); null when it has none
--   diff_low_ns   double   ns    lower quartile of that difference; null when it has none
--   diff_high_ns  double   ns    upper quartile of that difference; null when it has none
--   peers         bigint   group of ranks that do the same work, see rank_peer
WITH part_name AS (
  SELECT unnest([
    'backward', 'communication', 'data_wait', 'forward', 'host_gap', 'optimizer', 'other', 'own', 'waiting'
  ]) AS part
),

rank_count AS (
  SELECT
    rep,
    count(DISTINCT rank) AS ranks
  FROM step_part
  GROUP BY ALL
),

met AS (
  SELECT
    *,
    count(*) OVER (PARTITION BY rep, kind_step) AS present,
    min(exposed_ns + tail_ns) OVER (PARTITION BY rep, kind_step) AS transfer_ns
  FROM step_part
),

piece AS (
  SELECT
    met.rep, met.rank, met.kind_step, met.dur_ns, part_name.part, rank_count.ranks, rank_peer.peers,
    CASE part_name.part
      WHEN 'backward' THEN met.backward_ns
      WHEN 'communication' THEN met.exposed_ns + met.tail_ns
      WHEN 'data_wait' THEN met.data_wait_ns
      WHEN 'forward' THEN met.forward_ns
      WHEN 'host_gap' THEN met.host_gap_ns
      WHEN 'optimizer' THEN met.optimizer_ns
      WHEN 'other' THEN met.other_ns + met.gradients_ns + met.after_ns
      WHEN 'own' THEN met.dur_ns - met.exposed_ns - met.tail_ns
      ELSE met.exposed_ns + met.tail_ns - met.transfer_ns
    END AS part_ns
  FROM met
  INNER JOIN rank_count ON met.rep = rank_count.rep AND met.present = rank_count.ranks
  INNER JOIN rank_peer ON met.rep = rank_peer.rep AND met.rank = rank_peer.rank
  INNER JOIN part_name ON met.dur_ns IS NOT NULL
  WHERE rank_count.ranks > 1
),

compared AS (
  SELECT
    *,
    part_ns - (sum(part_ns) OVER (PARTITION BY rep, kind_step, part, peers) - part_ns)
    / nullif(count(*) OVER (PARTITION BY rep, kind_step, part, peers) - 1, 0) AS diff_ns
  FROM piece
)

SELECT
  rep, rank, part,
  max(ranks) AS ranks,
  count(*) AS steps,
  median(dur_ns) AS step_ns,
  median(part_ns) AS median_ns,
  avg(part_ns) AS mean_ns,
  median(diff_ns) AS diff_ns,
  percentile_cont(0.25e0) WITHIN GROUP (ORDER BY diff_ns) AS diff_low_ns,
  percentile_cont(0.75e0) WITHIN GROUP (ORDER BY diff_ns) AS diff_high_ns,
  max(peers) AS peers
FROM compared
GROUP BY rep, rank, part
ORDER BY rep, rank, part
