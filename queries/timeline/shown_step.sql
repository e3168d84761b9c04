-- Two training steps of a rank whose timeline is shown: a usual one, and the slowest.
--
-- The usual one is the nearest to the median of the steps in which operators were recorded, where there are any; the
-- slowest is among the steps whose time counts.
--
-- Reads: op?, train_step
-- Takes:
--   $rep   bigint  this repetition
--   $rank  bigint  this rank
-- Gives, one row per (shown), in that order:
--   shown        varchar  slowest | usual
--   step         bigint   position among all steps of the rank
--   kind_step    bigint   position among the rank's training steps, warm-up included, from 0; null when not known
--   pipeline_id  bigint   the dataset iterator that fed it; null when none did
--   position     bigint   the step's number in the source, else kind_step
--   in_window    boolean  operators were being recorded, so the step time is inflated
--   operators    boolean  operators were recorded in it
--   start_ns     bigint   ns  start
--   dur_ns       bigint   ns  the whole step
--   middle_ns    double   ns  median of the steps that it was chosen from
WITH listed AS (
  SELECT
    train_step.step, kind_step, pipeline_id, train_step.position, in_window, timed,
    train_step.start_ns, train_step.dur_ns,
    count(op.step) > 0 AS operators
  FROM train_step
  LEFT JOIN op USING (rep, rank, step)
  WHERE rep = $rep AND rank = $rank
  GROUP BY ALL
),

counted AS (
  SELECT
    *,
    bool_or(operators) OVER () AS any_operators
  FROM listed
),

eligible AS (
  SELECT
    'usual' AS shown,
    *
  FROM counted
  WHERE operators OR NOT any_operators
  UNION ALL
  SELECT
    'slowest' AS shown,
    *
  FROM counted
  WHERE timed
),

middle AS (
  SELECT
    *,
    median(dur_ns) OVER (PARTITION BY shown) AS middle_ns
  FROM eligible
),

ranked AS (
  SELECT
    *,
    row_number() OVER (
      PARTITION BY shown
      ORDER BY CASE shown WHEN 'usual' THEN abs(dur_ns - middle_ns) ELSE -dur_ns END ASC, step ASC
    ) AS place
  FROM middle
)

SELECT
  shown, step, kind_step, pipeline_id, position, in_window, operators, start_ns, dur_ns,
  CAST(middle_ns AS DOUBLE) AS middle_ns
FROM ranked
WHERE place = 1
ORDER BY shown
