-- How the time per step of the operators with the most own time changes over the run: least squares over the steps.
--
-- Operators of one name and phase are pooled, whatever their shapes; a step without the operator counts as 0. Steps
-- are those with recorded operators; a window is an unbroken row of them. One window tells nothing about growth. See
-- the view step_op for what counts as own time.
--
-- Reads: op_info?, step_op, step_part
-- Takes:
--   $top  bigint  how many operators of each rank
-- Gives, one row per (rep, rank, position), in that order:
--   rep             bigint   repetition
--   rank            bigint   process rank
--   position        bigint   1 has the most own time; of equals the first name and phase
--   name            varchar  full name, scope included; the op_id as text when it is not known
--   phase           varchar  forward | backward | gradients | optimizer | after | communication | data | other | null
--   type            varchar  operator type
--   shapes          bigint   different input shapes it was seen with
--   steps           bigint   steps with recorded operators
--   windows         bigint   unbroken rows of them
--   span_steps      bigint   training steps from the first of them to the last
--   mean_ns         double   ns    its time per step
--   share           double   0..1  of the time of these steps
--   first_ns        double   ns    its median time per step in the first window
--   last_ns         double   ns    the same in the last window
--   falls           bigint   windows with a smaller median than the window before
--   slope_ns        double   ns    growth from one training step to the next; null for a single step
--   slope_variance  double   squared standard error of slope_ns; null for fewer than three steps
WITH gap AS (
  SELECT
    rep, rank, step, kind_step, dur_ns, CASE
      WHEN kind_step - lag(kind_step) OVER (PARTITION BY rep, rank ORDER BY kind_step, step) = 1 THEN 0 ELSE 1
    END AS opens
  FROM step_part
),

windowed AS (
  SELECT
    *,
    sum(opens) OVER (PARTITION BY rep, rank ORDER BY kind_step, step ROWS UNBOUNDED PRECEDING) AS window_number
  FROM gap
),

whole AS (
  SELECT
    rep, rank,
    count(*) AS steps,
    max(window_number) AS windows,
    max(kind_step) - min(kind_step) AS span_steps,
    sum(dur_ns) AS step_ns,
    avg(kind_step) AS middle
  FROM windowed
  GROUP BY ALL
),

labelled AS (
  SELECT
    rep, rank, step_op.step,
    coalesce(op_info.name, CAST(step_op.op_id AS VARCHAR)) AS name,
    coalesce(op_info.phase, '') AS phase,
    op_info.type, op_info.in_shapes,
    step_op.own_ns AS self_ns
  FROM step_op
  LEFT JOIN op_info USING (rep, rank, op_id)
),

per_step AS (
  SELECT
    rep, rank, step, name, phase,
    sum(self_ns) AS self_ns
  FROM labelled
  GROUP BY ALL
),

known AS (
  SELECT
    rep, rank, name, phase,
    min(type) AS type,
    count(DISTINCT in_shapes) AS shapes
  FROM labelled
  GROUP BY ALL
),

ranked AS (
  SELECT
    rep, rank, name, phase,
    sum(self_ns) AS total_ns,
    row_number() OVER (
      PARTITION BY rep, rank ORDER BY sum(self_ns) DESC NULLS LAST, name ASC, phase ASC
    ) AS position
  FROM per_step
  GROUP BY rep, rank, name, phase
),

point AS (
  SELECT
    rep, rank, ranked.position, windowed.window_number, whole.windows,
    windowed.kind_step - whole.middle AS x,
    coalesce(per_step.self_ns, 0) AS y,
    ranked.total_ns / nullif(whole.steps, 0) AS mean_y
  FROM ranked
  INNER JOIN whole USING (rep, rank)
  INNER JOIN windowed USING (rep, rank)
  LEFT JOIN per_step USING (rep, rank, name, phase, step)
  WHERE ranked.position <= $top
),

fitted AS (
  SELECT
    *,
    sum(x * x) OVER (PARTITION BY rep, rank, position) AS squares,
    sum(x * (y - mean_y)) OVER (PARTITION BY rep, rank, position)
    / nullif(sum(x * x) OVER (PARTITION BY rep, rank, position), 0) AS slope
  FROM point
),

middle AS (
  SELECT
    rep, rank, position, window_number, windows,
    median(y) AS window_ns
  FROM point
  GROUP BY ALL
),

followed AS (
  SELECT
    *,
    lag(window_ns) OVER (PARTITION BY rep, rank, position ORDER BY window_number) AS before_ns
  FROM middle
),

course AS (
  SELECT
    rep, rank, position,
    max(CASE WHEN window_number = 1 THEN window_ns END) AS first_ns,
    max(CASE WHEN window_number = windows THEN window_ns END) AS last_ns,
    count(*) FILTER (WHERE window_ns < before_ns) AS falls
  FROM followed
  GROUP BY ALL
),

line AS (
  SELECT
    rep, rank, position,
    max(slope) AS slope_ns,
    sum((y - mean_y - slope * x) * (y - mean_y - slope * x))
    / nullif(CASE WHEN count(*) > 2 THEN count(*) - 2 ELSE 0 END, 0) / nullif(max(squares), 0) AS slope_variance
  FROM fitted
  GROUP BY ALL
)

SELECT
  rep, rank, ranked.position, ranked.name,
  nullif(ranked.phase, '') AS phase,
  known.type, known.shapes, whole.steps,
  CAST(whole.windows AS BIGINT) AS windows,
  whole.span_steps,
  ranked.total_ns / nullif(whole.steps, 0) AS mean_ns,
  ranked.total_ns / nullif(whole.step_ns, 0) AS share,
  course.first_ns, course.last_ns, course.falls, line.slope_ns, line.slope_variance
FROM ranked
INNER JOIN whole USING (rep, rank)
INNER JOIN known USING (rep, rank, name, phase)
INNER JOIN course USING (rep, rank, position)
INNER JOIN line USING (rep, rank, position)
WHERE ranked.position <= $top
ORDER BY rep, rank, ranked.position
