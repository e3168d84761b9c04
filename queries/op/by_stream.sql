-- What each stream ran: how many tasks, of how many operators, how long, and the operator with the most time.
--
-- Counts operators of training steps; of a device without any, those of warm-up steps or of no known step.
--
-- Reads: device_op, train_step?
-- Ranks: apart
-- Gives, one row per (rep, rank, track), in that order:
--   rep         bigint   repetition
--   rank        bigint   process rank
--   track       varchar  stream, thread or device; empty where the source names none
--   tasks       bigint   executions
--   operators   bigint   different operators
--   total_ns    bigint   ns    own times of its tasks
--   mean_ns     double   ns    of a task, the operators it called included
--   max_ns      bigint   ns    longest task
--   step_share  double   0..1  total_ns / length of the steps in which it ran something; null without steps
--   longest     varchar  operator with the most own time; of equals the first name
--   longest_ns  bigint   ns    own time of that operator
WITH spent AS (
  SELECT
    rep, rank, track, op_id, name,
    count(*) AS tasks,
    CAST(sum(self_ns) AS BIGINT) AS self_ns,
    sum(dur_ns) AS dur_ns,
    max(dur_ns) AS max_ns
  FROM device_op
  GROUP BY ALL
),

ranked AS (
  SELECT
    *,
    row_number() OVER (
      PARTITION BY rep, rank, track
      ORDER BY self_ns DESC NULLS LAST, name ASC NULLS LAST, op_id ASC
    ) AS place
  FROM spent
),

ran AS (
  SELECT
    rep, rank, step, track
  FROM device_op
  GROUP BY ALL
),

busy AS (
  SELECT
    rep, rank, track,
    sum(dur_ns) AS step_ns
  FROM ran
  INNER JOIN train_step USING (rep, rank, step)
  GROUP BY ALL
)

SELECT
  rep, rank, track,
  CAST(sum(tasks) AS BIGINT) AS tasks,
  count(*) AS operators,
  CAST(sum(self_ns) AS BIGINT) AS total_ns,
  sum(ranked.dur_ns) / nullif(sum(tasks), 0) AS mean_ns,
  max(max_ns) AS max_ns,
  sum(self_ns) / nullif(max(busy.step_ns), 0) AS step_share,
  max(CASE WHEN place = 1 THEN name END) AS longest,
  max(CASE WHEN place = 1 THEN self_ns END) AS longest_ns
FROM ranked
LEFT JOIN busy USING (rep, rank, track)
GROUP BY rep, rank, track
ORDER BY rep, rank, track
