-- Operator time by operator type, most own time first.
--
-- Counts operators of training steps; of warm-up steps when no others were recorded.
--
-- Reads: train_op
-- Ranks: apart
-- Gives, one row per (rep, rank, position), in that order:
--   rep               bigint   repetition
--   rank              bigint   process rank
--   position          bigint   1 has the most own time; of equals the first name
--   type              varchar  operator type; null when the operator is not known
--   phase             varchar  phase of its operators; mixed when they differ
--   count             bigint   executions
--   steps             bigint   steps it was seen in
--   total_ns          bigint   ns    children included
--   self_ns           bigint   ns    without the operators it called
--   mean_ns           double   ns    of an execution, children included
--   max_ns            bigint   ns    longest execution, children included
--   share             double   0..1  self_ns / self_ns of all types
--   cumulative_ns     bigint   ns    self_ns of this row and those above it
--   cumulative_share  double   0..1  share of this row and those above it
WITH total AS (
  SELECT
    rep, rank, type,
    CASE WHEN min(phase) = max(phase) THEN min(phase) WHEN count(phase) > 0 THEN 'mixed' END AS phase,
    count(*) AS executions,
    count(DISTINCT step) AS steps,
    CAST(sum(dur_ns) AS BIGINT) AS total_ns,
    CAST(sum(self_ns) AS BIGINT) AS self_ns,
    avg(dur_ns) AS mean_ns,
    max(dur_ns) AS max_ns
  FROM train_op
  GROUP BY ALL
),

ranked AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY rep, rank ORDER BY self_ns DESC NULLS LAST, type ASC NULLS LAST) AS position
  FROM total
),

summed AS (
  SELECT
    *,
    sum(self_ns) OVER (PARTITION BY rep, rank) AS all_ns,
    sum(self_ns) OVER (PARTITION BY rep, rank ORDER BY position ROWS UNBOUNDED PRECEDING) AS running_ns
  FROM ranked
)

SELECT
  rep, rank, position, type, phase,
  executions AS count,
  steps, total_ns, self_ns, mean_ns, max_ns,
  self_ns / nullif(all_ns, 0) AS share,
  CAST(running_ns AS BIGINT) AS cumulative_ns,
  running_ns / nullif(all_ns, 0) AS cumulative_share
FROM summed
ORDER BY rep, rank, position
