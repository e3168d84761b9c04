-- The mean training step and its parts, of all steps whose time counts: the parts add up to the step exactly.
--
-- The length of a step and the time until its batch is there are measured in every step. What follows is measured in
-- steps in which operators were recorded, and divides the rest of all steps in the same shares: those steps take longer
-- (inflation), all their parts alike as far as is known. Where they are less than half of the steps the shares are of
-- medians, since the first steps of a training, which are always among them, can take several times as long. Ranks
-- without such a step have data_wait and compute, without fetched batches whole. A step that fetched nothing did not
-- wait.
--
-- Reads: step, train_step
-- Ranks: apart
-- Gives, one row per (rep, rank, position), in that order:
--   rep           bigint   repetition
--   rank          bigint   process rank
--   position      bigint   order in the step, from 1
--   phase         varchar  data_wait | forward | backward | gradients | optimizer | after; or, where a step is one call
--                          of a graph: data_wait | launch (until the first operator) | forward_backward | tail; or
--                          compute, whole
--   measured      boolean  in every step; else a share of steps with recorded operators
--   steps         bigint   steps whose time counts
--   parted_steps  bigint   steps that the shares are from
--   mean_ns       bigint   ns    of a step; the sum over a rank's phases is the mean step, rounded
--   share         double   0..1  of the mean step; null when that is 0
--   inflation     double   a step with recorded operators / another one, medians without the wait for data; null when
--                          there are none of either
WITH known AS (
  SELECT
    rep, rank, train_step.timed, train_step.in_window, train_step.dur_ns,
    coalesce(step.input_ns, 0) AS input_ns,
    step.input_ns IS NOT NULL AS is_fed,
    step.forward_ns, step.backward_ns, step.gradients_ns, step.optimizer_ns, step.after_ns,
    step.fp_ns - step.start_ns - coalesce(step.input_ns, 0) AS launch_ns,
    train_step.bp_ns - step.fp_ns AS forward_backward_ns,
    step.end_ns - train_step.bp_ns AS tail_ns,
    step.forward_ns IS NOT NULL AS is_parted,
    train_step.bp_ns IS NOT NULL AND step.fp_ns >= step.start_ns + step.input_ns AS is_split
  FROM train_step
  INNER JOIN step USING (rep, rank, step)
),

whole AS (
  SELECT
    rep, rank,
    count(CASE WHEN timed THEN 1 END) AS steps,
    avg(CASE WHEN timed THEN dur_ns END) AS step_ns,
    avg(CASE WHEN timed THEN input_ns END) AS input_ns,
    bool_or(is_fed AND timed) AS is_fed,
    count(CASE WHEN is_parted THEN 1 END) AS parted,
    count(CASE WHEN is_split THEN 1 END) AS split,
    median(dur_ns - input_ns) FILTER (WHERE in_window AND (is_parted OR is_split))
    / nullif(median(dur_ns - input_ns) FILTER (WHERE NOT in_window), 0) AS inflation
  FROM known
  GROUP BY ALL
),

piece AS (
  SELECT
    known.rep, known.rank, name.phase, name.place, name.how,
    CASE name.phase
      WHEN 'forward' THEN known.forward_ns
      WHEN 'backward' THEN known.backward_ns
      WHEN 'gradients' THEN known.gradients_ns
      WHEN 'optimizer' THEN known.optimizer_ns
      WHEN 'after' THEN known.after_ns
      WHEN 'launch' THEN known.launch_ns
      WHEN 'forward_backward' THEN known.forward_backward_ns
      ELSE known.tail_ns
    END AS part_ns
  FROM known
  INNER JOIN (
    VALUES
    ('parted', 2, 'forward'), ('parted', 3, 'backward'), ('parted', 4, 'gradients'), ('parted', 5, 'optimizer'),
    ('parted', 6, 'after'), ('split', 2, 'launch'), ('split', 3, 'forward_backward'), ('split', 4, 'tail')
  ) AS name (how, place, phase)
    ON CASE name.how WHEN 'parted' THEN known.is_parted ELSE known.is_split END
),

typical AS (
  SELECT
    rep, rank, piece.phase, piece.place,
    CASE
      WHEN 2 * count(*) >= any_value(whole.steps) THEN avg(piece.part_ns) ELSE median(piece.part_ns)
    END AS typical_ns
  FROM piece
  INNER JOIN whole USING (rep, rank)
  WHERE piece.how = CASE WHEN whole.parted > 0 THEN 'parted' ELSE 'split' END
  GROUP BY rep, rank, piece.phase, piece.place
),

part AS (
  SELECT
    rep, rank, phase, place,
    typical_ns / nullif(sum(typical_ns) OVER (PARTITION BY rep, rank), 0) AS part_share
  FROM typical
),

listed AS (
  SELECT
    rep, rank,
    1 AS place,
    'data_wait' AS phase,
    TRUE AS measured,
    input_ns AS until_ns
  FROM whole
  WHERE is_fed
  UNION ALL
  SELECT
    rep, rank, part.place, part.phase,
    FALSE AS measured,
    whole.input_ns + (whole.step_ns - whole.input_ns) * sum(part.part_share) OVER (
      PARTITION BY rep, rank
      ORDER BY part.place ASC
      ROWS UNBOUNDED PRECEDING
    ) AS until_ns
  FROM whole
  INNER JOIN part USING (rep, rank)
  UNION ALL
  SELECT
    rep, rank,
    2 AS place,
    CASE WHEN is_fed THEN 'compute' ELSE 'whole' END AS phase,
    TRUE AS measured,
    step_ns AS until_ns
  FROM whole
  WHERE parted = 0 AND split = 0
),

-- Each part begins where the one before it ends, in whole ns, so that nothing is lost by rounding.
cut AS (
  SELECT
    *,
    CAST(floor(until_ns + 0.5e0) AS BIGINT) - coalesce(
      CAST(floor(lag(until_ns) OVER (PARTITION BY rep, rank ORDER BY place ASC) + 0.5e0) AS BIGINT), 0
    ) AS mean_ns
  FROM listed
)

SELECT
  rep, rank,
  row_number() OVER (PARTITION BY rep, rank ORDER BY cut.place ASC) AS position,
  cut.phase, cut.measured, whole.steps,
  CASE WHEN whole.parted > 0 THEN whole.parted ELSE whole.split END AS parted_steps,
  cut.mean_ns,
  cut.mean_ns / nullif(whole.step_ns, 0) AS share,
  whole.inflation
FROM cut
INNER JOIN whole USING (rep, rank)
WHERE whole.steps > 0
ORDER BY rep, rank, position
