-- How much longer each phase of a step takes on a rank than on the others that do the same work.
--
-- Differences are taken within a step, against the median of the other ranks, so that what all have in common cancels
-- and one odd rank does not make the others look odd. Steps that at least half of the ranks have count.
--
-- Reads: rank_phase
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
--   held_up_ns     double   ns    its sum in those steps
WITH present AS (
  SELECT
    *,
    count(*) OVER (PARTITION BY rep, peers, position, phase) AS met,
    row_number() OVER (PARTITION BY rep, peers, position, phase ORDER BY phase_ns ASC, rank ASC) AS place
  FROM rank_phase
),

group_size AS (
  SELECT
    rep, peers,
    count(DISTINCT rank) AS ranks
  FROM rank_phase
  GROUP BY ALL
),

-- The three values among which the median of the others lies, whichever rank is left out.
middle AS (
  SELECT
    rep, peers, position, phase,
    max(met) AS met,
    max(CASE WHEN place = CAST(floor(met / 2) AS BIGINT) THEN phase_ns END) AS first_ns,
    max(CASE WHEN place = CAST(floor(met / 2) AS BIGINT) + 1 THEN phase_ns END) AS second_ns,
    max(CASE WHEN place = CAST(floor(met / 2) AS BIGINT) + 2 THEN phase_ns END) AS third_ns
  FROM present
  GROUP BY ALL
),

-- Of an even number of ranks the others have one middle value, of an odd number two.
compared AS (
  SELECT
    rep, peers, present.rank, present.position, present.source, present.phase, group_size.ranks, present.phase_ns,
    present.step_ns,
    present.phase_ns - (
      CASE WHEN present.place > floor(present.met / 2) THEN middle.first_ns ELSE middle.second_ns END
      + CASE
        WHEN floor(present.met / 2) = floor((present.met + 1) / 2)
          THEN CASE WHEN present.place > floor(present.met / 2) THEN middle.first_ns ELSE middle.second_ns END
        WHEN present.place > floor(present.met / 2) + 1 THEN middle.second_ns
        ELSE middle.third_ns
      END
    ) / 2 AS diff_ns
  FROM present
  INNER JOIN middle USING (rep, peers, position, phase)
  INNER JOIN group_size USING (rep, peers)
  WHERE present.met > 1 AND 2 * present.met >= group_size.ranks
),

placed AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY rep, peers, rank, phase ORDER BY position ASC) AS turn,
    count(*) OVER (PARTITION BY rep, peers, rank, phase) AS turns,
    diff_ns - median(diff_ns) OVER (PARTITION BY rep, peers, rank, phase) AS off_ns,
    CASE WHEN 10 * diff_ns > step_ns THEN 1 ELSE 0 END AS is_held_up
  FROM compared
),

followed AS (
  SELECT
    *,
    lag(off_ns) OVER (PARTITION BY rep, peers, rank, phase ORDER BY turn ASC) * off_ns AS together,
    lag(is_held_up) OVER (PARTITION BY rep, peers, rank, phase ORDER BY turn ASC) AS was_held_up
  FROM placed
)

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
  stddev_samp(diff_ns) AS diff_sd_ns,
  median(CASE WHEN 2 * turn <= turns + 1 THEN diff_ns END) AS early_ns,
  median(CASE WHEN 2 * turn > turns + 1 THEN diff_ns END) AS late_ns,
  count(CASE WHEN together <> 0 THEN 1 END) AS pairs,
  count(CASE WHEN together > 0 THEN 1 END) AS same_side,
  CAST(sum(is_held_up) AS BIGINT) AS held_up,
  count(CASE WHEN is_held_up = 1 AND coalesce(was_held_up, 0) = 0 THEN 1 END) AS episodes,
  sum(CASE WHEN is_held_up = 1 THEN diff_ns END) AS held_up_ns
FROM followed
GROUP BY rep, peers, rank, phase
ORDER BY rep, peers, rank, phase
