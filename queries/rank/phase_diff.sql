-- How much longer each phase of a step takes on a rank than on the others that do the same work.
--
-- Differences are taken within a step, against the median of the other ranks, so that what all have in common cancels
-- and one odd rank does not make the others look odd. Steps that at least half of the ranks have count.
--
-- Reads: phase_middle?, rank_phase?
-- Gives, one row per (rep, peers, rank, phase), in that order:
--   rep            bigint   repetition
--   peers          bigint   group of ranks that are compared, see rank_peer
--   rank           bigint   process rank
--   phase          varchar  see rank_phase
--   source         varchar  parts | split | trace | phase, see rank_phase
--   ranks          bigint   ranks of the group
--   steps          bigint   steps that count
--   step_ns        double   ns    median length of the rank's step
--   median_ns      double   ns    of the phase, over the steps
--   diff_ns        double   ns    median of (this rank - median of the other ranks)
--   diff_low_ns    double   ns    lower quartile of that difference
--   diff_high_ns   double   ns    upper quartile of that difference
--   diff_sd_ns     double   ns    its sample standard deviation; null for one step
--   early_ns       double   ns    its median in the first half of the steps
--   late_ns        double   ns    its median in the second half; null for one step
--   pairs          bigint   steps in a row neither of which has the median difference
--   same_side      bigint   of them, both above or both below it: half of them when steps do not depend on each other
--   held_up        bigint   steps in which the difference is over a tenth of the step
--   episodes       bigint   runs of such steps
--   held_up_ns     double   ns    its sum in those steps; null when there are none
WITH compared AS (
  -- Of an even number of ranks the others have one middle value, of an odd number two. Of equal ranks it is all the
  -- same which is left out.
  SELECT
    rep, peers, rank_phase.rank, position, rank_phase.source, phase, middle.ranks, rank_phase.phase_ns,
    rank_phase.step_ns,
    rank_phase.phase_ns - (
      CASE WHEN rank_phase.phase_ns > middle.first_ns THEN middle.first_ns ELSE middle.second_ns END
      + CASE
        WHEN middle.is_even
          THEN CASE WHEN rank_phase.phase_ns > middle.first_ns THEN middle.first_ns ELSE middle.second_ns END
        WHEN rank_phase.phase_ns > middle.second_ns THEN middle.second_ns
        ELSE middle.third_ns
      END
    ) / 2 AS diff_ns
  FROM rank_phase
  INNER JOIN phase_middle AS middle USING (rep, peers, position, phase)
),

-- Lists in the order of the steps take a third of the time that windows over all rows do.
listed AS (
  SELECT
    rep, peers, rank, phase,
    min(source) AS source,
    max(ranks) AS ranks,
    count(*) AS steps,
    median(step_ns) AS step_ns,
    median(phase_ns) AS median_ns,
    median(diff_ns) AS diff_ns,
    percentile_cont(0.25e0) WITHIN GROUP (ORDER BY diff_ns) AS diff_low_ns,
    percentile_cont(0.75e0) WITHIN GROUP (ORDER BY diff_ns) AS diff_high_ns,
    list(diff_ns ORDER BY position ASC) AS diffs,
    list(10 * diff_ns > step_ns ORDER BY position ASC) AS holds,
    count(CASE WHEN 10 * diff_ns > step_ns THEN 1 END) AS held_up,
    sum(CASE WHEN 10 * diff_ns > step_ns THEN diff_ns END) AS held_up_ns
  FROM compared
  GROUP BY rep, peers, rank, phase
),

followed AS (
  SELECT
    *,
    [sign(pair[1] - diff_ns) * sign(pair[2] - diff_ns) FOR pair IN list_zip(diffs[:-2], diffs[2:])] AS together,
    [pair[2] AND NOT pair[1] FOR pair IN list_zip(holds[:-2], holds[2:])] AS begun
  FROM listed
)

SELECT
  rep, peers, rank, phase, source, ranks, steps, step_ns, median_ns, diff_ns, diff_low_ns, diff_high_ns,
  list_stddev_samp(diffs) AS diff_sd_ns,
  list_median(diffs[:(steps + 1) // 2]) AS early_ns,
  list_median(diffs[(steps + 1) // 2 + 1:]) AS late_ns,
  len(list_filter(together, LAMBDA sides: sides <> 0)) AS pairs,
  len(list_filter(together, LAMBDA sides: sides > 0)) AS same_side,
  held_up,
  len(list_filter(begun, LAMBDA is_first: is_first)) + CAST(holds[1] AS BIGINT) AS episodes,
  held_up_ns
FROM followed
ORDER BY rep, peers, rank, phase
