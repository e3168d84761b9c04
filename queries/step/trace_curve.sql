-- Steps over time, to be drawn: each point's place in time, and its mean step in parts that add up to it.
--
-- With more steps than points, a point stands for several steps in a row: their means, and the longest step with its
-- place. A step counts with the finest parts that are known of it; what is not known of a step adds nothing to a part.
--
-- Reads: step
-- Takes:
--   $points  bigint  most points
--   $rep     bigint  this repetition
--   $rank    bigint  this rank
-- Gives, one row per (point), in that order:
--   point                bigint   from 0
--   first_step           bigint   position of its first step among all steps of the rank
--   last_step            bigint   position of its last step
--   first_kind_step      bigint   the first as a training step, from 0 with warm-up, as --step counts
--   last_kind_step       bigint   the last
--   steps                bigint   steps
--   warmup_steps         bigint   of them, warm-up
--   start_ns             bigint   ns    start of the first
--   end_ns               bigint   ns    end of the last
--   dur_ns               double   ns    mean length
--   max_ns               bigint   ns    longest
--   max_step             bigint   the longest step; of equals the first
--   max_kind_step        bigint   the same as a training step
--   max_start_ns         bigint   ns    start of it
--   max_fetch_ns         bigint   ns    longest time inside the dataset iterator; null when nothing was fetched
--   data_wait_ns         double   ns    before the forward pass, or until the batch was handed over
--   forward_ns           double   ns    forward pass
--   backward_ns          double   ns    backward pass
--   gradients_ns         double   ns    between backward pass and optimizer
--   optimizer_ns         double   ns    optimizer
--   after_ns             double   ns    behind the optimizer
--   forward_backward_ns  double   ns    forward and backward pass, where they are not told apart
--   tail_ns              double   ns    behind the backward pass, where it is not divided
--   compute_ns           double   ns    behind the start of the forward pass, where nothing else is known
--   whole_ns             double   ns    steps of which no part is known
WITH numbered AS (
  SELECT
    *,
    row_number() OVER (ORDER BY step ASC) - 1 AS turn,
    count(*) OVER () AS turns,
    end_ns - start_ns AS step_ns,
    CASE
      WHEN
        input_ns + forward_ns + backward_ns + gradients_ns + optimizer_ns + after_ns IS NOT NULL
        THEN 'parts'
      WHEN fp_ns IS NULL OR fp_ns < start_ns OR fp_ns > end_ns THEN 'whole'
      WHEN bp_ns IS NULL OR bp_ns < fp_ns OR bp_ns > end_ns THEN 'forward'
      ELSE 'backward'
    END AS known
  FROM step
  WHERE kind IN ('warmup', 'train') AND rep = $rep AND rank = $rank
),

pointed AS (
  SELECT
    *,
    CASE WHEN turns <= $points THEN turn ELSE CAST(floor(turn * $points / nullif(turns, 0)) AS BIGINT) END AS point
  FROM numbered
),

placed AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY point ORDER BY step_ns DESC, step ASC) AS place
  FROM pointed
)

SELECT
  point,
  min(step) AS first_step,
  max(step) AS last_step,
  min(turn) AS first_kind_step,
  max(turn) AS last_kind_step,
  count(*) AS steps,
  count(CASE WHEN kind = 'warmup' THEN 1 END) AS warmup_steps,
  min(start_ns) AS start_ns,
  max(end_ns) AS end_ns,
  avg(step_ns) AS dur_ns,
  max(step_ns) AS max_ns,
  max(CASE WHEN place = 1 THEN step END) AS max_step,
  max(CASE WHEN place = 1 THEN turn END) AS max_kind_step,
  max(CASE WHEN place = 1 THEN start_ns END) AS max_start_ns,
  max(fetch_wait_ns) AS max_fetch_ns,
  avg(CASE known WHEN 'parts' THEN input_ns WHEN 'whole' THEN 0 ELSE fp_ns - start_ns END) AS data_wait_ns,
  avg(CASE known WHEN 'parts' THEN forward_ns ELSE 0 END) AS forward_ns,
  avg(CASE known WHEN 'parts' THEN backward_ns ELSE 0 END) AS backward_ns,
  avg(CASE known WHEN 'parts' THEN gradients_ns ELSE 0 END) AS gradients_ns,
  avg(CASE known WHEN 'parts' THEN optimizer_ns ELSE 0 END) AS optimizer_ns,
  avg(CASE known WHEN 'parts' THEN after_ns ELSE 0 END) AS after_ns,
  avg(CASE known WHEN 'backward' THEN bp_ns - fp_ns ELSE 0 END) AS forward_backward_ns,
  avg(CASE known WHEN 'backward' THEN end_ns - bp_ns ELSE 0 END) AS tail_ns,
  avg(CASE known WHEN 'forward' THEN end_ns - fp_ns ELSE 0 END) AS compute_ns,
  avg(CASE known WHEN 'whole' THEN step_ns ELSE 0 END) AS whole_ns
FROM placed
GROUP BY ALL
ORDER BY point
